"""The bits of floating-point numbers as text (columnar/canonical.py), for executors, which import little else."""

from binascii import hexlify
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["float_bits", "in_lists", "lists_of_float_bits"]


def float_bits(values: pa.Array) -> pa.Array:
    """Return the bits of floating-point numbers as hexadecimal digits, as float8send() sends them; ``NaN`` for any."""
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    digits = hexlify(numbers.astype(numbers.dtype.newbyteorder(">")).tobytes())
    texts = pa.array(np.frombuffer(digits, f"S{2 * numbers.itemsize}").astype("U"), pa.string())
    return pc.if_else(values.is_null(), None, pc.if_else(pa.array(np.isnan(numbers)), "NaN", texts))


def lists_of_float_bits(values: pa.Array) -> pa.Array:
    """Return the same of lists of numbers."""
    return in_lists(values, float_bits)


def in_lists(values: pa.Array, of: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return lists of what a function makes of the elements of lists."""
    lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    return pa.ListArray.from_arrays(offsets, of(values.flatten()), mask=values.is_null())
