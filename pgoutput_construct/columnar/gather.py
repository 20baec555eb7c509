"""Values that lie scattered in a batch, copied once into Arrow's buffers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from pgoutput_construct.columnar.jit import kernel

__all__ = ["binary", "fixed", "scatter", "strings"]

WORD = 8
"""Bytes that are copied at once; a value's last word may run over its end, so buffers have one word more."""


@intrinsic  # type: ignore[untyped-decorator]
def _copy_word(typing: Any, target: Any, at: Any, source: Any, start: Any) -> Any:
    """Copy eight bytes from any place to any place: numpy alone has no words that are not aligned."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def place(array: int) -> Any:
            content = context.make_array(signature.args[array])(context, builder, arguments[array])
            byte = builder.gep(content.data, [arguments[array + 1]])
            return builder.bitcast(byte, ir.IntType(8 * WORD).as_pointer())

        builder.store(builder.load(place(2), align=1), place(0), align=1)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp), build


@kernel
def _copy(data: Any, starts: Any, ends: Any, out: Any) -> None:
    last_word = len(data) - WORD
    for row in range(len(starts)):
        source, first, stop = starts[row], ends[row], ends[row + 1]
        if source + (stop - first) <= last_word:
            while first < stop:
                _copy_word(out, first, data, source)
                first += WORD
                source += WORD
        else:
            for step in range(stop - first):
                out[first + step] = data[source + step]


@kernel
def _copy_fixed(data: Any, starts: Any, lengths: Any, width: int, out: Any, fits: Any) -> None:
    for row in range(len(starts)):
        if lengths[row] == width:
            fits[row] = True
            source = starts[row]
            for step in range(width):
                # What is on the wire is big-endian, what Arrow holds is little-endian.
                out[row, width - 1 - step] = data[source + step]


def binary(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    text: bool = False,
) -> pa.Array:
    """Return byte strings at the places; masked ones are null. Large where they exceed 2 GiB together.

    With ``text`` they are strings, unchecked: for bytes of which it is known that they are ASCII.
    """
    sizes = lengths if mask is None else np.where(mask, 0, lengths)
    ends = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    size = int(ends[-1])
    out = np.empty(size + WORD, np.uint8)
    _copy(data, starts, ends, out)
    large = size >= 2**31
    validity = None if mask is None else pa.array(~mask).buffers()[1]
    buffers = [validity, pa.py_buffer(ends if large else ends.astype(np.int32)), pa.py_buffer(out[:size])]
    small, big = (pa.string(), pa.large_string()) if text else (pa.binary(), pa.large_binary())
    return pa.Array.from_buffers(big if large else small, len(starts), buffers)


def strings(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    kind: pa.DataType,
) -> pa.Array:
    """Return byte strings as binary or string; bytes that are not UTF-8 become U+FFFD in strings."""
    raw = binary(data, starts, lengths, mask)
    try:
        return raw.cast(kind)
    except pa.ArrowInvalid:
        values = (None if value is None else value.decode("utf-8", "replace") for value in raw.to_pylist())
        return pa.array(list(values), kind)


def fixed(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[Any], width: int
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return values of a fixed width as little-endian bytes, one row each, and which of them have that width."""
    out = np.zeros((len(starts), width), np.uint8)
    fits = np.zeros(len(starts), np.bool_)
    _copy_fixed(data, starts, lengths, width, out, fits)
    return out, fits


def scatter(pieces: Sequence[tuple[NDArray[np.int64], pa.Array]], count: int, kind: pa.DataType) -> pa.Array:
    """Return one column out of pieces that each belong to some of the rows; the other rows are null."""
    if not pieces:
        return pa.nulls(count, kind)
    places = np.zeros(count, np.int64)
    missing = np.ones(count, np.bool_)
    first = 0
    for rows, array in pieces:
        places[rows] = np.arange(first, first + len(array))
        missing[rows] = False
        first += len(array)
    together = pa.concat_arrays([array.cast(kind) for _, array in pieces])
    return together.take(pa.array(places, mask=missing))
