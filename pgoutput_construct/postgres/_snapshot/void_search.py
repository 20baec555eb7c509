"""Which rows do not count of a copy that was made in several attempts: found in the log, without the server.

Each attempt in which chunks were read has a snapshot, and sees all that an earlier one sees (``partial_copies``). The
rows of a chunk were read under the snapshot of the attempt in which it was read as a whole; where it was brought up to
date later, those of its rows that the earlier snapshot may not have seen were read again. Under the last snapshot, S,

- a row that was read under S is in the table, as it was read;
- a row that was read earlier, under R, is in the table as it was read, unless a transaction that S sees and R does not
  has updated or deleted it. The stream has the key of each such row (its replica identity), and the log has the stream
  up to what S sees. What became of an updated row was read later: its new version is in a page that was read under S,
  or has an xid that is not before the ``xmin`` of R, by which it was read again;
- a row that was read again under a later snapshot was read twice, perhaps without a change: not every xid from
  ``xmin`` on is one that R did not see (``pg_visible_in_snapshot`` would not tell for subtransactions, which snapshots
  do not list). The later one counts. They have the same key, which is unique under any snapshot.

So an earlier row is void if its key is among those that changed since, or that were read again later. **Levels** say
since when: the level of an attempt is its number, that of a change the number of the last attempt that does not see it,
and that of a row that was read again the number of the attempt before. A row is void if its key has a level that is not
below its own. Besides, rows are void whose chunk was not read to its end in their attempt.

Of a table without a key (``copy_plans``) no row may have changed. Then the rows of transactions before the ``xmin`` of
a snapshot stay, and what was read of later ones counts in the last attempt only, which read them again.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._facts.partial_copies import CopyAttempt, PartialCopy
from pgoutput_construct.changelog._facts.visibility import Visibility
from pgoutput_construct.changelog._facts.void_rows import VoidRows
from pgoutput_construct.changelog._index.planning import committed_transactions, relation_history, spans_of
from pgoutput_construct.changelog._index.row_counts import COPIED
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog._segment.segment_schema import scopes_of
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar.descriptions import find_descriptions
from pgoutput_construct.columnar.index import BatchIndex, index_batch
from pgoutput_construct.columnar.row_keys import UnsentKeyError, row_keys
from pgoutput_construct.postgres._snapshot.chunks import ChangedTableError
from pgoutput_construct.wire.messages import Delete, Insert, Update
from pgoutput_construct.wire.options import STATE_PARAMETERS

__all__ = ["VoidSearch"]

_ROWS: Final = 1 << 20
"""Rows whose keys are looked up together: the keys that changed are put into a hash table each time."""
_BYTES: Final = 64 << 20
"""A copy is begun again, too, if the keys that changed since, or were read again, take more memory: with the hash table
of ``_ROWS`` it is four times as much."""
_SHARE: Final = 10
"""A copy is begun again if more than this part of the rows that were read has changed since: their keys are in memory,
and readers would have to leave the rows out."""
_LEAST: Final = 100_000
"""Fewer changes are never a reason for that."""
_INSERT: Final = Insert.TAG[0]
_CHANGES: Final = [Update.TAG[0], Delete.TAG[0]]
"""The tags of what changes rows that exist. A table that is truncated has another file (``CopyPlan.leaves``)."""


class _Keys(NamedTuple):
    """Keys of rows, each with a level."""

    keys: pa.Array
    levels: Numbers

    @property
    def size(self) -> int:
        """The size in bytes."""
        return int(self.keys.nbytes) + self.levels.nbytes


class _Runs(NamedTuple):
    """Runs of copied rows whose seqs are consecutive: columns with one entry for each."""

    chunks: Numbers
    attempts: Numbers
    """The indexes of the attempts that read them."""
    first: Numbers
    last: Numbers
    """The first and the last seq."""
    segments: Numbers
    """The index of the segment."""

    def take(self, chosen: Flags) -> "_Runs":
        """Return those that a mask selects."""
        return _Runs(*(column[chosen] for column in self))

    def bounds(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last seq of each."""
        return zip(self.first.tolist(), self.last.tolist(), strict=True)


