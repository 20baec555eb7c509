"""Keys as numbers: rows have the same one where Spark's ``Layout.key_of`` makes the same key of them."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from pgoutput_construct.changelog.block import Numbers

__all__ = ["can_number", "numbered"]


def can_number(kind: pa.DataType) -> bool:
    """Tell whether columns of a type can be numbered: all but arrays."""
    return not pt.is_nested(kind)


def numbered(columns: Iterable[pa.ChunkedArray]) -> Numbers:
    """Return a number for each row, the same for those that are the same in all columns; null is a value.

    -0.0 is another one than 0.0, and NaN is one, as PostgreSQL's bytes have them.
    """
    first, *others = map(_codes, columns)
    found = first
    for codes in others:
        # Numbers of rows at most, so that the product of two fits.
        _, found = np.unique(found * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    return found


def _codes(column: pa.ChunkedArray) -> Numbers:
    values = column.combine_chunks()
    exact = _bits(values) if pt.is_floating(values.type) else values
    return exact.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _bits(values: pa.Array) -> pa.Array:
    floats = values.fill_null(0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(floats), floats.dtype.type(np.nan), floats).view(f"i{floats.itemsize}")
    return pa.array(bits, mask=values.is_null().to_numpy(zero_copy_only=False))
