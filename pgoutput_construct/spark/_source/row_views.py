"""Views of rows of all tables: ``changes`` (old and new rows as maps of text), ``quarantine`` (rows not decoded)."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog._index.log_index import LogMoment
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.descriptions import UNDESCRIBED
from pgoutput_construct.columnar.row_schema import DecodedBlock
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.spark._log_view.committed_rows import logged_rows
from pgoutput_construct.spark._source.read_range import LogRange
from pgoutput_construct.spark._source.segment_rows import (
    SegmentPart,
    decode_blocks,
    read_parts,
    row_error,
    with_column_names,
)
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.spark._source.task_plan import SelectedRuns, ViewScanTask, plan_segments
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.protocol import RelationColumnFlags, UpdateOldKind

_ROW: Final = pa.map_(pa.string(), pa.string())
_CHANGES: Final = pa.schema(
    [
        ("_table", pa.string()),
        ("_op", pa.string()),
        ("before", _ROW),
        ("after", _ROW),
        ("_unchanged", pa.list_(pa.string())),
        ("_commit_lsn", pa.int64()),
        ("_seq", pa.int64()),
        ("_commit_time", pa.timestamp("us", tz="UTC")),
        ("_xid", pa.int64()),
        ("_relation_oid", pa.int64()),
    ]
)


class ChangesView:
    """The rows of all tables, each as its table was described at the time: ``_table`` is its name then.

    ``before`` has only the key where only that was sent; ``after`` has no unsent columns.
    """

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: LogMoment) -> pa.Schema:
        """Return the columns."""
        return _CHANGES

    def tasks(self, log: ChangeLog, as_of: LogMoment, selected: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Return a task for some segments each."""
        found = SelectedRuns(log.index, selected)
        skips = self.options.badRecords != "fail"
        return [ViewScanTask(group, schema, skips) for group in plan_segments(log, log.index, selected, found)]

    def read(self, task: ViewScanTask) -> Iterator[pa.RecordBatch]:
        """Read the rows of the segments."""
        for part in read_parts(task.group):
            if not task.skips_malformed:
                for bad in part.committed.rows[part.committed.descriptions == UNDESCRIBED][:1].tolist():
                    raise row_error(part, bad, part.index.error(bad))
            for description, chosen in part.described:
                for columns in _of_table(part, description, chosen, task.skips_malformed):
                    arrays = [columns[name].cast(_CHANGES.field(name).type) for name in task.schema.names]
                    yield pa.RecordBatch.from_arrays(arrays, schema=task.schema)


def _of_table(
    part: SegmentPart, description: Description, chosen: Numbers, skips_malformed: bool
) -> Iterator[dict[str, pa.Array]]:
    relation = description.relation
    names = [column.name for column in relation.columns]
    # A column may have the name of an added one: they are decoded under their numbers.
    numbers = tuple(f"{number}" for number in range(len(names)))
    columns = pa.schema([(number, pa.string()) for number in numbers])
    seqs = part.rows.column("seq").to_numpy()
    of_key = np.array([bool(column.flags & RelationColumnFlags.KEY) for column in relation.columns], np.bool_)
    for block in decode_blocks(part, columns, with_column_names(description, numbers), chosen, skips_malformed):
        assert block.batch is not None
        count = block.batch.num_rows
        yield {
            "_table": pa.repeat(full_name(relation), count),
            "_op": block.batch.column("_op"),
            "_relation_oid": pa.repeat(relation.relation_oid, count),
            **_rows(part, block, names, of_key),
            **part.plan.position_columns(part.origins[block.rows], seqs[block.rows]),
        }


