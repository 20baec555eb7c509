"""The index of one segment that is made of several: theirs put together, not computed anew."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog.index import COLUMNS, SegmentIndex, struct_array
from pgoutput_construct.changelog.usage import settled
from pgoutput_construct.stream.logged import COMMITTED

__all__ = ["merge_indexes"]

_LAST = ("open", "in_force")
_ONE_AFTER_THE_OTHER = ("transactions", "descriptions", "changes", "events", "faults", "snapshots")


def merge_indexes(index: SegmentIndex) -> SegmentIndex:
    """Return the index of all rows of consecutive segments as that of one segment."""
    first, last = index.first_seq, index.last_seq
    lists = {name: _entries(index, name, slice(len(index) - 1, None)) for name in _LAST}
    lists |= {name: _entries(index, name) for name in _ONE_AFTER_THE_OTHER}
    lists["inherited"] = struct_array("inherited", _inherited(index, first))
    lists["rows"] = settled([index.entries("rows")], _plain(index, first))
    return SegmentIndex.of(first, last, index.complete_lsn, **lists)


def _entries(index: SegmentIndex, name: str, of: slice | None = None) -> pa.Array:
    chunks = index.entries(name, of).to_struct_array().chunks
    return pa.concat_arrays(chunks).cast(COLUMNS[name]) if chunks else pa.array([], COLUMNS[name])


def _inherited(index: SegmentIndex, first: int) -> list[dict[str, Any]]:
    """Return what is in force before all segments, and their rows need.

    What a segment inherits may stand before all of them, and yet come into force in one before it: what a stream
    described holds for all once that transaction has committed.
    """
    found: dict[tuple[int | None, int], dict[str, Any]] = {}
    came: set[tuple[int | None, int]] = set()
    for inherited, changes in zip(
        index.table["inherited"].to_pylist(), index.table["changes"].to_pylist(), strict=True
    ):
        for row in inherited or ():
            key = row["stream_xid"], row["seq"]
            if row["seq"] < first and key not in came:
                found.setdefault(key, row)
        came |= {(change["stream_xid"], change["description"]) for change in changes or ()}
    return list(found.values())


def _plain(index: SegmentIndex, first: int) -> Any:
    """Return where transactions begin that lie in the segments as a whole, though not in one of them."""
    ended = index.transactions
    is_plain = pc.and_(pc.equal(ended["outcome"], COMMITTED), pc.and_not(ended["gid"].is_null(), ended["streamed"]))
    begins = pc.struct_field(pc.list_element(ended.filter(is_plain)["spans"], 0), "first").to_numpy()
    return begins[begins >= first]
