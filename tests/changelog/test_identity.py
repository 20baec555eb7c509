"""What a log is known by: an id that it gets with its first segment, and its server, database and slot."""

from dataclasses import replace
from pathlib import Path

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogWriter
from pgoutput_construct.changelog._segment.footer import Position
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog.reader import LogIdentity, ensure_id, identity_of
from tests.spark.logs import log_options, write_orders

ONE = LogIdentity("71", "shop", "warehouse", "a")


@pytest.mark.parametrize(
    ("noted", "now", "different"),
    [
        (ONE, ONE, []),
        (ONE, replace(ONE, slot="another", id="a"), []),  # it lost its slot, and resumed with another one
        (ONE, replace(ONE, id="b"), ["id: a, not b"]),
        (ONE, replace(ONE, id=None), ["id: a, not none"]),
        (ONE, LogIdentity("72", "shop", "warehouse", "b"), ["system_identifier: 71, not 72", "id: a, not b"]),
        (replace(ONE, id=None), ONE, []),  # without a file .identity.json, and with one since
        (replace(ONE, id=None), replace(ONE, id=None), []),
        (replace(ONE, id=None), replace(ONE, slot="other"), ["slot: warehouse, not other"]),
        (replace(ONE, id=None), replace(ONE, database="x", id=None), ["database: shop, not x"]),
    ],
)
def test_differences_of_identities(noted: LogIdentity, now: LogIdentity, different: list[str]) -> None:
    """The id decides where it is known; a log without one is known by the rest."""
    assert noted.differences(now) == different
    assert LogIdentity.from_json(noted.to_json()) == noted


@pytest.mark.slow
def test_the_id_of_a_log(address: str) -> None:
    """It is there with the first segment, and stays the same; another log has another one."""
    store = open_store(address)
    with LogWriter(address) as writer:
        writer.use(log_options())
        assert not store.has(".identity.json")
        writer.append_event("told", pgo.Lsn(1))
        writer.append_fact("told", pgo.Lsn(1))
        writer.publish(Position())
    identity = identity_of(ChangeLog(address))
    assert (identity.system_identifier, identity.database, identity.slot) == ("1", "test", "slot")
    assert identity.id is not None and len(identity.id) == 32
    write_orders(address, range(2))
    assert identity_of(ChangeLog(address)) == identity and ensure_id(store) == identity.id


def test_a_log_that_continues_with_another_slot(tmp_path: Path) -> None:
    """It is the same log, under another slot; another log of the same slot is another one."""
    write_orders(tmp_path / "log", range(1))
    before = identity_of(ChangeLog(tmp_path / "log"))
    with LogWriter(tmp_path / "log") as writer:
        writer.use(replace(log_options(), slot="second"), said=["slot"])
        writer.append_event("options", pgo.Lsn(1), slot=["slot", "second"])
        writer.append_fact("told", pgo.Lsn(1))
        writer.publish(Position())
    after = identity_of(ChangeLog(tmp_path / "log"))
    assert after.slot == "second" and before.differences(after) == []
    write_orders(tmp_path / "other", range(1))
    assert len(before.differences(identity_of(ChangeLog(tmp_path / "other")))) == 1
