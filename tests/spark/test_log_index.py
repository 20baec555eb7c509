"""What is asked of the transactions of a log is answered without unpacking them, and as if all were looked at."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index import indexes, log_index
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.changelog._index.manifest import Blocks
from pgoutput_construct.changelog._index.planning import (
    LostHistory,
    commit_stats,
    committed_transactions,
    earliest_after,
    last_commit,
)
from pgoutput_construct.changelog._segment.prune_note import Pruned, write_pruned
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex, struct_array
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark._log_view.change_columns import changes_schema
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._source.micro_batches import Limits, first_needed_seq, next_seq, offset_at
from pgoutput_construct.spark._source.read_range import LogRange, _last_seq_by
from pgoutput_construct.spark._source.task_plan import table_tasks
from pgoutput_construct.spark._verify.expected_rows import is_ahead, near_the_end
from pgoutput_construct.wire import Lsn, Timestamp
from tests.live.recording import Recording
from tests.spark.logs import write_recording

pytestmark = pytest.mark.slow

SEEDS = range(12)
STEPS = (1, 1, 1, 5, -3, 2**29, 2**31 - 5, -(2**30))
"""How far an xid is from the one before."""


def random_index(seed: int, segments: int = 8) -> LogIndex:
    """Return the index of a log that no server has written: its xids wrap around, its times go back."""
    source = random.Random(seed)
    found, seq, xid, lsn = list[SegmentIndex](), 0, source.randrange(2**32), 0
    begun: int | None = None
    for _ in range(segments):
        first_seq, rows = seq, []
        for _ in range(source.choice((0, 1, 4, 9))):
            begin, seq = seq if begun is None else begun, seq + source.randrange(1, 5)
            xid, lsn = (xid + source.choice(STEPS)) % 2**32, lsn + source.randrange(1, 3)
            begun = None
            rows.append(
                {
                    "seq": seq,
                    "xid": xid,
                    "streamed": source.random() < 0.2,
                    "outcome": source.choice(("committed",) * 5 + ("aborted",)),
                    "commit_lsn": lsn,
                    "end_lsn": lsn,
                    "commit_time": lsn * 10 + source.randrange(-30, 30),
                    "spans": [{"first": begin, "last": seq}],
                    "aborted": [],
                }
            )
            seq += 1
        if source.random() < 0.5:  # one that goes on
            begun, seq = seq, seq + 2
        end, seq = max(seq, first_seq), max(seq, first_seq) + 1
        found.append(SegmentIndex.from_lists(first_seq, end, lsn, transactions=struct_array("transactions", rows)))
    return LogIndex.concat(found)


def last_in_all(transactions: pa.Table, what: str, limit: int, end: int) -> int | None:
    """Say what positions say of a time or an LSN, out of all transactions."""
    seqs, numbers = (transactions[name].to_numpy() for name in ("seq", f"commit_{what}"))
    later = seqs[numbers > limit]
    found = seqs[(numbers <= limit) & (seqs < (later[0] if len(later) else end + 1))]
    return int(found.max()) if len(found) else None


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_answer_as_all_transactions_do(seed: int) -> None:
    """The last commit, times, what is still needed, and what a snapshot does not see."""
    index, source = random_index(seed), random.Random(seed)
    everything = index.transactions
    for lost in ((), (LostHistory(index.last_seq // 2, 7),)):
        commits = committed_transactions(everything, lost)
        assert commit_stats(index, lost)["commits"].sum() == len(commits)
    commits = committed_transactions(everything)
    for seq in source.sample(range(-1, index.last_seq + 1), 12):
        before, later = (commits.filter(compare(commits["seq"], seq)) for compare in (pc.less_equal, pc.greater))
        assert last_commit(index, seq) == (before.to_pylist() or [None])[-1]
        assert earliest_after(index, seq) == pc.min(later["commit_time"]).as_py()
        begins = pc.struct_field(pc.list_flatten(everything["spans"]), "first").to_numpy()
        needed = begins[everything["seq"].to_numpy() > seq].min(initial=seq + 1)
        assert first_needed_seq(index, seq) == needed
        xmax = source.choice([*commits["xid"].to_pylist(), source.randrange(2**32)]) + source.randrange(3)
        snapshot = Snapshot(max(xmax - source.randrange(3), 0), xmax, (), Lsn(0))
        log: Any = SimpleNamespace(opened=SimpleNamespace(index=index))
        xids = before["xid"].to_numpy()
        assert is_ahead(log, seq, snapshot) == (snapshot.invisible(xids) & near_the_end(xids, xmax)).any()
    for what in ("lsn", "time"):
        for limit in source.sample(commits[f"commit_{what}"].to_pylist(), min(6, len(commits))):
            if (last := last_in_all(commits, what, limit, index.last_seq)) is not None:
                assert _last_seq_by(index, what, limit) == last
                continue
            with pytest.raises(ChangeLogError, match="the log begins after"):
                _last_seq_by(index, what, limit)


@pytest.fixture
def log(tmp_path: Path, recordings: dict[str, Recording], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of streams and two-phase transactions, with manifests."""
    monkeypatch.setattr(indexes, "SMALL", 4)
    recording = recordings["18-v4-text"]
    write_recording(LocalStore(tmp_path, durable=False), recording, rows=len(recording.payloads) // 40)
    return tmp_path


@pytest.mark.parametrize("limits", [Limits(transactions=3), Limits(bytes=4_000), Limits(5, 3_000)])
def test_limits_hold_over_parts(log: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few transactions are unpacked at a time, a batch ends where the limit says."""
    known, found = ChangeLog(log), list[list[int]]()
    for size in (1, 4, 1 << 15):
        monkeypatch.setattr(log_index, "PART_TRANSACTIONS", size)
        ends = [-1]
        while (end := next_seq(known, ends[-1], limits)) != ends[-1]:
            ends.append(end)
        found.append(ends)
    assert len(found[0]) > 5 and found[0] == found[1] == found[2]


def test_planning_unpacks_no_transactions(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in manifests are read by who asks for them, or for a position amid a segment."""

    def fail(*_: object) -> None:
        raise AssertionError("transactions were read")

    monkeypatch.setattr(Blocks, "read", fail)
    known = LogTables.from_log(ChangeLog(log))
    for table in known.tables.values():
        schema = changes_schema(table.columns)
        assert table_tasks(known, table, LogRange(-1, known.as_of), table.columns, schema)
    assert next_seq(known.log, -1, Limits()) <= known.as_of and offset_at(known.index, known.as_of).lsn
    with pytest.raises(AssertionError):
        known.log.transactions()


def test_who_has_opened_a_log_keeps_it(log: Path) -> None:
    """Manifests that are replaced, by compaction too, take nothing from who has read them; what was pruned is said."""
    expected = ChangeLog(log).transactions().to_pylist()
    merged, compacted, pruned = ChangeLog(log), ChangeLog(log), ChangeLog(log)
    assert merged.index.ended and compacted.index.ended and pruned.index.ended
    indexes.rewrite_manifests(LocalStore(log), merged.segments[-3].last_seq)
    assert merged.transactions().to_pylist() == expected
    assert compact(log, CompactionLimits(grace=0)).merged
    assert compacted.transactions().to_pylist() == expected
    gone, kept = ChangeLog(log).segments
    write_pruned(gone.store, Pruned(kept.first_seq, Lsn(0), Timestamp(0)))
    gone.store.delete(gone.name)
    with pytest.raises(ChangeLogError, match="pruned since the log was opened: open it again"):
        pruned.transactions()
