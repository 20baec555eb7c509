"""A task's work: its segments are read and checked, and the rows that are wanted in them become typed batches."""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog._index.index import SegmentIndex
from pgoutput_construct.changelog._index.planning import relation_history
from pgoutput_construct.changelog._segment.footer import Segment
from pgoutput_construct.changelog._segment.reading import Needed, read_indexed
from pgoutput_construct.changelog._store.store import MissingFileError
from pgoutput_construct.changelog.reader import explain, table_entries
from pgoutput_construct.columnar.batch_arrays import look_up
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.index import IS_ROW, BatchIndex
from pgoutput_construct.columnar.row_schema import DecodedBlock
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark.replicated_tables import Missing
from pgoutput_construct.spark.schema_evolution import with_missing
from pgoutput_construct.spark.source.archives import keep_archives
from pgoutput_construct.spark.source.needed import NeededRows
from pgoutput_construct.spark.source.pieces import Piece, TableRows, Used
from pgoutput_construct.spark.visible_rows import Plan, Visible, index_log, rows_of
from pgoutput_construct.stream.relations import Description

__all__ = ["Part", "failed", "parts_of_piece", "read_part", "read_table_rows", "renamed", "rows_of_part"]

Numbers = NDArray[np.int64]

_BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True)
class Part:
    """Some rows of one segment that may be wanted, and what tells which of them are."""

    name: str
    """What they are from, for messages: the segment."""
    rows: pa.RecordBatch
    """Of the log's SCHEMA."""
    index: BatchIndex
    plan: Plan
    """The wanted transactions and copies, and the descriptions of the segment."""

    @cached_property
    def visible(self) -> Visible:
        """The wanted ones among them, as rows of ``rows``."""
        rows, logged = rows_of(self.rows, self.index)
        found = self.plan.visible(logged)
        return found._replace(rows=rows[found.rows])

    @cached_property
    def origins(self) -> Numbers:
        """Where each row comes from, as ``Plan.origins_at`` has it; 0 for those that are not wanted."""
        origins = np.zeros(self.rows.num_rows, np.int64)
        origins[self.visible.rows] = self.visible.origins
        return origins

    @cached_property
    def described(self) -> tuple[tuple[Description, Numbers], ...]:
        """What describes wanted rows, and which ones."""
        numbers = self.visible.descriptions
        known = np.unique(numbers[numbers >= 0]).tolist()
        return tuple((self.plan.history.descriptions[each], self.visible.rows[numbers == each]) for each in known)


def read_table_rows(task: TableRows) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a table; raises ChangeLogError, with segment, seq and field, for what is no row."""
    for part in parts_of_piece(task.piece, task.oids):
        yield from map(task.prefix.batch, rows_of_part(part, task.columns, task.schema, task.used, task.keeps_bad))


def rows_of_part(
    part: Part, columns: pa.Schema, schema: pa.Schema, used: Mapping[int, Used], keeps_bad: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a table in a part; ``used`` are its descriptions, by the seqs of the Relations.

    ``columns`` are the table's that are wanted, ``schema`` is all that is. Malformed rows are left out where
    ``keeps_bad``, else they raise ChangeLogError.
    """
    for description, chosen in part.described:
        if (found := used.get(description.seq)) is not None:
            for block in _blocks(part, columns, renamed(description, found.names), chosen, keeps_bad):
                yield _typed(part, columns, schema, found.missing, description.relation.relation_oid, block)


def _blocks(
    part: Part, columns: pa.Schema, description: Description, chosen: Numbers, keeps_bad: bool
) -> Iterator[DecodedBlock]:
    copied = bool(part.origins[chosen[0]] >= len(part.plan.spans.xid))
    for block in table_rows(part.index, chosen, DecodePlan(description, columns), copied=copied):
        for error in block.errors if not keeps_bad else ():
            raise failed(part, error.row, error.error) from error
        if block.batch is not None:
            yield block


def _typed(
    part: Part, columns: pa.Schema, schema: pa.Schema, missing: Mapping[str, Missing], oid: int, block: DecodedBlock
) -> pa.RecordBatch:
    assert block.batch is not None
    filled = with_missing(block.batch, {name: value for name, value in missing.items() if name in columns.names})
    places = part.plan.places(part.origins[block.rows], part.rows.column("seq").to_numpy()[block.rows])
    arrays = places | dict(zip(filled.schema.names, filled.columns, strict=True))
    if "_relation_oid" in schema.names:
        arrays["_relation_oid"] = pa.repeat(pa.scalar(oid, pa.int64()), block.batch.num_rows)
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def parts_of_piece(piece: Piece, oids: tuple[int, ...] | None = None) -> Iterator[Part]:
    """Read the segments of a piece; of each the rows that change one of some relations, None for all.

    Raises ChangeLogError for damage, with segment and seqs, and for a segment that is not found here.
    """
    keep_archives()
    for segment in piece.segments:
        needed = NeededRows(piece, segment, oids)
        table, known = read_part(segment, needed)
        plan = Plan(needed.spans(known), relation_history(known), piece.copies)
        for batch in _rows(table, oids).combine_chunks().to_batches(_BATCH_ROWS):
            yield Part(segment.name, batch, index_log(segment.options, batch), plan)


def read_part(segment: Segment, needed: Needed) -> tuple[pa.Table, SegmentIndex]:
    """Read the index of a segment, and the rows that are ``needed``; some near them are there, too.

    Raises as ``parts_of_piece`` does.
    """
    try:
        return read_indexed(segment, needed)
    except MissingFileError as error:
        if segment.store.files():
            raise
        raise ChangeLogError(
            f"segment {segment.place}: not found on the host {platform.node()}, where a task of Spark reads it; the "
            "log is not damaged: put it where all executors find it, on a file system that they share under this path, "
            "or at an address such as s3://bucket/folder"
        ) from error


def _rows(table: pa.Table, oids: tuple[int, ...] | None) -> pa.Table:
    """Leave out what is no row, and rows of other relations; a truncate, and what is malformed, may be of any."""
    tags = table["tag"].fill_null(0).to_numpy()
    is_row = look_up(tags, IS_ROW)
    if oids is not None:
        known = table["relation_oid"]
        is_row &= np.isin(known.fill_null(-1).to_numpy(), np.array([*oids, -1], np.int64))
    return table.filter(pa.array(is_row))


def failed(part: Part, row: int, error: PgoutputError) -> ChangeLogError:
    """Say of an error in one row of a part where it is: segment, seq, field path."""
    (entry,) = table_entries(pa.Table.from_batches([part.rows.slice(row, 1)]), part.name)
    return explain(entry, error)


def renamed(description: Description, names: tuple[str, ...]) -> Description:
    """Return a description under which the columns have the names that the table gives them."""
    relation = description.relation
    columns = tuple(replace(column, name=name) for column, name in zip(relation.columns, names, strict=True))
    return replace(description, relation=replace(relation, columns=columns))
