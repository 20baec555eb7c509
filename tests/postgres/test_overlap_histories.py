"""A server that continues sends what the log has; one that was reset does not: in histories that are drawn."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogOptions, LogWriter, Position
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._notes.confirmation_note import note_after
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, CONNECTED, PUBLICATION_FACTS
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.postgres._capture.gaps import LogGapError
from pgoutput_construct.postgres._capture.overlap import Overlap, find_overlap, sends_same_transactions
from pgoutput_construct.postgres._capture.transaction_tracker import TransactionTracker
from tests.changelog.blocks import block_of
from tests.publisher.logs import WrittenLog, insert, relation
from tests.spark.logs import log_options

_OPTIONS = log_options(proto_version=4, streaming="parallel", two_phase=True)
_BEGUN = pgo.Lsn(1000)
"""Where the slot was created."""


@dataclass(frozen=True)
class _Record:
    """What a server sends when it decodes one record of its WAL."""

    lsn: int
    end: int
    messages: tuple[pgo.PgoutputMessage, ...]
    is_committed: bool = False
    is_certain: bool = True
    """Whether a server that has the record is sure to send this, and a capture compares it."""


@dataclass(frozen=True)
class _Wal:
    """The records of a server's WAL, and what the next one is like."""

    records: tuple[_Record, ...] = ()
    end: int = int(_BEGUN)
    xid: int = 700
    clock: int = 1000
    prepared: tuple[tuple[str, int, int], ...] = ()
    """The gid, xid and end LSN of each prepared transaction."""

    def with_record(self, kind: str, gap: int) -> "_Wal":
        """Return it with one more record, ``gap`` bytes after the last one."""
        lsn = self.end + gap
        end, xid, time = pgo.Lsn(lsn + 10), self.xid, pgo.Timestamp(self.clock)
        at = pgo.Lsn(lsn)
        prepared, committed, certain = self.prepared, False, True
        messages: Iterable[pgo.PgoutputMessage]
        match kind:
            case "plain":
                messages, committed = [pgo.Begin(at, time, xid), *_rows(None), pgo.Commit(at, end, time)], True
            case "streamed" | "streamed in parts":
                parts = [xid] if kind == "streamed" else [xid, xid + 1, xid]
                messages, committed = [*_streams(xid, parts), pgo.StreamCommit(xid, at, end, time)], True
            case "streamed with a rolled back row":
                undone = [*_streams(xid, [xid + 1]), pgo.StreamAbort(xid, xid + 1, at, time), *_streams(xid, [xid])]
                messages, committed = [*undone, pgo.StreamCommit(xid, at, end, time)], True
            case "streams of which nothing is left":
                undone = [*_streams(xid, [xid + 1]), pgo.StreamAbort(xid, xid + 1, at, time)]
                messages, committed, certain = [*undone, pgo.StreamCommit(xid, at, end, time)], True, False
            case "streams without a row":
                empty = [pgo.StreamStart(xid, 1), pgo.StreamStop(), pgo.StreamStart(xid, 0), pgo.StreamStop()]
                messages, committed, certain = [*empty, pgo.StreamCommit(xid, at, end, time)], True, False
            case "rolled back" | "lost in a crash":
                told = (at, time) if kind == "rolled back" else (pgo.Lsn(0), pgo.Timestamp(0))
                messages, certain = [*_streams(xid, [xid]), pgo.StreamAbort(xid, xid, *told)], False
            case "prepared":
                begun = pgo.BeginPrepare(at, end, time, xid, f"g{xid}")
                messages = [begun, *_rows(None), pgo.Prepare(at, end, time, xid, f"g{xid}")]
                prepared = *prepared, (f"g{xid}", xid, int(end))
            case "streamed and prepared":
                messages = [*_streams(xid, [xid, xid + 1]), pgo.StreamPrepare(at, end, time, xid, f"g{xid}")]
                prepared = *prepared, (f"g{xid}", xid, int(end))
            case "commit prepared" if prepared:
                (gid, its_xid, _), *others = prepared
                messages, committed = [pgo.CommitPrepared(at, end, time, its_xid, gid)], True
                prepared = tuple(others)
            case "rollback prepared" if prepared:
                (gid, its_xid, its_end), *others = prepared
                messages = [pgo.RollbackPrepared(pgo.Lsn(its_end), end, time, time, its_xid, gid)]
                prepared = tuple(others)
            case _:
                messages, certain = [pgo.Message(None, 0, end, "outside", b"x")], False
        record = _Record(lsn, int(end), tuple(messages), committed, certain)
        return _Wal((*self.records, record), int(end), xid + 10, self.clock + 100, prepared)

    def with_records(self, steps: Iterable[tuple[str, int]]) -> "_Wal":
        """Return it with more records."""
        wal = self
        for step in steps:
            wal = wal.with_record(*step)
        return wal


