"""Values as numbers, by which rows are told apart in Arrow.

Two values have one number where PostgreSQL writes the same of them: that is how its messages name a row. Days and times
count to the microsecond, and what their types cannot hold by its text (``_untyped``); -0.0 is another value than 0.0;
NaN is one, whatever its bits; numbers of one scale count by value; null is a value. In Spark's words the same is
``values.exact``, which groups and joins by it.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pgoutput_construct.changelog.block import Numbers

__all__ = ["codes_of", "combined"]


def combined(rows: int, codes: Iterable[Numbers]) -> Numbers:
    """Return a number for each of ``rows`` rows, the same for those that have the same in all ``codes``."""
    found = np.zeros(rows, np.int64)
    for each in codes:
        # Codes are fewer than rows, so that the product of two fits.
        found = _numbered(pa.array(found * (each.max(initial=0) + 1) + each))
    return found


def codes_of(values: pa.Array) -> Numbers:
    """Return a number for each value, from 0 on, the same for the same ones."""
    return _numbered(_exact(values))


def _exact(values: pa.Array) -> pa.Array:
    """Return values that are equal where these are the same."""
    if pt.is_list(values.type):
        return _bytes_of(values)
    if not pt.is_floating(values.type):
        return values
    floats = values.fill_null(0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(floats), floats.dtype.type(np.nan), floats).view(f"i{floats.itemsize}")
    return pa.array(bits, mask=values.is_null().to_numpy(zero_copy_only=False))


def _bytes_of(lists: pa.Array) -> pa.Array:
    """Return each list as the bytes of the codes of its items: Arrow numbers no lists."""
    items = codes_of(pc.list_flatten(lists))
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.append(0, np.cumsum(lengths)) * items.itemsize
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(items)]
    found = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)
    return pc.if_else(lists.is_valid(), found, pa.scalar(None, pa.large_binary()))


def _numbered(values: pa.Array) -> Numbers:
    indices = values.dictionary_encode(null_encoding="encode").indices
    return np.asarray(indices.to_numpy(zero_copy_only=False), np.int64)