class VoidSearch:
    """The search for the void rows of one copy, whose rows are all durable, as is what its last snapshot sees."""

    def __init__(self, log: ChangeLog, copy: PartialCopy, key_columns: Sequence[str]) -> None:
        """Prepare.

        Args:
            log: The log.
            copy: The copy; its last attempt has brought all chunks up to date.
            key_columns: The columns of the replica identity, by which the stream says what has changed.
        """
        self._log, self._copy, self._names = log, copy, tuple(key_columns)
        self._oid, self._last = copy.plan.relation_oid, len(copy.attempts) - 1
        self._counted = sorted({attempt for _, attempt in copy.reads})
        """The attempts in which chunks were read, the last one among them."""
        self._history = relation_history(log.index)
        self._found = list[_Keys]()
        self._bytes = self._merged_bytes = 0

    def run(self) -> tuple[int, VoidRows]:
        """Return how many rows count, and those that do not.

        Raises:
            ChangedTableError: The log does not say which rows have changed, or they are many.
            ChangeLogError: A segment is damaged.
            MissingFileError: Segments were merged, or pruned, meanwhile: search the log as it is then.
        """
        plan, read_in, rows = self._copy.plan, self._copy.read_in(), self._copy.plan.rows_in(self._log.index)
        if self._log.index.first_seq > self._copy.attempts[self._counted[0]].seq:
            raise ChangedTableError("the log was pruned")
        if any(read_in.get(chunk) != self._last for chunk in range(plan.first_chunk, plan.last_chunk + 1)):
            raise ChangedTableError("the log does not say that all of its chunks were read")
        most = max(rows // _SHARE, _LEAST)
        try:
            for each in self._changed():
                self._note(each)
            if sum(len(each.keys) for each in self._found) > most and self._merged() > most:
                raise ChangedTableError(f"more than {most:,} rows have changed since, of {rows:,} that were read")
            void = [np.zeros(0, np.int64), *self._void()]
        except UnsentKeyError as error:
            raise ChangedTableError(str(error)) from error
        seqs = np.sort(np.concatenate(void))
        return rows - len(seqs), VoidRows.from_seqs(seqs)

    def _note(self, keys: _Keys) -> None:
        """Remember keys that changed, or were read again; of what is found of a key the highest level counts."""
        self._found.append(keys)
        self._bytes += keys.size
        if self._bytes >= max(_BYTES, 2 * self._merged_bytes) and self._merged() and self._bytes > _BYTES:
            raise ChangedTableError(f"the keys of rows that have changed since take more than {_BYTES >> 20} MB")

    def _merged(self) -> int:
        """Merge what was found of the same keys; return their number."""
        found = pa.table({"key": pa.concat_arrays([each.keys for each in self._found])})
        found = found.append_column("level", pa.array(np.concatenate([each.levels for each in self._found])))
        found = found.group_by("key").aggregate([("level", "max")]).combine_chunks()
        merged = _Keys(found["key"].chunk(0), found["level_max"].to_numpy())
        self._found, self._bytes, self._merged_bytes = [merged], merged.size, merged.size
        return len(merged.keys)

    def _changed(self) -> Iterator[_Keys]:
        """Yield the keys of the rows that committed transactions have updated or deleted between the snapshots."""
        transactions = _committed_since(self._log, self._copy.attempts[self._counted[0]])
        lsns, xids = (transactions[name].to_numpy() for name in ("commit_lsn", "xid"))
        if not len(lsns):
            return
        levels = np.full(len(lsns), -1, np.int64)
        for number in self._counted:
            attempt = self._copy.attempts[number]
            visibility = Visibility.of_commits(attempt.snapshot, attempt.until, lsns, xids)
            levels[visibility.adds(lsns, xids)] = number
        is_between = (levels >= 0) & (levels < self._last)
        if not is_between.any():
            return
        level_of_commit = dict(zip(lsns[is_between].tolist(), levels[is_between].tolist(), strict=True))
        spans = spans_of(transactions.filter(pa.array(is_between)))
        first, last, commits = (np.asarray(each) for each in (spans.first_seq, spans.last_seq, spans.commit_lsn))
        for segment in self._changing_segments():
            if segment.last_seq < first.min() or segment.first_seq > last.max():
                continue
            rows = self._changes(segment)
            seqs, writers = rows["seq"].to_numpy(), rows["xid"].fill_null(-1).to_numpy()
            numbers = np.searchsorted(first, seqs, "right") - 1
            counts = (numbers >= 0) & (seqs <= last[numbers])
            for number in set(np.unique(numbers[counts]).tolist()) & spans.aborted.keys():
                counts &= (numbers != number) | ~np.isin(writers, [*spans.aborted[number]])
            chosen = np.flatnonzero(counts)
            if len(chosen) and self._copy.plan.in_halves:
                raise ChangedTableError("it has no key, and some of its rows were updated or deleted since")
            of_rows = np.array([level_of_commit[lsn] for lsn in commits[numbers[chosen]].tolist()], np.int64)
            yield from self._keys(segment, rows.take(pa.array(chosen)), of_rows)

    def _void(self) -> Iterator[Numbers]:
        """Yield the seqs of void rows, the last segment first: what was read again comes before what it replaces.

        The index knows which rows are of chunks that do not count. Only for keys segments are read.
        """
        waiting = dict[int, list[tuple[pa.Array, Numbers]]]()
        runs = self._copied_runs()
        counts = self._copy.counts(runs.chunks, runs.attempts)
        if self._copy.plan.in_halves:
            counts &= ((runs.chunks - self._copy.plan.first_chunk) % 2 == 0) | (runs.attempts == self._last)
        yield from (np.arange(first, last + 1) for first, last in runs.take(~counts).bounds())
        if self._copy.plan.in_halves:
            return
        runs = runs.take(counts)
        first_reads = dict(reversed(self._copy.reads))
        were_read = np.array([first_reads[chunk] for chunk in runs.chunks.tolist()], np.int64) < runs.attempts
        for segment_index in np.unique(runs.segments)[::-1].tolist():
            segment, here = self._log.segments[segment_index], runs.segments == segment_index
            for attempt in np.unique(runs.attempts[here])[::-1].tolist():
                mine = here & (runs.attempts == attempt)
                if (mine & were_read).any():
                    rows = self._rows(segment, runs.take(mine & were_read))
                    for each in self._keys(segment, rows, np.full(len(rows), attempt - 1, np.int64)):
                        self._note(each)
                if attempt < self._last and any((each.levels >= attempt).any() for each in self._found):
                    for other in [number for number in waiting if number != attempt]:
                        yield from self._look_up(other, waiting.pop(other))
                    found = [*self._keys_and_seqs(segment, self._rows(segment, runs.take(mine)))]
                    waiting.setdefault(attempt, []).extend(found)
                    if sum(len(keys) for keys, _ in waiting[attempt]) >= _ROWS:
                        yield from self._look_up(attempt, waiting.pop(attempt))
        for attempt, found in waiting.items():
            yield from self._look_up(attempt, found)

    def _look_up(self, attempt: int, rows: Sequence[tuple[pa.Array, Numbers]]) -> Iterator[Numbers]:
        """Yield the seqs of those of the rows of an attempt whose keys changed, or were read again, since."""
        since = [each.keys.filter(pa.array(each.levels >= attempt)) for each in self._found]
        changed = pa.concat_arrays([pa.array([], pa.binary()), *since])
        if len(changed):
            for keys, seqs in rows:
                yield seqs[pc.is_in(keys, value_set=changed).to_numpy(zero_copy_only=False)]

    def _runs(self, is_of: Callable[[pa.Table], Flags]) -> tuple[pa.Table, Numbers]:
        """Return the runs of rows of the table that are of some kind, and the indexes of their segments."""
        runs, segments = self._log.index.located("rows")
        chosen = (runs["oid"].to_numpy() == self._oid) & is_of(runs)
        return runs.filter(pa.array(chosen)), segments[chosen]

    def _copied_runs(self) -> "_Runs":
        """Return the runs of rows of its chunks."""
        plan = self._copy.plan

        def is_of(runs: pa.Table) -> Flags:
            chunks, is_row = runs["xid"].to_numpy(), runs["tag"].to_numpy() == _INSERT
            is_mine = (chunks >= plan.first_chunk) & (chunks <= plan.last_chunk)
            return np.asarray(is_mine & is_row & (runs["span"].to_numpy() == COPIED), np.bool_)

        runs, segments = self._runs(is_of)
        chunks, first, last = (runs[name].to_numpy().astype(np.int64) for name in ("xid", "first_seq", "last_seq"))
        if (runs["count"].to_numpy() != last - first + 1).any():
            raise ChangedTableError("rows of a chunk are not consecutive in the log")
        return _Runs(chunks, self._copy.attempts_at(first), first, last, segments)

    def _changing_segments(self) -> Iterator[Segment]:
        """Yield the segments that have updates or deletes of rows of the table."""
        _, segments = self._runs(lambda runs: np.isin(runs["tag"].to_numpy(), _CHANGES))
        yield from (self._log.segments[number] for number in np.unique(segments).tolist())

    def _rows(self, segment: Segment, runs: "_Runs") -> pa.Table:
        """Return the rows of some runs in a segment."""
        table = self._log.table(segment)
        seqs, order = table["seq"].to_numpy(), np.argsort(runs.first)
        indexes = np.searchsorted(runs.first[order], seqs, "right") - 1
        is_within = (indexes >= 0) & (seqs <= runs.last[order][indexes])
        return table.filter(pa.array(is_within)).combine_chunks()

    def _changes(self, segment: Segment) -> pa.Table:
        """Return the updates and deletes of rows of the table in a segment."""
        table = self._log.table(segment)
        is_change = np.isin(table["tag"].fill_null(0).to_numpy(), _CHANGES)
        is_change &= table["relation_oid"].fill_null(-1).to_numpy() == self._oid
        return table.filter(pa.array(is_change)).combine_chunks()

    def _keys(self, segment: Segment, rows: pa.Table, levels: Numbers) -> Iterator[_Keys]:
        """Yield the keys of rows with their levels: of the old row, where it was sent."""
        for keys, chosen in self._extracted(segment, rows):
            yield _Keys(keys, levels[chosen])

    def _keys_and_seqs(self, segment: Segment, rows: pa.Table) -> Iterator[tuple[pa.Array, Numbers]]:
        seqs = rows["seq"].to_numpy()
        for keys, chosen in self._extracted(segment, rows):
            yield keys, seqs[chosen]

    def _extracted(self, segment: Segment, rows: pa.Table) -> Iterator[tuple[pa.Array, Numbers]]:
        """Yield the keys of rows, each time with the indexes of these."""
        if not len(rows):
            return
        index = _indexed(segment, rows)
        oids = np.full(len(rows), self._oid, np.int64)
        described = find_descriptions(self._history, oids, scopes_of(rows), rows["seq"].to_numpy())
        is_old = index.rows["old"] >= 0
        for number in np.unique(described).tolist():
            if number < 0:
                raise ChangedTableError("rows were sent without a description")
            for side, has_side in (("old", is_old), ("new", ~is_old)):
                chosen = np.flatnonzero((described == number) & has_side)
                if len(chosen):
                    yield row_keys(index, chosen, side, self._history.descriptions[number], self._names), chosen


def _indexed(segment: Segment, rows: pa.Table) -> BatchIndex:
    (batch,) = rows.to_batches()
    states = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in STATE_PARAMETERS}
    layout: dict[str, Any] = dict(segment.options.layout())
    return index_batch(batch.column("payload"), **{**layout, **states})


def _committed_since(log: ChangeLog, first: CopyAttempt) -> pa.Table:
    """Return the transactions that committed at or after what the first attempt sees of all."""
    numbers = log.index.table["most_end_lsn"].to_numpy()
    begins = np.flatnonzero(numbers >= int(first.since))
    index = log.index.slice(int(begins[0])) if len(begins) else log.index.slice(len(log.index))
    found = committed_transactions(index.transactions)
    return found.filter(pc.greater_equal(found["commit_lsn"], int(first.since)))
