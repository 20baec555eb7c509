"""Readers that a log knows of."""

import time
from pathlib import Path

import pytest

from pgoutput_construct.changelog import ChangeLog, registry
from pgoutput_construct.changelog._segment.prune_note import Pruned, read_pruned, write_pruned
from pgoutput_construct.changelog._segment.segment_index import InheritedEvent
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.registry import next_seq_at
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.transaction_reader import COMMITTED
from pgoutput_construct.wire import Lsn, Timestamp
from tests.live.recording import Recording
from tests.spark.logs import write_recording

pytestmark = pytest.mark.slow


def test_readers_are_stored_in_the_log(address: str) -> None:
    """Registered, advanced, listed, forgotten."""
    store = open_store(address)
    store.prepare()
    assert registry.readers(address) == ()
    registry.register(address, "spark", 10)
    registry.register(address, "audit-2", 0, seconds=5)
    advanced = registry.advance(store, "spark", 20, Lsn(77))
    audit, spark = registry.readers(address)
    assert spark == advanced and (spark.next_seq, spark.lsn, spark.seconds) == (20, 77, None)
    assert not spark.has_expired(time.time() + 1e9)
    assert not audit.has_expired(audit.time + 5) and audit.has_expired(audit.time + 5.1)
    registry.forget(address, "audit-2")
    registry.forget(address, "audit-2")
    assert [reader.name for reader in registry.readers(address)] == ["spark"]
    assert store.files() == {}


def test_invalid_calls_are_refused(address: str) -> None:
    """Go back, be unknown, have a name that is a path, need what was pruned; a damaged file says whom it is of."""
    store = open_store(address)
    store.prepare()
    registry.register(address, "r", 10)
    with pytest.raises(ChangeLogError, match="'r' is at seq 10 already, after 9"):
        registry.advance(address, "r", 9)
    with pytest.raises(ChangeLogError, match="reader 'x' is not registered"):
        registry.advance(address, "x", 9)
    for name in ("../r", "", ".r", "a" * 101):
        with pytest.raises(ChangeLogError, match="is not a valid name of a reader"):
            registry.register(address, name, 0)
    write_pruned(store, Pruned(10, Lsn(1), Timestamp(2)))
    with pytest.raises(ChangeLogError, match="needs seq 9, but the log was pruned up to seq 9"):
        registry.register(address, "s", 9)
    assert [reader.name for reader in registry.readers(address)] == ["r"]
    for content in (b"{", b"[]", b'{"name": "r"}', b'{"name":"r","next_seq":"x","lsn":0,"time":0}'):
        store.write("readers/r.json", content)
        with pytest.raises(ChangeLogError, match=r"readers/r.json: damaged.*register the reader again"):
            registry.readers(address)


def test_a_refused_registration_changes_nothing(address: str) -> None:
    """The reader of that name is waited for where it was; a damaged file is as it was, and can be replaced."""
    store = open_store(address)
    store.prepare()
    write_pruned(store, Pruned(100, Lsn(1), Timestamp(2)))
    earlier = registry.register(address, "x", 500, Lsn(7), seconds=60)
    with pytest.raises(ChangeLogError, match="'x' needs seq 0, but the log was pruned up to seq 99"):
        registry.register(address, "x", 0)
    assert registry.readers(address) == (earlier,)
    store.write("readers/x.json", b"{")
    with pytest.raises(ChangeLogError, match="pruned up to seq 99"):
        registry.register(address, "x", 0)
    assert store.read("readers/x.json") == b"{"
    again = registry.register(address, "x", 100)
    assert registry.readers(address) == (again,)


def test_pruned_json_round_trip(address: str) -> None:
    """Nothing where there is none; what was written; an error that says what a damaged one is for."""
    store = open_store(address)
    store.prepare()
    assert read_pruned(store) == Pruned(0) and read_pruned(store).first_seq == 0
    facts = InheritedEvent(3, "publication", 1, 2, '{"publication": "p"}')
    written = Pruned(10, Lsn(1), Timestamp(2), 0, (7,), (facts,))
    write_pruned(store, written)
    assert read_pruned(store) == written and read_pruned(store).first_seq == 10
    store.write("pruned.json", b'{"first_seq": 10}')  # all else has a default
    assert read_pruned(store) == Pruned(10)
    store.write("pruned.json", b"{}")
    with pytest.raises(ChangeLogError, match=r"pruned.json: damaged"):
        read_pruned(store)


def test_next_seq_at_an_lsn(tmp_path: Path, recordings: dict[str, Recording]) -> None:
    """Who has read all before a commit needs that transaction from its begin on, and what is open."""
    recording = recordings["18-v4-text"]
    write_recording(LocalStore(tmp_path, durable=False), recording)
    log = ChangeLog(tmp_path)
    ended = [row for row in log.transactions().to_pylist() if row["outcome"] == COMMITTED]
    needed = [next_seq_at(Reached(tmp_path), row["commit_lsn"]) for row in ended]
    assert needed == sorted(needed) and needed[0] == 0 < needed[-1]
    assert all(seq <= row["spans"][0]["first"] for seq, row in zip(needed, ended, strict=True))
    assert any(seq > before["seq"] for seq, before in zip(needed[1:], ended, strict=False))
    assert next_seq_at(Reached(tmp_path), 0) == 0
    with pytest.raises(ChangeLogError, match=r"the log ends at .*, before 7FFFFFFF/0"):
        next_seq_at(Reached(tmp_path), Lsn("7FFFFFFF/0"))
    middle = len(log.segments) // 2
    write_pruned(log.store, Pruned(log.segments[middle].first_seq, Lsn(ended[-1]["commit_lsn"]), Timestamp(2)))
    with pytest.raises(ChangeLogError, match=r"was pruned: .* is too early"):
        next_seq_at(Reached(tmp_path), ended[0]["commit_lsn"])


class Reached(ChangeLog):
    """A log whose last segment says that all of it is complete, which recordings do not."""

    @property
    def complete_lsn(self) -> Lsn:
        """Return the end of its last transaction."""
        return Lsn(max(row["end_lsn"] or 0 for row in self.transactions().to_pylist()))