def _rows(xid: int | None, own: int | None = None) -> list[pgo.PgoutputMessage]:
    columns = (pgo.RelationColumn(1, "id", 25, -1),)
    return [pgo.Relation(xid, 1, "public", "t1", "d", columns), pgo.Insert(own or xid, 1, (b"1",))]


def _streams(xid: int, parts: Sequence[int]) -> Iterator[pgo.PgoutputMessage]:
    """Yield streams of a transaction, each with a row of one of its xids."""
    for number, own in enumerate(parts):
        yield from (pgo.StreamStart(xid, int(not number)), *_rows(xid, own), pgo.StreamStop())


class _Capture:
    """A connection that writes what it receives into a log, as a capture does."""

    def __init__(self, directory: Path, options: LogOptions, start: int, overlap: Overlap | None) -> None:
        self.writer = LogWriter(LocalStore(directory, durable=False))
        self.writer.use(options)
        position = Position(_BEGUN) if self.writer.durable_seq < 0 else self.writer.position
        self.tracker = TransactionTracker(position, overlap)
        self._session = pgo.Session(options.proto_version, options.streaming)
        self.writer.append_event(CONNECTED, pgo.Lsn(start))

    def take(self, message: pgo.PgoutputMessage) -> None:
        """Receive a message."""
        payload = pgo.build(message, **self._session.options, in_stream=self._session.in_stream)
        block = block_of(self._session, self.writer.next_seq, payload)
        self._session.parse(payload)
        if self.tracker.admit(block).admitted.all() and self.tracker.gap is None:
            self.writer.append(block)


KINDS = (
    *("plain", "streamed", "streamed in parts", "streamed with a rolled back row", "streams of which nothing is left"),
    *("streams without a row", "rolled back", "lost in a crash", "prepared", "streamed and prepared"),
    *("commit prepared", "rollback prepared", "message"),
)
GAPS = st.sampled_from([0, 0, 8])
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), GAPS), min_size=1, max_size=8)
CERTAIN = st.tuples(
    st.sampled_from(["plain", "streamed", "streamed with a rolled back row", "streamed and prepared"]), GAPS
)


