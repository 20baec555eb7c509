"""Counts the rows of a segment by transaction, table, description and tag, so that readers can plan without them."""

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._segment.block import Block, Numbers
from pgoutput_construct.changelog._segment.segment_index import COLUMNS
from pgoutput_construct.columnar.batch_arrays import all_same, look_up, tag_table
from pgoutput_construct.columnar.descriptions import OUTSIDE, find_descriptions
from pgoutput_construct.columnar.index import IS_ROW
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.wire.messages import Begin, BeginPrepare, Commit, Prepare, StreamStart, StreamStop

__all__ = [
    "COPIED",
    "NO_SPAN",
    "PLAIN",
    "copied_rows",
    "count_copied",
    "count_rows",
    "settled",
    "spans_of",
]

PLAIN: Final = -1
"""Instead of a span: rows of transactions that begin and end in the segment, were not streamed, and committed."""
NO_SPAN: Final = -2
"""Instead of a span: rows outside of all transactions, which no server sends."""
COPIED: Final = -3
"""Instead of a span: rows of a snapshot chunk, whose number replaces the xid."""

_KEYS: Final = ["span", "xid", "oid", "description", "tag"]
_OPENERS: Final = tag_table({Begin, BeginPrepare, StreamStart})
_CLOSERS: Final = tag_table({Commit, Prepare, StreamStop})
_NUMBERS: Final = [("count", "sum"), ("first_seq", "min"), ("last_seq", "max")]


def spans_of(block: Block, first_seq: int, plain: Numbers, since: int | None) -> Numbers:
    """Return for each payload the first seq of the span that contains it, PLAIN in plain transactions, or NO_SPAN.

    Args:
        block: The payloads.
        first_seq: The seq of the first one.
        plain: The rows of the Begins of plain transactions.
        since: The first seq of the span that is open before the block; None for none.
    """
    bounds = np.flatnonzero(look_up(block.index.tags, _OPENERS | _CLOSERS) & block.index.valid)
    tags = block.index.tags[bounds]
    after = np.where(_OPENERS[tags], bounds + first_seq, NO_SPAN)
    after[np.searchsorted(bounds, plain)] = PLAIN
    lengths = np.diff(np.concatenate([[0], bounds, [len(block)]]))
    return np.repeat(np.append(NO_SPAN if since is None else since, after), lengths)


def count_rows(block: Block, first_seq: int, spans: Numbers, history: RelationHistory) -> pa.Table:
    """Count the rows of a block, malformed ones too, by the fields of ``rows`` in the index.

    A truncate counts once per table.

    Args:
        block: The payloads.
        first_seq: The seq of the first one.
        spans: The span of each payload (``spans_of``).
        history: The Relations that describe the rows.
    """
    index = block.index
    rows, oids = index.tables()
    malformed = np.flatnonzero(IS_ROW[index.tags] & ~index.valid)
    rows, oids = np.append(rows, malformed), np.append(oids, index.rows["relation_oid"][malformed].astype(np.int64))
    scopes, seqs = block.stream_xid[rows], rows + first_seq
    xids = np.where(index.valid[rows], block.xid[rows], index.rows["xid"][rows])
    columns = {
        "span": spans[rows],
        "xid": np.where(scopes == OUTSIDE, 0, xids) if block.chunk is None else np.full(len(rows), block.chunk),
        "oid": oids,
        "description": _described(history, oids, scopes, seqs),
        "tag": index.tags[rows],
    }
    ones = {"count": np.ones(len(rows), np.int64), "first_seq": seqs, "last_seq": seqs}
    return _counted(pa.table(columns | ones))


def count_copied(block: Block, first_seq: int, history: RelationHistory) -> pa.Table:
    """Count the rows of a block of copied rows: nearly always a Relation, then rows of one table.

    Args:
        block: The payloads.
        first_seq: The seq of the first one.
        history: The Relations that describe the rows.
    """
    index, rows = block.index, np.flatnonzero(IS_ROW[block.index.tags])
    oids = index.rows["relation_oid"]
    is_plain = len(rows) and len(block) - rows[0] == len(rows) and index.valid.all()
    if is_plain and all_same(index.tags[rows]) and all_same(oids[rows]):
        found = count_rows(block.take(rows[:1]), first_seq + int(rows[0]), np.full(1, COPIED, np.int64), history)
        numbers = {"count": len(rows), "last_seq": first_seq + int(rows[-1])}
        for name, number in numbers.items():
            column_index = found.schema.get_field_index(name)
            found = found.set_column(
                column_index, found.schema.field(column_index), pa.array([number], found.schema.types[column_index])
            )
        return found
    return count_rows(block, first_seq, np.full(len(block), COPIED, np.int64), history)


def settled(counted: Iterable[pa.Table], committed: Numbers) -> pa.Array:
    """Return the ``rows`` entries of the index for all rows of a segment.

    Args:
        counted: The counts of its blocks.
        committed: The first seqs of the spans of transactions that turned out to be PLAIN.
    """
    table = pa.concat_tables(counted)
    if len(committed):
        is_plain = pc.is_in(table["span"], pa.array(committed))
        table = table.set_column(0, "span", pc.if_else(is_plain, PLAIN, table["span"]))
    together = _counted(table).combine_chunks().sort_by("first_seq")
    kind = COLUMNS["rows"]
    arrays = [together[field.name].combine_chunks().cast(field.type) for field in kind]
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def copied_rows(rows: pa.StructArray) -> pa.Array:
    """Return the ``snapshots`` entries of an index: the number of rows of each chunk, from its ``rows`` entries."""
    table = pa.Table.from_struct_array(rows)
    copied = table.filter(pc.equal(table["span"], COPIED))
    found = copied.group_by(["xid", "oid"], use_threads=False).aggregate([("count", "sum")]).combine_chunks()
    kind = COLUMNS["snapshots"]
    columns = zip(kind, (found["xid"], found["oid"], found["count_sum"]), strict=True)
    return pa.StructArray.from_arrays([c.combine_chunks().cast(field.type) for field, c in columns], fields=list(kind))


def _counted(table: pa.Table) -> pa.Table:
    found = table.group_by(_KEYS, use_threads=False).aggregate(_NUMBERS)
    return found.select([*_KEYS, "count_sum", "first_seq_min", "last_seq_max"]).rename_columns(table.schema.names)


def _described(history: RelationHistory, oids: Numbers, scopes: Numbers, seqs: Numbers) -> Numbers:
    """Return the seq of the Relation that describes each row, or -1."""
    known = np.array([*(description.seq for description in history.descriptions), -1], np.int64)
    return known[find_descriptions(history, oids, scopes, seqs)]
