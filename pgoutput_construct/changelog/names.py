"""The names of a log's files, and which of them count."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["NamedSegments", "SegmentName", "chosen", "chosen_segments", "segment_name"]

_DIGITS: Final = 20
_ZEROS: Final = 2
"""So many of the digits are zeros always, else a number could not be held."""
_BASE: Final = 10
_POWERS: Final = _BASE ** np.arange(_DIGITS - _ZEROS, dtype=np.int64)[::-1]

Numbers = NDArray[np.int64]


class SegmentName(NamedTuple):
    """A segment's file, and what its name says of it."""

    first_seq: int
    last_seq: int
    name: str


@dataclass(frozen=True, eq=False)
class NamedSegments:
    """Segments in the order of the log, as their names tell."""

    first_seq: Numbers
    last_seq: Numbers
    size: Numbers
    """Bytes of the files."""

    def __len__(self) -> int:
        return len(self.first_seq)

    def __getitem__(self, wanted: NDArray[Any]) -> "NamedSegments":
        """Return some of them: at places, or where it is True."""
        return NamedSegments(self.first_seq[wanted], self.last_seq[wanted], self.size[wanted])

    def name(self, place: int) -> SegmentName:
        """Return one of them with its name."""
        first, last = int(self.first_seq[place]), int(self.last_seq[place])
        return SegmentName(first, last, segment_name(first, last))

    def names(self) -> list[SegmentName]:
        """Return all of them with their names."""
        return [self.name(place) for place in range(len(self))]


def segment_name(first_seq: int, last_seq: int) -> str:
    """Return the name of a segment's file."""
    return f"segment-{first_seq:0{_DIGITS}d}-{last_seq:0{_DIGITS}d}.parquet"


def chosen(names: Iterable[str]) -> tuple[list[SegmentName], list[SegmentName]]:
    """Return the segments among files in their order, and those that others cover: a compaction left them behind."""
    counted, covered = chosen_segments(dict.fromkeys(names, 0))
    return counted.names(), covered.names()


def chosen_segments(files: Mapping[str, int]) -> tuple[NamedSegments, NamedSegments]:
    """Return the same without a Python object for each; ``files`` are names and sizes."""
    found = _segments(files)
    # Of two that begin together the longer one counts.
    found = found[np.lexsort((-found.last_seq, found.first_seq))]
    ends = np.maximum(found.first_seq, found.last_seq)
    earlier = np.maximum.accumulate(np.concatenate([[-1], ends]))[:-1]
    return found[ends > earlier], found[ends <= earlier]


def _segments(files: Mapping[str, int]) -> NamedSegments:
    [first, last], size = _read(files, segment_name(0, 0))
    return NamedSegments(first, last, size)


def _read(files: Mapping[str, int], template: str) -> tuple[list[Numbers], Numbers]:
    """Return the numbers in names that are the template but for its zeros, and the sizes of these files."""
    width = len(template)
    alike = [name for name in files if len(name) == width]
    # As arrays of characters: a regular expression takes half a second for 100,000 names.
    characters = np.array(alike, f"U{width}").view(np.int32).reshape(-1, width) - ord("0")
    wanted = np.array(list(template)).view(np.int32) - ord("0")
    is_digit = wanted == 0
    fits = np.where(is_digit, (characters >= 0) & (characters < _BASE), characters == wanted).all(axis=1)
    digits = characters[:, is_digit].reshape(len(alike), int(is_digit.sum()) // _DIGITS, _DIGITS)
    fits &= ~digits[:, :, :_ZEROS].any(axis=(1, 2))
    sizes = np.array([files[name] for name in alike], np.int64)
    return [digits[fits, number, _ZEROS:] @ _POWERS for number in range(digits.shape[1])], sizes[fits]
