"""The names of a log's files, and which of them count."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

__all__ = ["SegmentName", "chosen", "segment_name"]

_NAME: Final = re.compile(r"segment-(\d{20})(?:-(\d{20}))?\.parquet")


class SegmentName(NamedTuple):
    """A segment's file, and what its name says of it."""

    first_seq: int
    last_seq: int | None
    """None in a log of format 1, whose names say where a segment begins only."""
    name: str


def segment_name(first_seq: int, last_seq: int) -> str:
    """Return the name of a segment's file."""
    return f"segment-{first_seq:020d}-{last_seq:020d}.parquet"


def chosen(names: Iterable[str]) -> tuple[list[SegmentName], list[SegmentName]]:
    """Return the segments among files in their order, and those that others cover: a compaction left them behind."""
    counted: list[SegmentName] = []
    covered: list[SegmentName] = []
    end = -1
    for segment in sorted(_segments(names), key=_order):
        last = segment.first_seq if segment.last_seq is None else segment.last_seq
        (covered if last <= end else counted).append(segment)
        end = max(end, last)
    return counted, covered


def _segments(names: Iterable[str]) -> Iterable[SegmentName]:
    for name in names:
        if found := _NAME.fullmatch(name):
            first, last = found.groups()
            yield SegmentName(int(first), None if last is None else int(last), name)


def _order(segment: SegmentName) -> tuple[int, int]:
    # Of two that begin together the longer one counts; one of format 1 is taken for the shortest.
    return segment.first_seq, 0 if segment.last_seq is None else -1 - segment.last_seq
