"""The view ``changes``: the changes of all tables in one, old and new rows as maps of text."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar.descriptions import UNDESCRIBED
from pgoutput_construct.columnar.reading import Columns
from pgoutput_construct.columnar.rows import Decoded
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.spark._log_view.visible_rows import logged_rows
from pgoutput_construct.spark._source.read_range import LogRange
from pgoutput_construct.spark._source.segment_rows import SegmentPart, read_parts, row_error, with_column_names
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.spark._source.task_plan import SegmentGroup, SelectedRuns, groups_with_rows
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.protocol import RelationColumnFlags, UpdateOldKind

__all__ = ["ChangesView", "QuarantineView"]

Numbers = NDArray[np.int64]

Flags = NDArray[np.bool_]

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


class _ChangesTask(InputPartition):
    def __init__(self, group: SegmentGroup, schema: pa.Schema, skips_malformed: bool) -> None:
        self.group = group
        self.schema = schema
        self.skips_malformed = skips_malformed


class ChangesView:
    """The rows of all tables, each as its table was described then: ``_table`` has its name of that time.

    ``before`` has the columns of the key alone where no more was sent; ``after`` leaves out what was not sent.
    """

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the columns."""
        return _CHANGES

    def tasks(self, log: ChangeLog, as_of: int, wanted: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Return a task for some segments each."""
        found = SelectedRuns(log.index, wanted)
        skips_malformed = self.options.badRecords != "fail"
        return [
            _ChangesTask(group, schema, skips_malformed) for group in groups_with_rows(log, log.index, wanted, found)
        ]

    def read(self, task: _ChangesTask) -> Iterator[pa.RecordBatch]:
        """Read the rows of the segments."""
        for part in read_parts(task.group):
            rows, logged = logged_rows(part.rows, part.index)
            visible = part.plan.visible(logged)
            origins = np.zeros(part.rows.num_rows, np.int64)
            origins[rows[visible.rows]] = visible.origins
            if not task.skips_malformed:
                for bad in rows[visible.rows[visible.descriptions == UNDESCRIBED]][:1].tolist():
                    raise row_error(part, bad, part.index.error(bad))
            for number in np.unique(visible.descriptions[visible.descriptions != UNDESCRIBED]).tolist():
                chosen = rows[visible.rows[visible.descriptions == number]]
                for columns in _of_table(
                    part, part.plan.history.descriptions[number], chosen, origins, task.skips_malformed
                ):
                    arrays = [columns[name].cast(_CHANGES.field(name).type) for name in task.schema.names]
                    yield pa.RecordBatch.from_arrays(arrays, schema=task.schema)


def _of_table(
    part: SegmentPart, description: Description, chosen: Numbers, origins: Numbers, skips_malformed: bool
) -> Iterator[dict[str, pa.Array]]:
    relation = description.relation
    names = [column.name for column in relation.columns]
    # A column may have the name of one of ours; places are names of their own.
    places = tuple(f"{number}" for number in range(len(names)))
    columns = pa.schema([(place, pa.string()) for place in places])
    copied = bool(origins[chosen[0]] >= len(part.plan.spans.xid))
    seqs = part.rows.column("seq").to_numpy()
    of_key = np.array([bool(column.flags & RelationColumnFlags.KEY) for column in relation.columns], np.bool_)
    for block in table_rows(
        part.index, chosen, Columns(with_column_names(description, places), columns), copied=copied
    ):
        for error in block.errors if not skips_malformed else ():
            raise row_error(part, error.row, error.error) from error
        if block.batch is None:
            continue
        count = block.batch.num_rows
        yield {
            "_table": pa.repeat(full_name(relation), count),
            "_op": block.batch.column("_op"),
            "_relation_oid": pa.repeat(relation.relation_oid, count),
            **_rows(part, block, names, of_key),
            **part.plan.places(origins[block.rows], seqs[block.rows]),
        }


def _rows(part: SegmentPart, block: Decoded, names: Sequence[str], of_key: Flags) -> dict[str, pa.Array]:
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
        unsent = [int(place) for place in unchanged[row].as_py()]
        after[row, unsent] = False
        named[row] = [names[place] for place in unsent]
    old = batch.column("_before").flatten() if width else []
    new = [batch.column(number) for number in range(width)]
    return {
        "before": _maps(old, names, before, index.rows["old"][block.rows] >= 0),
        "after": _maps(new, names, after, index.rows["new"][block.rows] >= 0),
        "_unchanged": pa.array(named, pa.list_(pa.string())),
    }


def _maps(columns: Sequence[pa.Array], names: Sequence[str], there: Flags, is_row: Flags) -> pa.Array:
    """Return a map a row: of those columns that are there, null where there is no row."""
    count, width = there.shape
    lengths = there.sum(axis=1)
    offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32), mask=np.append(~is_row, False))
    rows, places = np.nonzero(there)
    keys = pa.array(list(names), pa.string()).take(pa.array(places)) if width else pa.array([], pa.string())
    values = pa.concat_arrays(columns).take(pa.array(places * count + rows)) if width else keys
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


class _QuarantineTask(InputPartition):
    def __init__(self, group: SegmentGroup, schema: pa.Schema) -> None:
        self.group = group
        self.schema = schema


class QuarantineView:
    """What the other views leave out under ``badRecords=quarantine``; ``_relation_oid`` is 0 where it is not known."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the columns."""
        return _QUARANTINE

    def tasks(self, log: ChangeLog, as_of: int, wanted: LogRange, schema: pa.Schema) -> list[InputPartition]:
        """Return a task for some segments each."""
        return [
            _QuarantineTask(group, schema)
            for group in groups_with_rows(log, log.index, wanted, SelectedRuns(log.index, wanted))
        ]

    def read(self, task: _QuarantineTask) -> Iterator[pa.RecordBatch]:
        """Read the rows of the segments, without their values."""
        for part in read_parts(task.group):
            if found := list(_malformed(part)):
                yield pa.RecordBatch.from_pylist(found, schema=_QUARANTINE).select(task.schema.names)


def _malformed(part: SegmentPart) -> Iterator[dict[str, Any]]:
    rows, logged = logged_rows(part.rows, part.index)
    visible = part.plan.visible(logged)
    of_row = dict(zip(rows[visible.rows].tolist(), range(len(visible.rows)), strict=True))
    for row, reason in _reasons(part, rows[visible.rows], visible.descriptions):
        place = of_row[row]
        yield {
            "seq": part.rows.column("seq")[row].as_py(),
            "segment": part.name,
            "_commit_lsn": int(part.plan.column("commit_lsn")[visible.origins[place]]),
            "_relation_oid": int(logged.oids[visible.rows[place]]),
            "reason": reason,
            "payload": part.index.payload(row),
        }


def _reasons(part: SegmentPart, rows: Numbers, descriptions: Numbers) -> Iterator[tuple[int, str]]:
    """Yield the rows that are malformed, that nothing describes, or that do not fit what does."""
    for row in np.unique(rows[descriptions == UNDESCRIBED]).tolist():
        oid = int(part.index.rows["relation_oid"][row])
        undescribed = f"no Relation has described the relation OID {oid} before this row"
        yield row, undescribed if part.index.valid[row] else str(part.index.error(row))
    for number in np.unique(descriptions[descriptions != UNDESCRIBED]).tolist():
        chosen = rows[descriptions == number]
        description = part.plan.history.descriptions[number]
        for block in table_rows(part.index, chosen, Columns(description, _NOTHING)):
            yield from ((error.row, str(error)) for error in block.errors)
