"""Where a publisher keeps the positions of its slots, and what it does where the log has lost what follows them."""

import json
from pathlib import Path

import psycopg
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import LogWriter, Position
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.publisher.server import ThreadedPublisher
from pgoutput_construct.publisher.slots import ClientTable, Slots, TableName, default_slots_address
from tests.publisher.test_clients import START
from tests.publisher.wire_client import WireClient
from tests.spark.logs import block_of, log_options


def listing(*tables: str) -> dict[ClientTable, list[TableName]]:
    """Return tables, each given as its OID and its name, whose rows are described by these names."""
    parts = (table.split() for table in tables)
    named = (ClientTable(int(oid), ("public", name)) for oid, name in parts)
    return {table: [table.name] for table in named}


@pytest.mark.parametrize("kind", ["directory", "s3"])
def test_they_lie_beside_the_log(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """In a directory and in an object store; who opens the file next has what was confirmed."""
    log = request.getfixturevalue("s3_address") if kind == "s3" else str(tmp_path / "log")
    slots = Slots(default_slots_address(log))
    slots.open()
    slots.confirm(slots.create("one", two_phase=True), 77)
    slots.save()
    slots.close()
    again = Slots(default_slots_address(log))
    again.open()
    found = again.get("one")
    assert found is not None
    assert (found.confirmed, found.two_phase) == (77, True)


def test_two_phases_outlast_a_crash(tmp_path: Path) -> None:
    """What is sent as prepared is finished as such, also by a publisher that comes after one that was killed."""
    slots = Slots(tmp_path / "slots.json")
    slots.open()
    slots.keep_two_phase(slots.create("one"), 77, asked=True)
    slots.close()
    again = Slots(tmp_path / "slots.json")
    again.open()
    found = again.get("one")
    assert found is not None
    assert (found.two_phase, found.two_phase_at) == (True, 77)


def test_tables_that_a_client_knows(tmp_path: Path) -> None:
    """A slot notes those that its client is listed; of new ones it misses what came before, also after a restart."""
    slots = Slots(tmp_path / "slots.json")
    slots.open()
    slots.listed("shop", listing("1 a", "2 b"))
    slot = slots.create("one", client="shop")
    slots.listed("shop", listing("1 a", "2 b", "3 c"))
    assert (slot.tables, slot.missed) == ([*listing("1 a", "2 b", "3 c")], [])  # nothing was sent yet
    slots.confirm(slot, 77)
    slots.listed("elsewhere", listing("4 d"))
    known = listing("2 b", "3 c", "4 d")
    slots.listed("shop", known)
    assert (slot.tables, slot.missed, slot.is_fenced) == ([*known], [4], False)
    slots.save()
    slots.close()
    again = Slots(tmp_path / "slots.json")
    again.open()
    found = again.get("one")
    assert found is not None
    assert (found.tables, found.missed) == ([*known], [4])
    assert [again.end_stream(found), again.end_stream(found)] == [True, False]
    again.has_all(found, [4], found.missed_lists)
    assert found.missed == []


def test_tables_that_were_renamed(tmp_path: Path) -> None:
    """A client has tables by name: of another one under a name that it knows it has what came by that name."""
    slots = Slots()
    slots.listed("shop", listing("1 a", "2 b"))
    slot = slots.create("one", client="shop")
    slots.confirm(slot, 77)
    slots.listed("shop", listing("1 a_old", "2 b", "3 a"))
    assert slot.missed == [1]
    slots.has_all(slot, [1], slot.missed_lists)
    slots.listed("shop", {**listing("1 a_old", "3 a"), ClientTable(4, ("public", "b")): [("public", "b_new")]})
    assert slot.missed == [4]
    slots.has_all(slot, [4], slot.missed_lists)
    slots.listed("shop", listing("1 b", "3 a", "4 a_old"))
    assert slot.missed == []


def test_a_list_while_a_stream_sends_what_another_one_added() -> None:
    """What was sent before the second list may have been ignored: where names are shared, its client was unknown."""
    slots = Slots()
    slots.listed("shop", listing("1 a"))
    slot, other = slots.create("one", client="shop"), slots.create("two", client="shop")
    for each in (slot, other):
        slots.confirm(each, 77)
    slots.listed("shop", listing("1 a", "2 b"))
    begun = slot.missed_lists  # the stream of the first list begins
    slots.listed("shop", listing("1 a", "2 b"))
    slots.has_all(slot, [2], begun)
    assert slot.missed == [2]
    slots.has_all(slot, [2], slot.missed_lists)
    assert slot.missed == []


def test_one_publisher_a_file(tmp_path: Path) -> None:
    """A second one is refused it, until the first one has ended; a file of something else is refused."""
    first, second = Slots(tmp_path / "slots.json"), Slots(tmp_path / "slots.json")
    first.open()
    with pytest.raises(PgoutputError, match="each publisher has a file of its own"):
        second.open()
    first.close()
    second.open()
    for content in (
        "[",
        "[1]",
        '{"a": {"b": 1}}',
        '{"a": {"name": "a", "two_phase": "yes"}}',
        '{"a": {"name": "a", "tables": ["x"]}}',
        '{"a": {"name": "a", "tables": [[1, "x"]]}}',
        '{"a": {"name": "a", "missed": ["x"]}}',
    ):
        (tmp_path / "other.json").write_text(content)
        with pytest.raises(PgoutputError, match="invalid slots file"):
            Slots(tmp_path / "other.json").open()


@pytest.mark.slow
def test_what_was_pruned_is_missed(tmp_path: Path) -> None:
    """A slot that needs what is no longer in the log is refused, as one whose WAL was removed; others go on."""
    log = tmp_path / "log"
    with LogWriter(log) as writer:
        writer.use(log_options())
        for number in range(20):
            lsn, end = pgo.Lsn(1000 * number + 1000), pgo.Lsn(1000 * number + 1050)
            sent = (pgo.Begin(lsn, pgo.Timestamp(0), 700 + number), pgo.Commit(lsn, end, pgo.Timestamp(0)))
            for seq, message in enumerate(sent, 2 * number):
                writer.append(block_of(pgo.Session(), seq, pgo.build(message)))
            writer.publish(Position(end))
    prune(log, pgo.Lsn(10_000), states=False)
    begins = LogFeed(log).order().begins
    assert begins == 9050
    positions = {"late": begins - 1, "there": begins, "new": 0}
    slots = {name: {"name": name, "confirmed": position} for name, position in positions.items()}
    (tmp_path / "slots.json").write_text(json.dumps(slots))
    with ThreadedPublisher(LogFeed(log), Settings(slots_file=tmp_path / "slots.json")) as running:
        for name in positions:
            with WireClient(running.publisher.port, user="me", replication="database") as client:
                start = START.format(name).replace("shop", "pub")
                if name == "late":
                    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="can no longer get changes"):
                        client.query(start)
                else:
                    client.start(start)
