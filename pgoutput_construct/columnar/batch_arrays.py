"""Arrays over the payloads of a batch: tag tables, and values copied once from the batch into Arrow buffers.

Several functions replace one numpy or Arrow call by a kernel that is about five times faster for these arrays.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.compiled.jit import WORD, copy_word, kernel, u8
from pgoutput_construct.compiled.memory import bitmap, room
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.kernels.cast import ColumnValues
from pgoutput_construct.pgtypes.kernels.planned_casts import TEXT
from pgoutput_construct.wire.messages import PgoutputMessage

__all__ = [
    "WordTable",
    "all_same",
    "first_bytes",
    "look_up",
    "mean_size",
    "present",
    "scatter",
    "strings",
    "tag_table",
    "word_table",
    "words",
]


Entry = TypeVar("Entry", bound=np.generic)


@kernel
def _look_up(tags: Any, table: Any, out: Any) -> None:
    for row in range(len(tags)):
        out[row] = table[tags[row]]


def tag_table(classes: Iterable[type[PgoutputMessage]]) -> NDArray[np.bool_]:
    """Return a table of 256 entries, True for the tags of these message classes."""
    found = np.zeros(256, np.bool_)
    found[[cls.TAG[0] for cls in classes]] = True
    return found


def look_up(tags: NDArray[np.uint8], table: NDArray[Entry]) -> NDArray[Entry]:
    """Return the entry of a table of 256 for each tag."""
    out = room(len(tags), table.dtype)
    _look_up(tags, table, out)
    return out


WordTable = tuple[NDArray[np.uint8], NDArray[np.int64]]


def word_table(names: Mapping[int, str]) -> WordTable:
    """Return a table of one word for each tag: the letters of all words, padded alike, and the length of each."""
    most = -(-max(map(len, names.values()), default=0) // WORD) * WORD
    letters, sizes = np.zeros((256, most), np.uint8), np.zeros(256, np.int64)
    for tag, name in names.items():
        sizes[tag] = len(name)
        letters[tag, : len(name)] = list(name.encode("ascii"))
    return letters.reshape(-1), sizes


@kernel
def _words(tags: Any, rows: Any, letters: Any, sizes: Any, out: Any, ends: Any) -> None:
    most, at = len(letters) // len(sizes), 0
    ends[0] = 0
    for row in range(len(rows)):
        tag = tags[rows[row]]
        step, size = 0, sizes[tag]
        while step < size:  # the next word overwrites what the last copy writes beyond the end
            copy_word(out, at + step, letters, most * tag + step)
            step += WORD
        at += size
        ends[row + 1] = at


def words(tags: NDArray[np.uint8], rows: NDArray[np.int64], table: WordTable) -> pa.Array:
    """Return the words of the tags of some rows as strings."""
    letters, sizes = table
    ends, out = room(len(rows) + 1, np.int32), room(len(rows) * len(letters) // len(sizes))
    _words(tags, rows, letters, sizes, out, ends)
    return pa.Array.from_buffers(pa.string(), len(rows), [None, pa.py_buffer(ends), pa.py_buffer(out[: ends[-1]])])


@kernel
def _present(offsets: Any, rows: Any, out: Any) -> int:
    count = 0
    for row in range(len(rows)):
        out[row] = offsets[rows[row]]
        count += out[row] >= 0
    return count


def present(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Return the offsets of some rows' tuples, and the number of rows that have one (not -1)."""
    out = room(len(rows), np.int64)
    return out, _present(offsets, rows, out)


@kernel
def _total_size(starts: Any, ends: Any, rows: Any) -> int:
    total = 0
    for row in rows:
        total += ends[row] - starts[row]
    return total


def mean_size(starts: NDArray[np.int64], ends: NDArray[np.int64], rows: NDArray[np.int64]) -> float:
    """Return the average size of some payloads in bytes."""
    return _total_size(starts, ends, rows) / len(rows)


@kernel
def _all_same(numbers: Any) -> bool:
    same = True
    for number in numbers:
        same &= number == numbers[0]
    return same


def all_same(numbers: NDArray[Any]) -> bool:
    """Return whether all numbers are equal; one kernel call without the GIL, where numpy would take it twice."""
    return numbers.strides == (0,) or bool(_all_same(numbers))


@kernel
def _first_bytes(data: Any, starts: Any, ends: Any, out: Any) -> None:
    for row in range(len(starts)):
        out[row] = u8(data, starts[row]) if starts[row] < ends[row] else 0


def first_bytes(data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the first byte of each payload, 0 for an empty one."""
    out = room(len(starts))
    _first_bytes(data, starts, ends, out)
    return out


def strings(values: ColumnValues, target: pa.DataType) -> pa.Array:
    """Return byte strings as binary or string; bytes that are not UTF-8 become U+FFFD in strings.

    Raises PgoutputError if their total is 2 GiB or more: Arrow's string offsets have 32 bits.
    """
    if values.lengths.sum(dtype=np.int64) >= 1 << 31:
        raise PgoutputError("the values of a field total 2 GiB or more: decode fewer payloads at a time")
    try:
        return TEXT(values, target)[0]  # no value is left over: the buffer has room for all
    except pa.ArrowInvalid:
        raw = TEXT(values, pa.binary())[0].to_pylist()
        return pa.array([None if value is None else value.decode("utf-8", "replace") for value in raw], target)


def scatter(pieces: Sequence[tuple[NDArray[np.int64], pa.Array]], count: int, target: pa.DataType) -> pa.Array:
    """Return one column of ``count`` rows from pieces, each with the rows that it belongs to; other rows are null."""
    if not pieces:
        return pa.nulls(count, target)
    if len(pieces) == 1 and target.num_fields == 0 and not target.num_buffers > 2 and target.bit_width % 8 == 0:
        return _spread(*pieces[0], count, target)
    indexes = np.zeros(count, np.int64)
    present = np.zeros(count, np.bool_)
    first = 0
    for rows, array in pieces:
        indexes[rows] = np.arange(first, first + len(array))
        present[rows] = True
        first += len(array)
    arrays = [array.cast(target) for _, array in pieces]
    together = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    validity = bitmap(present)
    return together.take(pa.Array.from_buffers(pa.int64(), count, [validity, pa.py_buffer(indexes)]))


def _spread(rows: NDArray[np.int64], array: pa.Array, count: int, target: pa.DataType) -> pa.Array:
    """Return numbers as some rows of a column; unlike Arrow's take it does not visit every row."""
    dtype = np.dtype((np.void, target.byte_width))
    out, present = np.zeros(count, dtype), np.zeros(count, np.bool_)
    out[rows] = np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]
    present[rows] = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else True
    validity = bitmap(present)
    return pa.Array.from_buffers(target, count, [validity, pa.py_buffer(out)])
