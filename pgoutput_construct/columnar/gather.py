"""Values that lie scattered in a batch, copied once into Arrow's buffers."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar.jit import WORD, copy_word, kernel, u8

__all__ = ["binary", "empty_lists", "first_bytes", "look_up", "nulls", "scatter", "strings"]


Entry = TypeVar("Entry", bound=np.generic)


@kernel
def _add_up(lengths: Any, skip: Any, ends: Any) -> int:
    """Write where each value ends, those to be skipped as empty; return how many bytes they have together."""
    total = 0
    ends[0] = 0
    for row in range(len(lengths)):
        if len(skip) == 0 or not skip[row]:
            total += lengths[row]
        ends[row + 1] = total
    return total


@kernel
def _copy(data: Any, starts: Any, ends: Any, out: Any) -> None:
    # The last word of a value may run over its end: what follows it is written later, and out has a word more.
    last_word = len(data) - WORD
    for row in range(len(starts)):
        source, first, stop = starts[row], ends[row], ends[row + 1]
        if source + (stop - first) <= last_word:
            while first < stop:
                copy_word(out, first, data, source)
                first += WORD
                source += WORD
        else:
            for step in range(stop - first):
                out[first + step] = u8(data, source + step)


@kernel
def _look_up(tags: Any, table: Any, out: Any) -> None:
    for row in range(len(tags)):
        out[row] = table[tags[row]]


def look_up(tags: NDArray[np.uint8], table: NDArray[Entry]) -> NDArray[Entry]:
    """Return what a table of 256 entries says of each tag: numpy takes five times as long."""
    out = np.empty(len(tags), table.dtype)
    _look_up(tags, table, out)
    return out


@kernel
def _first_bytes(data: Any, starts: Any, ends: Any, out: Any) -> None:
    for row in range(len(starts)):
        out[row] = u8(data, starts[row]) if starts[row] < ends[row] else 0


def first_bytes(data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the first byte of each payload, 0 for an empty one."""
    out = np.empty(len(starts), np.uint8)
    _first_bytes(data, starts, ends, out)
    return out


def binary(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    text: bool = False,
) -> pa.Array:
    """Return byte strings at the places; masked ones are null. Large where they exceed 2 GiB together.

    With ``text`` they are strings, not checked to be UTF-8: for casts, which refuse what is no number or date.
    """
    ends: NDArray[Any] = np.empty(len(starts) + 1, np.int32)
    skip = np.zeros(0, np.bool_) if mask is None else mask
    size = _add_up(lengths, skip, ends)
    large = size >= 2**31
    if large:
        ends = np.empty(len(starts) + 1, np.int64)
        _add_up(lengths, skip, ends)
    out = np.empty(size + WORD, np.uint8)
    _copy(data, starts, ends, out)
    validity = None if mask is None else pa.array(~mask).buffers()[1]
    buffers = [validity, pa.py_buffer(ends), pa.py_buffer(out[:size])]
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


def scatter(pieces: Sequence[tuple[NDArray[np.int64], pa.Array]], count: int, kind: pa.DataType) -> pa.Array:
    """Return one column out of pieces that each belong to some of the rows; the other rows are null."""
    if not pieces:
        return pa.nulls(count, kind)
    if len(pieces) == 1 and kind.num_fields == 0 and not kind.num_buffers > 2 and kind.bit_width % 8 == 0:
        return _spread(*pieces[0], count, kind)
    places = np.zeros(count, np.int64)
    present = np.zeros(count, np.bool_)
    first = 0
    for rows, array in pieces:
        places[rows] = np.arange(first, first + len(array))
        present[rows] = True
        first += len(array)
    arrays = [array.cast(kind) for _, array in pieces]
    together = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    validity = pa.py_buffer(np.packbits(present, bitorder="little"))
    return together.take(pa.Array.from_buffers(pa.int64(), count, [validity, pa.py_buffer(places)]))


def _spread(rows: NDArray[np.int64], array: pa.Array, count: int, kind: pa.DataType) -> pa.Array:
    """Return numbers as some rows of a column: Arrow's take looks at every row."""
    dtype = np.dtype((np.void, kind.byte_width))
    out, present = np.zeros(count, dtype), np.zeros(count, np.bool_)
    out[rows] = np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]
    present[rows] = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else True
    validity = pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(out)])


@lru_cache(maxsize=64)
def _many_nulls(count: int, kind: pa.DataType) -> pa.Array:
    return pa.nulls(count, kind)


def nulls(count: int, kind: pa.DataType) -> pa.Array:
    """Return an array of nulls; arrays of similar sizes share their memory."""
    return _many_nulls(1 << count.bit_length(), kind).slice(0, count)


@lru_cache(maxsize=8)
def _many_empty_lists(count: int) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.string()))


def empty_lists(count: int) -> pa.Array:
    """Return an array of empty lists of strings; arrays of similar sizes share their memory."""
    return _many_empty_lists(1 << count.bit_length()).slice(0, count)