@dataclass
class _Log:
    """A log, the LSNs that its captures have confirmed, and what was pruned from it."""

    directory: Path
    told: list[int] = field(default_factory=lambda: [int(_BEGUN)])
    pruned: list[int] = field(default_factory=list)
    """The end LSNs of committed transactions."""
    options: LogOptions = _OPTIONS
    """Those of its captures from now on."""

    def capture(
        self,
        wal: _Wal,
        slot: int,
        part: float = 1.0,
        cuts: Collection[float] = (),
        says: Callable[[], bool] = bool,
        sends: Callable[[], bool] = bool,
    ) -> None:
        """Capture a server's history from a slot.

        Args:
            wal: The history.
            slot: The LSN of the slot.
            part: How much is received before the capture is killed: what has not become a segment is lost; 1 for all.
            cuts: After which parts of it segments end.
            says: Returns whether the server says, after a record, that it has sent all before its end.
            sends: Returns whether it sends what it may send or not.
        """
        overlap = self.overlap(slot)
        start = slot if overlap is None else int(overlap.start_lsn)
        assert start >= slot
        capture = _Capture(self.directory, self.options, start, overlap)
        sent = [
            (message, record.end if message is record.messages[-1] else 0)
            for record in wal.records
            if record.lsn >= start and (record.is_certain or sends())
            for message in record.messages
        ]
        ends = {round(cut * len(sent)) for cut in cuts}
        for number, (message, end) in enumerate(sent[: round(part * len(sent))], 1):
            capture.take(message)
            assert capture.tracker.gap is None
            if end and says():
                capture.tracker.keepalive(pgo.Lsn(end))
            if number in ends:
                capture.writer.publish(capture.tracker.position)
            if capture.tracker.is_compared and not capture.writer.pending:  # all of it is durable
                self.told.append(int(capture.tracker.complete_lsn))
        if part == 1:
            capture.tracker.keepalive(pgo.Lsn(wal.end))
            capture.writer.publish(capture.tracker.position)
            assert capture.tracker.gap is None and capture.tracker.is_compared
            self.told.append(int(capture.tracker.complete_lsn))
        capture.writer.close()

    def capture_some(self, data: Any, wal: _Wal, slot: int, is_whole: bool) -> None:
        """Capture a history; segments, confirmations without one, and kills unless it ``is_whole``, come anywhere."""
        shares, choose = st.floats(0, 1), lambda: data.draw(st.booleans())
        part = 1.0 if is_whole else data.draw(shares)
        self.capture(wal, slot, part, data.draw(st.lists(shares, max_size=3)), choose, choose)

    def restart(self, lsn: int) -> None:
        """Begin it again after a gap, at an LSN: the slot lost what is between."""
        with closing(LogWriter(LocalStore(self.directory, durable=False))) as writer:
            writer.use(self.options)
            writer.append_fact(BEGUN_ANEW, pgo.Lsn(lsn), reason="lost", snapshot=[1, 1, []], void_after=None)
            writer.restart_at(Position(pgo.Lsn(lsn)))
            writer.publish(writer.position)
        self.told.append(lsn)

    def prune(self, before: int) -> None:
        """Remove what ended before an LSN, as far as whole segments have nothing else."""
        had = self.committed()
        prune(self.directory, pgo.Lsn(before), states=False)
        self.pruned += sorted({*had} - {*self.committed()})

    def overlap(self, slot: int) -> Overlap | None:
        """Return what the server sends again whose slot is at an LSN."""
        opened = open_store(self.directory)
        note = note_after(_BEGUN, 0, None)
        for lsn in self.told:
            note = note.including(lsn)
        note = replace(note, confirmed_lsn=pgo.Lsn(max(self.told)))
        return find_overlap(opened, pgo.Lsn(slot), self.position, note)

    @property
    def position(self) -> Position:
        """How far it is complete."""
        listing = list_log(open_store(self.directory))
        return listing[-1].position if listing else Position(_BEGUN)

    def committed(self) -> list[int]:
        """Return the end LSNs of its committed transactions."""
        rows = ChangeLog(self.directory).transactions().to_pylist() if list_log(open_store(self.directory)) else []
        return [row["end_lsn"] for row in rows if row["outcome"] == "committed"]


@pytest.fixture(scope="module")
def logs() -> Iterator[Iterator[_Log]]:
    """Return new logs."""
    with TemporaryDirectory() as parent:
        yield (_Log(Path(parent) / str(number)) for number in count())


