"""``pgoutput capture --snapshot`` and ``pgoutput snapshot``: existing rows, and repeated copies."""

from collections.abc import Iterator
from typing import Any

import pytest

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.copies import copies_of
from tests.cli.conftest import Run
from tests.postgres.shop import PUBLICATION, Shop, wait_until

pytestmark = pytest.mark.server


@pytest.fixture
def filled(shop: Shop) -> Iterator[Shop]:
    """A shop with 500 rows from before the log."""
    shop.execute("INSERT INTO item SELECT g, 'there already' FROM generate_series(1, 500) g")
    yield shop


def _copied(shop: Shop) -> list[Any]:
    return list(copies_of(ChangeLog(shop.directory).index)) if list(shop.directory.glob("segment*")) else []


def test_first_and_repeated_copy(run: Run, filled: Shop) -> None:
    """The capture ends when the copies are durable; the command copies a table when nobody reads the slot."""
    arguments = [filled.dsn, str(filled.directory)]
    source = ["--slot", filled.slot, "--publication", PUBLICATION]
    result = run("capture", *arguments, *source, "--snapshot", "--workers", "1", "--until-idle", "0.1", "--new-log")
    assert result.exit_code == 0, result.output
    assert "table public.item was copied into the log: 500 rows" in result.stderr
    result = run("snapshot", *arguments, "--table", "public.item")
    assert result.exit_code == 0, result.output
    assert "no capture reads slot" in result.stderr and "item was copied into the log: 500 rows" in result.stderr
    assert [copy.rows for copy in _copied(filled)] == [500, 500]
    result = run("snapshot", *arguments, "--table", "public.missing")
    assert result.exit_code == 1 and "table public.missing does not exist in" in result.stderr


def test_copy_by_a_running_capture(run: Run, filled: Shop) -> None:
    """A capture without --snapshot makes the requested copies."""
    with filled.capturing(new_log=True):
        wait_until(lambda: list(filled.directory.glob("segment*")) or (filled.directory / ".confirmed.json").exists())
        filled.execute("INSERT INTO item VALUES (501, 'new')")
        wait_until(lambda: bool(list(filled.directory.glob("segment*"))))
        result = run("snapshot", filled.dsn, str(filled.directory), "--table", "item")
    assert result.exit_code == 0, result.output
    assert "no capture reads slot" not in result.stderr and "so far" in result.stderr
    assert [copy.rows for copy in _copied(filled)] == [501]
