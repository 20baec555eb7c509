"""Which rows of a log are visible, where they stand, and what one pass over a log tells of them; without Spark."""

import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.spark._log_view.committed_rows import LoggedRows, LogPlan, log_plan, logged_rows, run_bounds
from pgoutput_construct.spark._source.read_range import LogRange
from pgoutput_construct.spark._source.segment_rows import read_parts, row_error
from pgoutput_construct.spark._source.task_plan import SegmentScanTask, SelectedRuns, plan_segments
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transaction_reader import TransactionReader
from tests.live.recording import Recording
from tests.spark.logs import log_options, write_log, write_recording
from tests.stream.spans import find_place
from tools.faults.committed_spans import committed_spans, spans_of_reader

ROWS = pgo.Insert | pgo.Update | pgo.Delete | pgo.Truncate


def planned(log: ChangeLog) -> LogPlan:
    """Return the plan of a log, all of whose messages are parsed one by one."""
    transactions, history = TransactionReader(), RelationHistory()
    for entry in log:
        message = pgo.parse(entry.payload, **log.options.layout(), in_stream=entry.in_stream)
        for reader in (transactions, history):
            reader.read(ControlMessage(entry.seq, entry.stream_xid, message))
    return LogPlan(spans_of_reader(transactions), history)


def found_one_by_one(log: ChangeLog, plan: LogPlan) -> Counter[tuple[object, ...]]:
    """Return seq, table, description and place of every visible row, found without the index."""
    found: Counter[tuple[object, ...]] = Counter()
    for entry in log:
        message = pgo.parse(entry.payload, **log.options.layout(), in_stream=entry.in_stream)
        if isinstance(message, ROWS):
            oids = message.relation_oids if isinstance(message, pgo.Truncate) else (message.relation_oid,)
            place = find_place(plan.spans, entry.seq, message.xid)
            for oid in oids if place is not None else ():
                described = plan.history.index(oid, entry.seq, entry.stream_xid)
                found[entry.seq, oid, plan.history.descriptions[described].seq, place] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["16-v1-text", "18-v2-binary", "18-v4-text", "18-v4-immediate"])
def test_rows_are_those_found_one_by_one(recordings: dict[str, Recording], tmp_path: Path, name: str) -> None:
    """Streamed, rolled back, prepared and truncated: each task finds its rows, their descriptions and places."""
    write_recording(tmp_path, recordings[name], rows=170)
    log = ChangeLog(tmp_path)
    plan, found = log_plan(log), Counter[tuple[object, ...]]()
    expected = planned(log)
    assert committed_spans(log.index) == expected.spans and plan.history.descriptions == expected.history.descriptions
    last = log.index.last_seq
    # What ended by some seq, and what ended after it, are together all.
    for first, end in ((-1, last // 3), (last // 3, last)):
        wanted = LogRange(first, end)
        for piece in plan_segments(log, log.index, wanted, SelectedRuns(log.index, wanted)):
            found += rows_in(pickle.loads(pickle.dumps(piece)))
    assert found == found_one_by_one(log, expected)


def rows_in(group: SegmentScanTask) -> Counter[tuple[object, ...]]:
    """Return seq, table, seq of the description and place of every visible row, as a task finds them."""
    found: Counter[tuple[object, ...]] = Counter()
    for part in read_parts(group):
        rows, logged = logged_rows(part.rows, part.index)
        assert (np.diff(rows) >= 0).all()
        visible = part.plan.committed(logged)
        seqs, oids = logged.seqs[visible.rows], logged.oids[visible.rows]
        places = part.plan.position_columns(visible.origins, seqs)
        columns = places["_commit_lsn"], places["_seq"], places["_commit_time"].cast("int64"), places["_xid"]
        for seq, oid, number, *place in zip(seqs, oids, visible.descriptions, *columns, strict=True):
            lsn, position, unix, xid = (number.as_py() for number in place)
            description = part.plan.history.descriptions[number].seq
            found[seq, oid, description, (lsn, position, unix - 946_684_800_000_000, xid)] += 1
    return found


def test_malformed_rows_are_among_the_rows(tmp_path: Path) -> None:
    """A row that breaks off behind its header has its table; one that breaks off before has none."""
    lsn, time = pgo.Lsn(5), pgo.Timestamp(6)
    insert = pgo.build(pgo.Insert(None, 7, (b"1",)))
    begin, commit = pgo.build(pgo.Begin(lsn, time, 7)), pgo.build(pgo.Commit(lsn, pgo.Lsn(6), time))
    write_log(tmp_path, [begin, *[insert] * 3, commit], log_options(), errors={2: insert[:-1], 3: insert[:4]})
    log = ChangeLog(tmp_path)
    wanted = LogRange(-1, log.index.last_seq)
    (piece,) = plan_segments(log, log.index, wanted, SelectedRuns(log.index, wanted))
    (part,) = read_parts(piece, (7,))
    rows, logged = logged_rows(part.rows, part.index)
    assert (rows.tolist(), logged.oids.tolist()) == ([0, 1, 2], [7, 7, 0])
    with pytest.raises(pgo.ChangeLogError, match=r"seq 2 .*Insert\.new"):
        raise row_error(part, 1, part.index.error(1))


@pytest.mark.parametrize("time", ["infinity", "-infinity", str(-(2**62)), str(252_455_616_000_000_000)])
def test_commit_times_that_no_calendar_has(time: str) -> None:
    """They are null; those at the ends of the calendar are not."""
    transactions = TransactionReader()
    for seq, each in enumerate([time, "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59.999999+00:00"]):
        moment = pgo.Timestamp.from_text(each)
        transactions.read(ControlMessage(2 * seq, None, pgo.Begin(pgo.Lsn(seq), moment, seq)))
        transactions.read(ControlMessage(2 * seq + 1, None, pgo.Commit(pgo.Lsn(seq), pgo.Lsn(seq), moment)))
    plan = LogPlan(spans_of_reader(transactions), RelationHistory())
    times = plan.position_columns(np.arange(3), np.array([0, 2, 4]))["_commit_time"].to_pylist()
    assert [time and time.year for time in times] == [None, 1, 9999]


def test_a_log_without_rows() -> None:
    """Nothing is visible where there is nothing."""
    nothing = np.zeros(0, np.int64)
    visible = LogPlan(spans_of_reader(TransactionReader()), RelationHistory()).committed(LoggedRows(*[nothing] * 4))
    assert [len(column) for column in visible] == [0, 0, 0]


@pytest.mark.parametrize(
    ("keys", "bounds"),
    [
        ([[], []], ([], [])),
        ([[1], [2]], ([0], [0])),
        ([[1, 1, 1, 2], [2, 2, 3, 3]], ([0, 2, 3], [1, 2, 3])),
    ],
)
def test_bounds_of_runs(keys: list[list[int]], bounds: tuple[list[int], list[int]]) -> None:
    """A run ends where any number changes."""
    first, last = run_bounds(np.array(keys, np.int64))
    assert (first.tolist(), last.tolist()) == bounds