@pytest.mark.parametrize("is_sent", [True, False], ids=["sent", "not sent"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_last(logs: Iterator[_Log], kind: str, is_sent: bool) -> None:
    """A server that continues sends the witness, the last of what is sure to come; one that was reset does not."""
    log, before = next(logs), _Wal().with_records([("plain", 0), ("prepared", 8), ("plain", 8)])
    wal = before.with_record(kind, 0)
    log.capture(wal, int(_BEGUN), cuts=[0.2, 0.4, 0.6, 0.8], sends=lambda: True)
    overlap, had = log.overlap(int(_BEGUN)), log.committed()
    witness = wal.records[-1] if wal.records[-1].is_certain else before.records[-1]
    assert overlap is not None and overlap.witness == witness.end
    assert {known.xid for known in overlap.known.values()} <= overlap.streams
    with pytest.raises(LogGapError, match="the log has transaction"):
        overlap.advance(pgo.Lsn(witness.end))
    wal = wal.with_record("plain", 0)
    log.capture(wal, int(_BEGUN), sends=lambda: is_sent)
    assert log.committed() == [*had, wal.end]


@pytest.mark.parametrize(
    ("xip", "end", "differs"),
    [(710, 1030, True), (711, 1030, False), (711, 1020, True), (711, 1021, False)],
    ids=["running", "begun later", "ended before", "ended after"],
)
def test_an_altered_publication(tmp_path: Path, xip: int, end: int, differs: bool) -> None:
    """What ran meanwhile, or had ended before, may be sent or not: only its absence and its presence prove nothing."""
    log = WrittenLog(tmp_path)
    for number, operations in enumerate((["insert"], ["insert", "update"])):
        lsn = pgo.Lsn(1000 + 20 * number)
        snapshot = [xip, 800, [5 * 2**32 + xip]]
        details = {"publication": "pub", "operations": operations, "tables": [], "snapshot": snapshot}
        log.writer.append_fact(PUBLICATION_FACTS, lsn, **details, since=0, unchanged=0)
    log.commit(710, end - 5, end, relation(1), insert(1, "a"))
    log.publish()
    opened = ChangeLog(log.directory)
    for missing in (True, False):
        found = find_overlap(opened.store, pgo.Lsn(900), opened.segments[-1].position, note_after(_BEGUN, 0, None))
        assert found is not None and found.witness == end
        if missing:  # the log has it, and the server does not send it
            compare = partial(found.advance, pgo.Lsn(end + 1))
        else:  # the server sends it, and the log has another one
            found.known = {}
            found.witness = None
            compare = partial(found.compare, pgo.Commit(pgo.Lsn(end - 5), pgo.Lsn(end), pgo.Timestamp(0)), end, 710)
        if differs:
            compare()
            assert found.witness is None
        else:
            with pytest.raises(LogGapError, match="710"):
                compare()


_TABLE = {"oid": 1, "schema": "public", "name": "t1", "member": 1}


@pytest.mark.parametrize(
    ("first", "second", "differs"),
    [
        ({"tables": []}, {"tables": [_TABLE]}, True),
        ({"all_tables": True, "tables": []}, {"all_tables": True, "tables": [_TABLE]}, False),
        ({"all_tables": True}, {"all_tables": True, "excluded": [2]}, True),
        ({"operations": ["insert"]}, {"operations": ["insert"]}, False),
    ],
    ids=["another table", "a new table of all", "an excluded table", "nothing"],
)
def test_what_counts_as_an_altered_publication(tmp_path: Path, first: Any, second: Any, differs: bool) -> None:
    """Its options, its tables, and which tables FOR ALL TABLES excludes; not that there is one more of all tables."""
    log = WrittenLog(tmp_path)
    for lsn, details in ((1000, first), (1020, second)):
        facts = {"publication": "pub", "snapshot": [710, 800, [710]], **details}
        log.writer.append_fact(PUBLICATION_FACTS, pgo.Lsn(lsn), **facts, since=0, unchanged=0)
    log.commit(710, 1025, 1030, relation(1), insert(1, "a"))
    log.publish()
    opened = ChangeLog(log.directory)
    found = find_overlap(opened.store, pgo.Lsn(900), opened.segments[-1].position, note_after(_BEGUN, 0, None))
    assert found is not None
    with nullcontext() if differs else pytest.raises(LogGapError, match="710"):
        found.advance(pgo.Lsn(1031))


def test_what_is_sent_only_later(logs: Iterator[_Log]) -> None:
    """Streams of which nothing is left may be sent only the second time: after others that the log knows already."""
    log = next(logs)
    wal = _Wal().with_records([("plain", 0), *2 * [("streams of which nothing is left", 8)]])
    between, last = (record.end for record in wal.records[1:])
    is_sent = iter([False, True])
    log.capture(wal, int(_BEGUN), sends=lambda: next(is_sent))
    log.capture(wal, int(_BEGUN), sends=lambda: True)
    assert log.committed() == [wal.records[0].end, last, between]
    log.told.append(between + 4)
    overlap = log.overlap(between + 4)
    assert overlap is not None and {*overlap.known} == {last}


def test_a_slot_that_the_capture_did_not_confirm(logs: Iterator[_Log]) -> None:
    """It is refused if no later transaction can be compared; the end of a segment is as good as a confirmation."""
    log = next(logs)
    assert log.overlap(int(_BEGUN) - 10) is None  # the log has nothing yet
    wal = _Wal().with_records([("plain", 0), ("message", 8), ("plain", 8), ("message", 8)])
    log.capture(wal, int(_BEGUN), cuts=[0.9], sends=lambda: True)
    last, end = wal.records[2].end, wal.end
    log.told.remove(last)
    assert log.overlap(end) is None
    overlap = log.overlap(last)
    assert overlap is not None and overlap.witness is None
    overlap = log.overlap(last - 4)
    assert overlap is not None and overlap.witness == last
    for slot in (last + 4, end + 4):
        with pytest.raises(LogGapError, match="never confirmed") as caught:
            log.overlap(slot)
        assert caught.value.void_after == slot


def test_other_options_end_the_comparison(logs: Iterator[_Log]) -> None:
    """Under others the server sends other transactions: nothing is compared that was captured before they changed."""
    log, wal = next(logs), _Wal().with_records([("plain", 0), ("plain", 8)])
    log.capture(wal, int(_BEGUN), cuts=[0.5])
    log.options = replace(_OPTIONS, publications=("another",))
    log.capture(wal.with_record("streams of which nothing is left", 8), wal.end, sends=lambda: True)
    overlap = log.overlap(int(_BEGUN))
    assert overlap is not None and overlap.witness is None
    assert overlap.start_lsn == wal.end and {*overlap.known} == {wal.end + 18}


@pytest.mark.parametrize("is_cut", [True, False], ids=["segments", "one segment"])
def test_a_gap_ends_the_comparison(logs: Iterator[_Log], is_cut: bool) -> None:
    """Nothing before the LSN at which the log begins again is compared, and no slot there has to be a confirmed one."""
    log, before = next(logs), _Wal().with_record("plain", 0)
    log.capture(before, int(_BEGUN))
    wal = replace(before, end=before.end + 100)
    log.restart(wal.end)
    began = wal.end
    wal = wal.with_records(2 * [("streams of which nothing is left", 8)])
    log.capture(wal, began, cuts=[0.5] if is_cut else [], sends=lambda: True)
    ends = {record.end for record in wal.records[1:]}
    for slot in (int(_BEGUN), before.end + 4, began):
        overlap = log.overlap(slot)
        assert overlap is not None and overlap.witness is None
        assert overlap.start_lsn == began and {*overlap.known} == ends
    with pytest.raises(LogGapError, match="never confirmed"):
        log.overlap(began + 4)


def test_a_prune_ends_the_comparison(logs: Iterator[_Log]) -> None:
    """The same is true of the LSN before which a log was pruned."""
    log, wal = next(logs), _Wal().with_records([("plain", 0), ("plain", 8)])
    log.capture(wal, int(_BEGUN), cuts=[0.5])
    whole = wal.with_records(2 * [("streams of which nothing is left", 8)])
    log.capture(whole, wal.end, cuts=[0.5], sends=lambda: True)
    log.prune(whole.records[2].end)
    pruned = read_pruned(open_store(log.directory)).lsn
    assert log.pruned and pruned > wal.records[0].end
    overlap = log.overlap(int(_BEGUN) + 4)
    assert overlap is not None and overlap.witness is None
    assert overlap.start_lsn == pruned and {*overlap.known} == {whole.end}


def test_servers_send_the_same_under_the_same_options() -> None:
    """The order of publications does not matter; another publication or another option does."""
    one = replace(_OPTIONS, publications=("p", "q"))
    assert sends_same_transactions(one, replace(one, publications=("q", "p")))
    assert not sends_same_transactions(one, replace(one, publications=("p",)))
    assert not sends_same_transactions(one, replace(one, messages=not one.messages))


@given(st.data(), st.lists(STEPS, min_size=2, max_size=4), st.booleans())
def test_a_server_that_continues(logs: Iterator[_Log], data: Any, parts: Any, prunes: bool) -> None:
    """Captures are killed, the slot is set back to any LSN that was confirmed: nothing is lost, nothing is twice."""
    log, wal = next(logs), _Wal()
    for number, steps in enumerate(parts, 1):
        wal = wal.with_records(steps)
        log.capture_some(data, wal, data.draw(st.sampled_from(log.told)), is_whole=number == len(parts))
        if prunes and log.position != Position(_BEGUN):
            log.prune(data.draw(st.sampled_from(log.told)))
    found, wanted = [*log.pruned, *log.committed()], [record for record in wal.records if record.is_committed]
    certain = [record.end for record in wanted if record.is_certain]
    assert len(found) == len({*found}) and {*found} <= {record.end for record in wanted}
    assert [end for end in found if end in certain] == certain


@given(st.data(), STEPS, STEPS, CERTAIN, STEPS, st.sampled_from(["other xids", "other times", "other LSNs", "nothing"]))
def test_a_server_that_was_reset(
    logs: Iterator[_Log], data: Any, steps: Any, others: Any, certain: Any, later: Any, difference: str
) -> None:
    """It lacks the log's last transaction, and has others since, or none: refused once it is past the log's end."""
    log, reset = next(logs), _Wal().with_records(steps)
    gone = [certain, *others] if data.draw(st.booleans()) else [*others, certain]
    wal = reset.with_records(gone)
    log.capture_some(data, reset, int(_BEGUN), is_whole=True)
    log.capture_some(data, wal, log.told[-1], is_whole=data.draw(st.booleans()))
    complete = log.position.complete_lsn
    lost = [record for record in wal.records[len(steps) :] if record.is_certain and record.end <= complete]
    assume(lost)
    slot = data.draw(st.sampled_from([lsn for lsn in log.told if lsn <= reset.end]))
    match difference:
        case "other xids":
            reset = replace(reset, xid=reset.xid + 5).with_records(gone)
        case "other times":
            reset = replace(reset, clock=reset.clock + 1).with_records(gone)
        case "other LSNs":
            reset = replace(reset, end=reset.end + 5).with_records(gone)
    # The index of a log has no time of what is prepared at its end.
    has_time = not isinstance(lost[-1].messages[-1], pgo.Prepare | pgo.StreamPrepare)
    assume(lost[-1] not in reset.records and (has_time or difference != "other times"))
    overlap, before = log.overlap(slot), log.committed()
    assert overlap is not None
    capture = _Capture(log.directory, log.options, overlap.start_lsn, overlap)
    for record in reset.with_records([("message", int(complete)), *later]).records:
        for message in record.messages if record.lsn >= overlap.start_lsn else ():
            capture.take(message)
    assert capture.tracker.gap is not None and capture.tracker.gap.void_after == slot
    capture.writer.close()
    assert log.committed() == before