def _rows(part: SegmentPart, block: DecodedBlock, names: Sequence[str], of_key: Flags) -> dict[str, pa.Array]:
    batch, index = block.batch, part.index
    assert batch is not None
    count, width = batch.num_rows, len(names)
    after, before = (
        np.repeat((index.rows["new"][block.rows] >= 0)[:, None], width, 1),
        np.zeros((count, width), np.bool_),
    )
    before |= (index.rows["old"][block.rows] >= 0)[:, None]
    only_key = index.rows["old_kind"][block.rows] == ord(UpdateOldKind.KEY)
    before[only_key] &= of_key
    unchanged, sent = batch.column("_unchanged"), pc.list_value_length(batch.column("_unchanged")).to_numpy()
    named: list[list[str]] = [[]] * count
    for row in np.flatnonzero(sent).tolist():
        unsent = [int(number) for number in unchanged[row].as_py()]
        after[row, unsent] = False
        named[row] = [names[number] for number in unsent]
    old = batch.column("_before").flatten() if width else []
    new = [batch.column(number) for number in range(width)]
    return {
        "before": _maps(old, names, before, index.rows["old"][block.rows] >= 0),
        "after": _maps(new, names, after, index.rows["new"][block.rows] >= 0),
        "_unchanged": pa.array(named, pa.list_(pa.string())),
    }


def _maps(columns: Sequence[pa.Array], names: Sequence[str], has: Flags, is_row: Flags) -> pa.Array:
    """Return a map per row, of the columns that it has; null where there is no row."""
    count, width = has.shape
    lengths = has.sum(axis=1)
    offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32), mask=np.append(~is_row, False))
    rows, column_indexes = np.nonzero(has)
    keys = pa.array(list(names), pa.string()).take(pa.array(column_indexes)) if width else pa.array([], pa.string())
    values = pa.concat_arrays(columns).take(pa.array(column_indexes * count + rows)) if width else keys
    return pa.MapArray.from_arrays(offsets, keys, values)


_QUARANTINE: Final = pa.schema(
    [
        ("seq", pa.int64()),
        ("segment", pa.string()),
        ("_commit_lsn", pa.int64()),
        ("_relation_oid", pa.int64()),
        ("reason", pa.string()),
        ("payload", pa.binary()),
    ]
)
_NOTHING: Final = pa.schema([])


class QuarantineView:
    """The rows that other views skip with ``badRecords=quarantine``; ``_relation_oid`` is 0 where it is unknown."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: LogMoment) -> pa.Schema:
        """Return the columns."""
        return _QUARANTINE

    def tasks(self, log: ChangeLog, as_of: LogMoment, selected: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Return a task for some segments each."""
        found = SelectedRuns(log.index, selected)
        return [ViewScanTask(group, schema) for group in plan_segments(log, log.index, selected, found)]

    def read(self, task: ViewScanTask) -> Iterator[pa.RecordBatch]:
        """Find the malformed rows of the segments, without decoding the values of others."""
        for part in read_parts(task.group):
            if found := list(_malformed(part)):
                yield pa.RecordBatch.from_pylist(found, schema=_QUARANTINE).select(task.schema.names)


def _malformed(part: SegmentPart) -> Iterator[dict[str, Any]]:
    rows, logged = logged_rows(part.rows, part.index)
    committed = part.plan.committed(logged)
    of_row = dict(zip(rows[committed.rows].tolist(), range(len(committed.rows)), strict=True))
    for row, reason in _reasons(part, rows[committed.rows], committed.descriptions):
        index = of_row[row]
        yield {
            "seq": part.rows.column("seq")[row].as_py(),
            "segment": part.name,
            "_commit_lsn": int(part.plan.column("commit_lsn")[committed.origins[index]]),
            "_relation_oid": int(logged.oids[committed.rows[index]]),
            "reason": reason,
            "payload": part.index.payload(row),
        }


def _reasons(part: SegmentPart, rows: Numbers, descriptions: Numbers) -> Iterator[tuple[int, str]]:
    """Yield rows that are malformed, that no Relation describes, or that do not fit their Relation; and why."""
    for row in np.unique(rows[descriptions == UNDESCRIBED]).tolist():
        oid = int(part.index.rows["relation_oid"][row])
        undescribed = f"no Relation has described the relation OID {oid} before this row"
        yield row, undescribed if part.index.valid[row] else str(part.index.error(row))
    for number in np.unique(descriptions[descriptions != UNDESCRIBED]).tolist():
        chosen = rows[descriptions == number]
        description = part.plan.history.descriptions[number]
        for block in table_rows(part.index, chosen, DecodePlan(description, _NOTHING)):
            yield from ((error.row, str(error)) for error in block.errors)
