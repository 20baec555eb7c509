"""The view ``changes``: the changes of all tables in one, old and new rows as maps of text."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.descriptions import UNDESCRIBED
from pgoutput_construct.columnar.row_schema import DecodedBlock
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.spark.source.pieces import Piece, Range
from pgoutput_construct.spark.source.planning import Found, pieces
from pgoutput_construct.spark.source.reading import Part, failed, parts_of_piece, renamed
from pgoutput_construct.spark.visible_rows import rows_of
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.protocol import RelationColumnFlags, UpdateOldKind

__all__ = ["ChangesView"]

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_ROW: Final = pa.map_(pa.string(), pa.string())
_SCHEMA: Final = pa.schema(
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


class _Changes(InputPartition):
    def __init__(self, piece: Piece, schema: pa.Schema, keeps_bad: bool) -> None:
        self.piece = piece
        self.schema = schema
        self.keeps_bad = keeps_bad


class ChangesView:
    """The rows of all tables, each as its table was described then: ``_table`` has its name of that time.

    ``before`` has the columns of the key alone where no more was sent; ``after`` leaves out what was not sent.
    """

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the columns."""
        return _SCHEMA

    def tasks(self, log: ChangeLog, as_of: int, wanted: Range, schema: pa.Schema) -> list[InputPartition]:
        """Return a task for some segments each."""
        found = Found(log.index, wanted)
        keeps_bad = self.options.badRecords != "fail"
        return [_Changes(piece, schema, keeps_bad) for piece in pieces(log, log.index, wanted, found)]

    def read(self, task: _Changes) -> Iterator[pa.RecordBatch]:
        """Read the rows of the segments."""
        for part in parts_of_piece(task.piece):
            rows, logged = rows_of(part.rows, part.index)
            visible = part.plan.visible(logged)
            origins = np.zeros(part.rows.num_rows, np.int64)
            origins[rows[visible.rows]] = visible.origins
            if not task.keeps_bad:
                for bad in rows[visible.rows[visible.descriptions == UNDESCRIBED]][:1].tolist():
                    raise failed(part, bad, part.index.error(bad))
            for number in np.unique(visible.descriptions[visible.descriptions != UNDESCRIBED]).tolist():
                chosen = rows[visible.rows[visible.descriptions == number]]
                for columns in _of_table(part, part.plan.history.descriptions[number], chosen, origins, task.keeps_bad):
                    arrays = [columns[name].cast(_SCHEMA.field(name).type) for name in task.schema.names]
                    yield pa.RecordBatch.from_arrays(arrays, schema=task.schema)


def _of_table(
    part: Part, description: Description, chosen: Numbers, origins: Numbers, keeps_bad: bool
) -> Iterator[dict[str, pa.Array]]:
    relation = description.relation
    names = [column.name for column in relation.columns]
    # A column may have the name of one of ours; places are names of their own.
    places = tuple(f"{number}" for number in range(len(names)))
    columns = pa.schema([(place, pa.string()) for place in places])
    copied = bool(origins[chosen[0]] >= len(part.plan.spans.xid))
    seqs = part.rows.column("seq").to_numpy()
    of_key = np.array([bool(column.flags & RelationColumnFlags.KEY) for column in relation.columns], np.bool_)
    for block in table_rows(part.index, chosen, DecodePlan(renamed(description, places), columns), copied=copied):
        for error in block.errors if not keeps_bad else ():
            raise failed(part, error.row, error.error) from error
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


def _rows(part: Part, block: DecodedBlock, names: Sequence[str], of_key: Flags) -> dict[str, pa.Array]:
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
