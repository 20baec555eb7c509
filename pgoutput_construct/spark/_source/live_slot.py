"""A slot without a change log: peeked at in a task, advanced when Spark has committed what was read.

Until then a read can be repeated: the server decodes again from the slot's confirmed position.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pgoutput_construct.changelog._index.index_builder import IndexBuilder
from pgoutput_construct.changelog._index.planning import committed_transactions, relation_history, spans_of
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._segment.segment_schema import segment_table
from pgoutput_construct.columnar import chosen_types, columns_schema
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres.slot_peek import PEEK_CHANGES, open_slot
from pgoutput_construct.spark._execution import leading_reason
from pgoutput_construct.spark._log_view.added_columns import Prefix
from pgoutput_construct.spark._log_view.committed_rows import LogPlan
from pgoutput_construct.spark._source.change_images import form_of
from pgoutput_construct.spark._source.micro_batches import (
    PollInterval,
    QueryOffset,
    is_unlimited,
    query_fields,
    read_limit,
)
from pgoutput_construct.spark._source.segment_rows import SegmentPart, decode_part
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.spark._source.task_plan import ReaderColumns
from pgoutput_construct.stream.identifiers import full_name, split_name
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire import Commit, Lsn, Relation, Type, parse
from pgoutput_construct.wire.options import STATE_PARAMETERS

_LAYOUT = {"proto_version": 1}
_POLL_SECONDS = 0.5
"""The least seconds between two polls of a slot without news: for each the server decodes its WAL again."""


def live_schema(options: SourceOptions) -> pa.Schema:
    """Return the requested columns of a table as the server has it now, and those of CHANGE."""
    return _schema(_described(options), options)


def _described(options: SourceOptions) -> Description:
    with _slot(options) as slot:
        return _description(slot.describe(*split_name(options.table or "")))


def _schema(description: Description, options: SourceOptions) -> pa.Schema:
    columns = columns_schema(description, chosen_types(options.types or ""))
    if options.columns is not None:
        columns = pa.schema([columns.field(name) for name in columns.names if name in options.columns])
    prefix, form = Prefix(options.metadataPrefix), form_of(options)
    prefix.check(str(options.table), columns.names, case_sensitive=True, added=form.added)  # Spark minds what is set
    return prefix.reader_schema(form.schema(prefix.replay_columns(columns)))


@dataclass
class _Peek(InputPartition):
    """A task: the transactions that end after one LSN, up to another."""

    options: SourceOptions = field(repr=False)
    after: int
    until: int
    schema: pa.Schema
    relation: Relation
    """The table as the server had it when the task was planned."""


class LiveReader(DataSourceReader):
    """Reads everything that a slot has now, and does not advance it."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return one task: a slot has one reader at a time."""
        with _slot(self.options) as slot:
            last = slot.last_end()
        return [] if last is None else [_task(self.options, self.schema, 0, last.end_lsn)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Peek at the slot."""
        return _read(partition) if isinstance(partition, _Peek) else iter(())


class LiveStreamReader(DataSourceStreamReader):
    """Reads a slot transaction by transaction; an offset is the end of one in the WAL.

    It also has the time of that commit, and ``finalizedUntil``: no later commit of the slot is earlier. Spark commits a
    batch, which advances the slot, when it plans the next one. So the slot still has the last transaction of a query
    that restarts: with the trigger ``availableNow`` of PySpark 4.1, which does not give its offset, the answer is the
    same one, and no empty batch is made.

    That trigger is also why the first micro-batch of PySpark 4.1 has no limit unless an option sets one: a query that
    ends after one must not leave changes out. Its task reads it in parts.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self._query = QueryOffset(self._confirmed, options.maxTransactionsPerTrigger is not None)
        self._answer: dict[str, Any] = {}
        self._target: int | None = None
        self._interval = PollInterval(_POLL_SECONDS)

    @leading_reason()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as those below
        """Return the slot's confirmed position."""
        return self._query.initial()

    def _confirmed(self) -> dict[str, Any]:
        with _slot(self.options) as slot:
            return {"end_lsn": str(slot.confirmed)}

    @leading_reason()
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return the end of the last transaction in the slot, or of the last within the limit."""
        last = start or self._query.current()
        # Without an offset it may be a query with the trigger availableNow in PySpark 4.1, which ends there.
        has_limit = last is not None and not is_unlimited(limit)
        self._answer = self._interval.poll(lambda: self._next(last, has_limit), lambda found: found != self._answer)
        return self._answer

    def _next(self, last: dict[str, Any] | None, has_limit: bool) -> dict[str, Any]:
        """Return the offset where the next micro-batch ends; the last one where nothing is new."""
        after = 0 if last is None else int(Lsn(last["end_lsn"]))
        with _slot(self.options) as slot:
            if has_limit:
                ends = slot.ends(after)
            else:
                last_end = slot.last_end()
                ends = [last_end] if last_end is not None and last_end.end_lsn > after else []
            if self._target is not None:
                ends = [commit for commit in ends if commit.end_lsn <= self._target]
            if not ends:
                return last or {"end_lsn": str(slot.confirmed)}
        most = self.options.maxTransactionsPerTrigger if has_limit else None
        return _offset(ends, min(most or len(ends), len(ends)))

    @leading_reason()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return one task: a slot has one reader at a time."""
        self._query.plan(end)
        return [_task(self.options, self.schema, int(Lsn(start["end_lsn"])), int(Lsn(end["end_lsn"])))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Peek at the slot."""
        assert isinstance(partition, _Peek)
        with leading_reason():
            yield from _read(partition)

    @leading_reason()
    def commit(self, end: dict[str, Any]) -> None:
        """Advance the slot past what was read."""
        with _slot(self.options) as slot:
            slot.advance(Lsn(end["end_lsn"]))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return that there is a limit, that of a peek at least: for PySpark 4.2 and later, as the one below."""
        return read_limit(self.options.maxTransactionsPerTrigger or PEEK_CHANGES)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the slot ends now: later changes are left for another run."""
        with _slot(self.options) as slot:
            last = slot.last_end()
        self._target = 0 if last is None else last.end_lsn


def _slot(options: SourceOptions) -> Any:
    assert options.dsn is not None and options.slot is not None
    return open_slot(options.dsn, options.slot, options.publications or ())


def _offset(commits: Sequence[Commit], count: int) -> dict[str, Any]:
    """Return the offset after the first ``count`` commits, whose timestamps are not always in order."""
    last, final = commits[count - 1], min(commit.commit_time for commit in commits[count - 1 :])
    times = {"commit_time": str(last.commit_time), "finalizedUntil": str(final)}
    return {"end_lsn": str(last.end_lsn), **times}


def _task(options: SourceOptions, schema: StructType, after: int, until: int) -> _Peek:
    description = _described(options)
    fields = query_fields(_schema(description, options), schema, options, options.table or "")
    return _Peek(options, after, until, fields, description.relation)


def _read(task: _Peek) -> Iterator[pa.RecordBatch]:
    options, builder = task.options, IndexBuilder()
    prefix, form = Prefix(options.metadataPrefix), form_of(options)
    inner = prefix.replay_schema(task.schema, form.added)
    columns = pa.schema([each for each in inner if each.name not in form.added])
    skips = options.badRecords != "fail"
    with _slot(options) as slot:
        for payloads in slot.payloads(Lsn(task.until)):
            part, used = _part(task, builder, payloads)
            for description, _ in part.described:
                if description.seq in used:
                    _check_columns(task, description.relation, columns.names)
            yield from map(prefix.reader_batch, decode_part(part, columns, inner, used, skips, form.has_images))


def _check_columns(task: _Peek, sent: Relation, requested: Sequence[str]) -> None:
    """Raise ChangeLogError where a column may have been renamed since rows were sent: they would have null for it."""
    before, now = ([column.name for column in each.columns] for each in (sent, task.relation))
    own = Prefix(task.options.metadataPrefix)
    gone = [name for name in before if name not in now]
    lacking = [name for name in now if name not in before and own.replay_name(name) in requested]
    if gone and lacking:
        raise ChangeLogError(
            f"{full_name(task.relation)}: rows in slot {task.options.slot!r} have {', '.join(map(repr, gone))}, which "
            f"the table no longer has, and lack {', '.join(map(repr, lacking))}: whether a column was renamed, the "
            "slot does not say. Capture it into a change log, which knows columns by number; or select columns that "
            "these rows have (the option columns)"
        )


def _part(task: _Peek, builder: IndexBuilder, payloads: list[bytes]) -> tuple[SegmentPart, dict[int, ReaderColumns]]:
    """Index payloads as the next segment of a log; the table's Relations have its OID, whatever its name was."""
    options, after, until = task.options, task.after, task.until
    zeros, count = np.zeros(len(payloads), np.int64), len(payloads)
    states = {name: np.zeros(count, np.bool_) for name in STATE_PARAMETERS}
    block = Block.from_payloads(payloads, zeros, zeros, _LAYOUT, states, np.full(count, OUTSIDE))
    first_seq = builder.next_seq
    builder.add(block)
    index = builder.finish(until)
    transactions = committed_transactions(index.transactions)
    ends = transactions["end_lsn"].to_numpy()
    selected = transactions.filter(pa.array((ends > after) & (ends <= until)))
    history = relation_history(index)
    (rows,) = segment_table([block], first_seq).combine_chunks().to_batches()
    own = Prefix(options.metadataPrefix)
    used = {
        each.seq: ReaderColumns(tuple(own.replay_name(column.name) for column in each.relation.columns), {})
        for each in history.descriptions
        if each.relation.relation_oid == task.relation.relation_oid
    }
    return SegmentPart(f"(slot {options.slot})", rows, block.index, LogPlan(spans_of(selected), history)), used


def _description(payloads: list[bytes]) -> Description:
    messages = [parse(payload) for payload in payloads]
    types = {message.type_oid: message for message in messages if isinstance(message, Type)}
    (relation,) = (message for message in messages if isinstance(message, Relation))
    return Description(0, relation, types)
