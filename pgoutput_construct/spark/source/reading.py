"""A task's work: its segments are read and checked, and the rows that are wanted in them become typed batches."""

import platform
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog.footer import Segment
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.planning import relation_history, spans_of
from pgoutput_construct.changelog.reader import explain, table_entries
from pgoutput_construct.changelog.reading import read_indexed
from pgoutput_construct.changelog.store import MissingFileError
from pgoutput_construct.columnar import rows_schema
from pgoutput_construct.columnar.gather import look_up
from pgoutput_construct.columnar.index import IS_ROW, BatchIndex
from pgoutput_construct.columnar.rows import Decoded
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark.columns import Missing
from pgoutput_construct.spark.missing import with_missing
from pgoutput_construct.spark.plan import Plan
from pgoutput_construct.spark.rows import index_log, rows_of
from pgoutput_construct.spark.source.archives import keep_archives
from pgoutput_construct.spark.source.pieces import Piece, TableRows, Used, is_own
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.transactions import Spans

__all__ = ["Part", "failed", "parts_of_piece", "read_part", "read_table_rows", "renamed", "rows_of_part"]

Numbers = NDArray[np.int64]

_BATCH_ROWS: Final = 1 << 16
_COLUMNS: Final = tuple(column.name for column in fields(Spans) if column.name != "aborted")


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


def read_table_rows(task: TableRows) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a table; raises ChangeLogError, with segment, seq and field, for what is no row."""
    for part in parts_of_piece(task.piece, task.oids):
        yield from rows_of_part(part, task.columns, task.schema, task.used, task.keeps_bad)


def rows_of_part(
    part: Part, columns: pa.Schema, schema: pa.Schema, used: Mapping[int, Used], keeps_bad: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a table in a part; ``used`` are its descriptions, by the seqs of the Relations.

    ``columns`` are the table's that are wanted, ``schema`` is all that is. Malformed rows are left out where
    ``keeps_bad``, else they raise ChangeLogError.
    """
    rows, logged = rows_of(part.rows, part.index)
    visible = part.plan.visible(logged)
    origins = np.zeros(part.rows.num_rows, np.int64)
    origins[rows[visible.rows]] = visible.origins
    for number in np.unique(visible.descriptions[visible.descriptions >= 0]).tolist():
        description = part.plan.history.descriptions[number]
        if (found := used.get(description.seq)) is not None:
            chosen = rows[visible.rows[visible.descriptions == number]]
            for block in _blocks(part, columns, renamed(description, found.names), chosen, origins, keeps_bad):
                yield _typed(part, columns, schema, found.missing, block, origins)


def _blocks(
    part: Part, columns: pa.Schema, description: Description, chosen: Numbers, origins: Numbers, keeps_bad: bool
) -> Iterator[Decoded]:
    copied = bool(origins[chosen[0]] >= len(part.plan.spans.xid))
    for block in table_rows(part.index, chosen, description, columns, rows_schema(columns), copied=copied):
        for error in block.errors if not keeps_bad else ():
            raise failed(part, error.row, error.error) from error
        if block.batch is not None:
            yield block


def _typed(
    part: Part,
    columns: pa.Schema,
    schema: pa.Schema,
    missing: Mapping[str, Missing],
    block: Decoded,
    origins: Numbers,
) -> pa.RecordBatch:
    assert block.batch is not None
    filled = with_missing(block.batch, {name: value for name, value in missing.items() if name in columns.names})
    places = part.plan.places(origins[block.rows], part.rows.column("seq").to_numpy()[block.rows])
    arrays = places | dict(zip(filled.schema.names, filled.columns, strict=True))
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def parts_of_piece(piece: Piece, oids: tuple[int, ...] | None = None) -> Iterator[Part]:
    """Read the segments of a piece; of each the rows that change one of some relations, None for all.

    Raises ChangeLogError for damage, with segment and seqs, and for a segment that is not found here.
    """
    keep_archives()
    for segment in piece.segments:
        table, known = read_part(piece, segment)
        plan = Plan(_spans(piece, segment, known), relation_history(known), piece.copies)
        for batch in _rows(table, oids).combine_chunks().to_batches(_BATCH_ROWS):
            yield Part(segment.name, batch, index_log(segment.options, batch), plan)


def read_part(piece: Piece, segment: Segment) -> tuple[pa.Table, SegmentIndex]:
    """Read the rows and the index of one of a piece's segments; raises as ``parts_of_piece`` does."""
    try:
        table, index = read_indexed(segment)
        return table, piece.indexes[segment.first_seq] if index is None else index
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


def _spans(piece: Piece, segment: Segment, index: SegmentIndex) -> Spans:
    """Return the wanted transactions of a segment: its own, and those that the piece has."""
    transactions = piece.range.transactions(index)
    # A segment that covers one that was compacted away has more of them.
    own = is_own(transactions, np.full(len(transactions), segment.first_seq, np.int64))
    own &= transactions["seq"].to_numpy() <= segment.last_seq
    mine = spans_of(transactions.filter(pa.array(own)))
    return _merged(mine, piece.spans) if piece.spans is not None and len(piece.spans.xid) else mine


def _merged(own: Spans, others: Spans) -> Spans:
    """Put the spans of two together; those of a segment's own transactions have no rolled-back subtransactions."""
    first = np.concatenate([np.frombuffer(own.first_seq, np.int64), np.frombuffer(others.first_seq, np.int64)])
    order = np.argsort(first, kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    columns = {name: _taken(getattr(own, name), getattr(others, name), order) for name in _COLUMNS}
    aborted = {int(places[len(own.xid) + place]): xids for place, xids in others.aborted.items()}
    return Spans(**columns, aborted=aborted)


def _taken(own: "array[int]", others: "array[int]", order: Numbers) -> "array[int]":
    both = np.concatenate([np.frombuffer(own, np.int64), np.frombuffer(others, np.int64)])
    return array("q", both[order].tobytes())


def failed(part: Part, row: int, error: PgoutputError) -> ChangeLogError:
    """Say of an error in one row of a part where it is: segment, seq, field path."""
    (entry,) = table_entries(pa.Table.from_batches([part.rows.slice(row, 1)]), part.name)
    return explain(entry, error)


def renamed(description: Description, names: tuple[str, ...]) -> Description:
    """Return a description under which the columns have the names that the table gives them."""
    relation = description.relation
    columns = tuple(replace(column, name=name) for column, name in zip(relation.columns, names, strict=True))
    return replace(description, relation=replace(relation, columns=columns))
