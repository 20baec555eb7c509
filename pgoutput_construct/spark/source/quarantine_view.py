"""The view ``quarantine``: the rows of committed transactions that cannot be decoded, each with the reason."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.descriptions import UNDESCRIBED
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.spark.source.options import SourceOptions
from pgoutput_construct.spark.source.pieces import Piece, Range
from pgoutput_construct.spark.source.planning import Found, pieces
from pgoutput_construct.spark.source.reading import Part, parts_of_piece
from pgoutput_construct.spark.visible_rows import rows_of

__all__ = ["QuarantineView"]

Numbers = NDArray[np.int64]

_SCHEMA: Final = pa.schema(
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


class _Rows(InputPartition):
    def __init__(self, piece: Piece, schema: pa.Schema) -> None:
        self.piece = piece
        self.schema = schema


class QuarantineView:
    """What the other views leave out under ``badRecords=quarantine``; ``_relation_oid`` is 0 where it is not known."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options

    def schema(self, log: ChangeLog, as_of: int) -> pa.Schema:
        """Return the columns."""
        return _SCHEMA

    def tasks(self, log: ChangeLog, as_of: int, wanted: Range, schema: pa.Schema) -> list[InputPartition]:
        """Return a task for some segments each."""
        return [_Rows(piece, schema) for piece in pieces(log, log.index, wanted, Found(log.index, wanted))]

    def read(self, task: _Rows) -> Iterator[pa.RecordBatch]:
        """Read the rows of the segments, without their values."""
        for part in parts_of_piece(task.piece):
            if found := list(_bad(part)):
                yield pa.RecordBatch.from_pylist(found, schema=_SCHEMA).select(task.schema.names)


def _bad(part: Part) -> Iterator[dict[str, Any]]:
    rows, logged = rows_of(part.rows, part.index)
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


def _reasons(part: Part, rows: Numbers, descriptions: Numbers) -> Iterator[tuple[int, str]]:
    """Yield the rows that are malformed, that nothing describes, or that do not fit what does."""
    for row in np.unique(rows[descriptions == UNDESCRIBED]).tolist():
        oid = int(part.index.rows["relation_oid"][row])
        undescribed = f"no Relation has described the relation OID {oid} before this row"
        yield row, undescribed if part.index.valid[row] else str(part.index.error(row))
    for number in np.unique(descriptions[descriptions != UNDESCRIBED]).tolist():
        chosen = rows[descriptions == number]
        description = part.plan.history.descriptions[number]
        for block in table_rows(part.index, chosen, DecodePlan(description, _NOTHING)):
            yield from ((error.row, str(error)) for error in block.errors)
