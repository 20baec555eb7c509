"""Mutated payloads in large batches: a kernel changes seeds, the same ones for the same number.

What it does to a payload: a bit or a byte is changed, bytes are inserted, deleted, repeated or cut off, the rest of
another payload follows, a number becomes an extreme one or a little larger or smaller, or the tag of another message
stands in front.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

__all__ = ["LONGEST", "Pool", "mutated", "pool"]

LONGEST: Final = 1024
"""Bytes of a mutated payload at most; longer seeds are left out."""
_MOST_CHANGES: Final = 3
_LETTERS: Final = np.frombuffer(b"\0\1\2\3\4\x7f\x80\xfe\xff0ntubKONdnfiBMCORYIUDTSEcAbPrpwksrhq", np.uint8)
_WORDS: Final = np.array(
    [0, 1, 2, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1, -(2**31), 2**32 - 1, 2**62, -1, -2, 2**63 - 1],
    np.int64,
)


class Pool(NamedTuple):
    """Seeds one after the other."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int64]


def pool(seeds: Sequence[bytes]) -> Pool:
    """Put seeds together, those that are not too long, of each first byte about as many (by repetition)."""
    by_tag: dict[bytes, list[bytes]] = {}
    for seed in seeds:
        if len(seed) <= LONGEST // 2:
            by_tag.setdefault(seed[:1], []).append(seed)
    most = min(512, max(map(len, by_tag.values())))
    chosen = [group[row % len(group)] for group in by_tag.values() for row in range(most if len(group) > 4 else 2)]
    return Pool(np.frombuffer(b"".join(chosen), np.uint8), np.cumsum([*map(len, chosen)], dtype=np.int64))


def mutated(seeds: Pool, count: int, number: int) -> pa.Array:
    """Return mutated payloads; the seeds and the mutations follow from the number alone."""
    out, ends = np.empty(count * LONGEST, np.uint8), np.zeros(count + 1, np.int64)
    state = (number * 0x9E3779B97F4A7C15 + 0x2545F4914F6CDD1D) % 2**64
    size = _fill(seeds.data, seeds.ends, np.array([state], np.uint64), _LETTERS, _WORDS, out, ends)
    return pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(out[:size].copy())])


@njit(cache=True, _nrt=False)  # type: ignore[untyped-decorator]
def _next(state: Any, below: int) -> Any:
    """Return a number from 0 on, below another (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word = word ^ (word >> np.uint64(31))
    return np.int64(word >> np.uint64(1)) % below


@njit(cache=True, _nrt=False)  # type: ignore[untyped-decorator]
def _put_number(out: Any, at: int, end: int, size: int, number: int) -> None:
    for step in range(size):
        if at + step < end:
            out[at + step] = number >> (8 * (size - 1 - step)) & 0xFF


@njit(cache=True, _nrt=False)  # type: ignore[untyped-decorator]
def _number(out: Any, at: int, end: int, size: int) -> Any:
    number = 0
    for step in range(size):
        number = number << 8 | (out[at + step] if at + step < end else 0)
    return number


@njit(cache=True, _nrt=False)  # type: ignore[untyped-decorator]
def _move(out: Any, source: int, target: int, size: int) -> None:
    for step in range(size):
        place = step if target < source else size - 1 - step
        out[target + place] = out[source + place]


@njit(cache=True, _nrt=False)  # type: ignore[untyped-decorator]
def _resize(state: Any, letters: Any, out: Any, start: int, end: int, kind: int) -> Any:
    """Insert, delete, repeat or cut off bytes; return the new end."""
    size = end - start
    at = start + _next(state, size + 1)
    count = 1 + _next(state, 8)
    if kind == 0:
        return at
    if kind == 1:
        count = min(count, end - at)
        _move(out, at + count, at, end - at - count)
        return end - count
    if kind == 3:
        count = min(count, end - at)
    if size + count > LONGEST:
        return end
    _move(out, at, at + count, end - at)
    if kind == 2:
        for step in range(count):
            out[at + step] = letters[_next(state, len(letters))] if step & 1 else _next(state, 256)
    return end + count


@njit(cache=True, _nrt=False)  # type: ignore[untyped-decorator]
def _change(state: Any, data: Any, ends: Any, letters: Any, words: Any, out: Any, start: int, end: int) -> Any:
    """Change a payload in its place; return its new end."""
    kind, size = _next(state, 12), end - start
    if size == 0 or kind < 4:
        return _resize(state, letters, out, start, end, kind % 4)
    at = start + _next(state, size)
    width = 1 << _next(state, 4)
    if kind == 4:
        out[at] ^= 1 << _next(state, 8)
    elif kind == 5:
        out[at] = _next(state, 256)
    elif kind in (6, 7):
        out[at] = letters[_next(state, len(letters))]
    elif kind == 8:
        _put_number(out, at, end, width, words[_next(state, len(words))])
    elif kind == 9:
        _put_number(out, at, end, width, _number(out, at, end, width) + _next(state, 17) - 8)
    elif kind == 10:
        other = _next(state, len(ends))
        first, last = (ends[other - 1] if other else 0), ends[other]
        first += _next(state, last - first + 1)
        last = min(last, first + LONGEST - (at - start))
        for step in range(last - first):
            out[at + step] = data[first + step]
        return at + last - first
    else:
        out[start] = data[ends[_next(state, len(ends) - 1)]]
    return end


@njit(cache=True, _nrt=False)  # type: ignore[untyped-decorator]
def _fill(data: Any, ends: Any, state: Any, letters: Any, words: Any, out: Any, out_ends: Any) -> Any:
    at = 0
    for row in range(len(out_ends) - 1):
        seed = _next(state, len(ends))
        start, end = at, at
        for place in range(ends[seed - 1] if seed else 0, ends[seed]):
            out[end] = data[place]
            end += 1
        for _ in range(_next(state, _MOST_CHANGES + 1)):
            end = _change(state, data, ends, letters, words, out, start, end)
        at = out_ends[row + 1] = end
    return at
