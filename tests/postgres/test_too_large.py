"""Rows that a server cannot send as text, because messages are limited to 1 GB, but can in binary format."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.wire import Binary, Insert
from tests.postgres.shop import Shop, messages

if TYPE_CHECKING:
    from pgoutput_construct.demo.embedded_server import EmbeddedServer

pytestmark = pytest.mark.server

NEEDED = 8 * 2**30
"""Bytes of free memory: the server and the capture have several copies of a row."""

COLUMNS = {16: 2, 18: 1}
"""By version: on the former the row is too large, on the latter its only value is, which fails with other words."""
SIZE = 540_000_000
"""Bytes of all values of a row: as text, twice as many."""


@pytest.fixture
def roomy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    """A shop on the server of the requested version, if there is enough memory."""
    free = available_memory()
    if free < NEEDED:
        pytest.skip(f"needs {NEEDED / 2**30:.0f} GB of free memory, there are {free / 2**30:.1f}")
    server: EmbeddedServer = request.getfixturevalue(f"server{request.param}")
    with Shop.create(server, "roomy", tmp_path / "log", two_phase=False) as shop:
        yield shop


def available_memory() -> int:
    """Return the bytes of memory that may be taken, as Linux says; 0 elsewhere."""
    facts = Path("/proc/meminfo")
    lines = facts.read_text("ascii").splitlines() if facts.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)


@pytest.mark.long
@pytest.mark.parametrize(("roomy", "columns"), COLUMNS.items(), indirect=["roomy"], ids=["pg16", "pg18"])
def test_a_row_too_large_as_text_is_captured_in_binary(roomy: Shop, columns: int) -> None:
    """The error names the option; what was before it is in the log, which then takes the row, and what follows."""
    names = [f"c{number}" for number in range(columns)]
    roomy.execute(
        "CREATE TABLE large (id int PRIMARY KEY)",
        *(f"ALTER TABLE large ADD {name} bytea" for name in names),
        "CREATE PUBLICATION p FOR TABLE item, large",
        "INSERT INTO item VALUES (1, 'before')",
        f"INSERT INTO large SELECT 1{', v' * columns} FROM convert_to(repeat('a', {SIZE // columns}), 'UTF8') v",
        "INSERT INTO item VALUES (2, 'after')",
    )
    with pytest.raises(ReplicationError, match=r"larger than 1 GB as text.*--binary") as caught:
        roomy.capture(publications=["p"])
    assert not caught.value.transient
    assert [row[1] for row in _rows(roomy)] == [b"before"]
    roomy.capture(publications=["p"], binary=True)
    before, (_, *large), after = _rows(roomy)
    assert (before[1], after[1]) == (b"before", b"after")
    assert all(isinstance(value, Binary) and value.count(b"a") == len(value) for value in large)
    assert sum(map(len, large)) == SIZE
    assert {segment.options.binary for segment in roomy.log().segments} == {False, True}


def _rows(shop: Shop) -> list[tuple[Any, ...]]:
    return [message.new for _, message in messages(shop.log()) if isinstance(message, Insert)]
