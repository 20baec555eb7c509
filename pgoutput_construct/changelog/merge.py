"""The index of one segment that is made of several: theirs put together, not computed anew."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog.index import COLUMNS, SegmentIndex, struct_array
from pgoutput_construct.changelog.usage import copied_rows, settled
from pgoutput_construct.stream.logged import COMMITTED

__all__ = ["merge_indexes"]

_LAST = ("open", "in_force")
_ONE_AFTER_THE_OTHER = ("transactions", "descriptions", "changes", "events", "faults")


def merge_indexes(index: SegmentIndex, before: SegmentIndex | None) -> SegmentIndex:
    """Return the index of all rows of consecutive segments as that of one segment.

    ``before`` is the index of the segment before them; None where there is none: the log begins with them, or is
    pruned up to them, and then no stream is open.
    """
    first, last = index.first_seq, index.last_seq
    in_force = None if before is None else {(row["stream_xid"], row["seq"]) for row in _in_force(before)}
    lists = {name: _entries(index, name, slice(len(index) - 1, None)) for name in _LAST}
    lists |= {name: _entries(index, name) for name in _ONE_AFTER_THE_OTHER}
    lists["inherited"] = struct_array("inherited", _inherited(index, in_force))
    lists["rows"] = settled([index.entries("rows")], _plain(index, first))
    lists["snapshots"] = copied_rows(lists["rows"])
    return SegmentIndex.of(first, last, index.complete_lsn, **lists)


def _in_force(index: SegmentIndex) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = index.entries("in_force", slice(len(index) - 1, None)).to_pylist()
    return found


def _entries(index: SegmentIndex, name: str, of: slice | None = None) -> pa.Array:
    chunks = index.entries(name, of).to_struct_array().chunks
    return pa.concat_arrays(chunks).cast(COLUMNS[name]) if chunks else pa.array([], COLUMNS[name])


def _inherited(index: SegmentIndex, in_force: set[tuple[int | None, int]] | None) -> list[dict[str, Any]]:
    """Return what is in force before all segments, and their rows need, each description once."""
    found: dict[tuple[int | None, int], dict[str, Any]] = {}
    for row in index.entries("inherited").to_pylist():
        if row["seq"] < index.first_seq:
            for scope in _scopes(row, in_force):
                found.setdefault((scope, row["seq"]), row | {"stream_xid": scope})
    return list(found.values())


def _scopes(row: dict[str, Any], in_force: set[tuple[int | None, int]] | None) -> list[int | None]:
    """Return in which scopes an inherited description was in force before all segments.

    It may have come into another one in them: what a stream described holds for all once its transaction committed.
    """
    if in_force is None:
        return [row["stream_xid"]]
    return [scope for scope, seq in in_force if seq == row["seq"]]


def _plain(index: SegmentIndex, first: int) -> Any:
    """Return where transactions begin that lie in the segments as a whole, though not in one of them."""
    ended = index.transactions
    is_plain = pc.and_(pc.equal(ended["outcome"], COMMITTED), pc.and_not(ended["gid"].is_null(), ended["streamed"]))
    begins = pc.struct_field(pc.list_element(ended.filter(is_plain)["spans"], 0), "first").to_numpy()
    return begins[begins >= first]
