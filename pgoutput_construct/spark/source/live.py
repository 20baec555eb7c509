"""A slot without a change log: peeked at in a task, advanced when Spark has committed what was read.

Each read is decoded by the server again, from where the slot is: it can be repeated until then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pgoutput_construct.changelog._index.build import IndexBuilder
from pgoutput_construct.changelog._index.planning import committed, relation_history, spans_of
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._segment.columns import segment_table
from pgoutput_construct.columnar import chosen_types, columns_schema
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.postgres.slot_peek import open_slot
from pgoutput_construct.spark.change_frames import CHANGE, changes_schema
from pgoutput_construct.spark.metadata import Prefix
from pgoutput_construct.spark.source.fields import held_fields
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.spark.source.pace import Pace
from pgoutput_construct.spark.source.pieces import Used
from pgoutput_construct.spark.source.reading import Part, rows_of_part
from pgoutput_construct.spark.visible_rows import Plan
from pgoutput_construct.stream.identifiers import split_name
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire import Commit, Lsn, Relation, Type, parse
from pgoutput_construct.wire.options import STATE_PARAMETERS

if TYPE_CHECKING:
    from pgoutput_construct.changelog._index.index import SegmentIndex

__all__ = ["LiveReader", "LiveStreamReader", "live_schema"]

_LAYOUT = {"proto_version": 1}
_LOOK = 0.5
"""Seconds between two looks at a slot that has nothing new, at least: for each the server decodes what there is."""


def live_schema(options: SourceOptions) -> pa.Schema:
    """Return the columns of a table as the server has it now, those that are asked for, and those of CHANGE."""
    with _slot(options) as slot:
        description = _description(slot.describe(*split_name(options.table or "")))
        columns = columns_schema(description, chosen_types(options.types or ""))
    if options.columns is not None:
        columns = pa.schema([columns.field(name) for name in columns.names if name in options.columns])
    prefix = Prefix(options.metadataPrefix)
    prefix.check(str(options.table), columns.names, case_sensitive=True)  # Spark itself minds what is set
    return prefix.schema(changes_schema(prefix.columns(columns)))


@dataclass
class _Peek(InputPartition):
    """What a task reads: the transactions that end after one position, up to another."""

    options: SourceOptions = field(repr=False)
    after: int
    until: int
    schema: pa.Schema


class LiveReader(DataSourceReader):
    """Reads all that a slot has now, and leaves it there."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return one task: a slot can be read by one at a time."""
        with _slot(self.options) as slot:
            ends = slot.ends()
        return [_task(self.options, self.schema, 0, ends[-1].end_lsn)] if ends else []

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Peek at the slot."""
        return _read(partition) if isinstance(partition, _Peek) else iter(())


class LiveStreamReader(DataSourceStreamReader):
    """Reads a slot transaction by transaction; an offset is the end of one in the WAL.

    With it come the time of that commit, and ``finalizedUntil``: nothing that the slot has after the offset committed
    before. A reader of PySpark 4.1 that starts again does not know where its query is. Spark lets a slot continue
    when the next batch is planned, so that the slot has the last transaction still: it gives the same offset again,
    and no batch is made of nothing.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self._last: dict[str, Any] | None = None
        self._told: dict[str, Any] = {}
        self._pace = Pace(_LOOK)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as those below
        """Return where the slot is."""
        with _slot(self.options) as slot:
            return {"end_lsn": str(slot.confirmed)}

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return where the last transaction ends that the slot has, or that of the limit's number."""
        last = start or self._last
        self._told = self._pace.ask(lambda: self._next(last), lambda found: found != self._told)
        return self._told

    def _next(self, last: dict[str, Any] | None) -> dict[str, Any]:
        """Return the offset that the next micro-batch goes up to; the last one where nothing is new."""
        after = 0 if last is None else int(Lsn(last["end_lsn"]))
        with _slot(self.options) as slot:
            ends = [commit for commit in slot.ends() if commit.end_lsn > after]
            if not ends:
                return last or {"end_lsn": str(slot.confirmed)}
        most = self.options.maxTransactionsPerTrigger if last else None
        return _offset(ends, min(most or len(ends), len(ends)))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return one task: a slot can be read by one at a time."""
        self._last = end
        return [_task(self.options, self.schema, int(Lsn(start["end_lsn"])), int(Lsn(end["end_lsn"])))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Peek at the slot."""
        assert isinstance(partition, _Peek)
        return _read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Let the server forget what was read."""
        with _slot(self.options) as slot:
            slot.advance(Lsn(end["end_lsn"]))


def _slot(options: SourceOptions) -> Any:
    assert options.dsn is not None and options.slot is not None
    return open_slot(options.dsn, options.slot, options.publications or ())


def _offset(commits: Sequence[Commit], count: int) -> dict[str, Any]:
    """Return the offset after the first ``count`` of commits. Clocks do not quite order them."""
    last, final = commits[count - 1], min(commit.commit_time for commit in commits[count - 1 :])
    times = {"commit_time": str(last.commit_time), "finalizedUntil": str(final)}
    return {"end_lsn": str(last.end_lsn), **times}


def _task(options: SourceOptions, schema: StructType, after: int, until: int) -> _Peek:
    known = live_schema(options)
    return _Peek(options, after, until, held_fields(known, schema, options, options.table or ""))


def _read(task: _Peek) -> Iterator[pa.RecordBatch]:
    options = task.options
    with _slot(options) as slot:
        payloads = slot.payloads(Lsn(task.until))
    if not payloads:
        return
    part, used = _part(options, payloads, task.after, task.until)
    prefix = Prefix(options.metadataPrefix)
    inner = prefix.inner(task.schema)
    columns = pa.schema([each for each in inner if each.name not in CHANGE])
    yield from map(prefix.batch, rows_of_part(part, columns, inner, used, options.badRecords != "fail"))


def _part(options: SourceOptions, payloads: list[bytes], after: int, until: int) -> tuple[Part, dict[int, Used]]:
    """Index payloads as a change log would."""
    zeros, count = np.zeros(len(payloads), np.int64), len(payloads)
    states = {name: np.zeros(count, np.bool_) for name in STATE_PARAMETERS}
    block = Block.of(payloads, zeros, zeros, _LAYOUT, states, np.full(count, OUTSIDE))
    builder = IndexBuilder()
    builder.add(block)
    index: SegmentIndex = builder.finish(until)
    transactions = committed(index.transactions)
    ends = transactions["end_lsn"].to_numpy()
    wanted = transactions.filter(pa.array((ends > after) & (ends <= until)))
    history = relation_history(index)
    (rows,) = segment_table([block], 0).combine_chunks().to_batches()
    mine, own = split_name(options.table or ""), Prefix(options.metadataPrefix)
    used = {
        each.seq: Used(tuple(own.inner_name(column.name) for column in each.relation.columns), {})
        for each in history.descriptions
        if (each.relation.namespace or "pg_catalog", each.relation.name) == mine
    }
    return Part(f"(slot {options.slot})", rows, block.index, Plan(spans_of(wanted), history)), used


def _description(payloads: list[bytes]) -> Description:
    messages = [parse(payload) for payload in payloads]
    types = {message.type_oid: message for message in messages if isinstance(message, Type)}
    (relation,) = (message for message in messages if isinstance(message, Relation))
    return Description(0, relation, types)
