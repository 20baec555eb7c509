"""The map ``_untyped`` in Arrow: what the types of columns cannot hold."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.columnar import UNTYPED

__all__ = ["Texts", "untyped_of"]


class Texts:
    """The texts of rows, by their names in the map."""

    def __init__(self, untyped: pa.ChunkedArray) -> None:
        self._untyped = untyped.combine_chunks()

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that some row may have."""
        return frozenset(pc.unique(self._untyped.keys).to_pylist())

    def of(self, name: str) -> pa.Array:
        """Return the text of each row, null where it has none."""
        if name not in self.names:
            return pa.nulls(len(self._untyped), pa.string())
        return pc.map_lookup(self._untyped, name, "first")


def untyped_of(texts: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """Return the map of the texts that are not null, by column; null for none."""
    if not texts:
        return pa.nulls(rows, UNTYPED)
    has = np.stack([text.is_valid().to_numpy(zero_copy_only=False) for text in texts.values()], axis=1)
    row, column = np.nonzero(has)
    names = pa.array(texts, pa.string()).take(pa.array(column))
    values = pa.concat_arrays([text.cast(pa.string()) for text in texts.values()]).take(pa.array(column * rows + row))
    counts = has.sum(axis=1)
    offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
    # A null among the offsets is a null among the maps.
    starts = pa.array(offsets, mask=np.append(counts == 0, False))
    return pa.MapArray.from_arrays(starts, names, values)
