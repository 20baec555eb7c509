"""A log of any size, of the payloads of a small one that was captured: cheaper than to capture it."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pgoutput_construct as pgo
from pgoutput_construct.changelog.reader import ChangeLog
from tools.benchmark.log import write_segments
from tools.benchmark.spark.workload import CHANGES, change_log

__all__ = ["repeated_log"]

_CAPTURED: Final = 200
"""Transactions of the small log."""
_SEGMENT: Final = 10_000
"""Changes in a segment, as of a capture of 5,000 changes a second."""


def repeated_log(directory: Path, changes: int, together: int = 1) -> Path:
    """Return a log of so many changes, which is written unless it is there already.

    Its transactions have the changes of so many captured ones ``together``: of CHANGES each.
    """
    path, size = directory / f"repeated-{changes}-{together}", CHANGES * together
    if not path.exists():
        small, partial = ChangeLog(change_log(directory, _CAPTURED)), path.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        contents = _contents([entry.payload for entry in small.entries()])
        many = max(1, _SEGMENT // size)
        segments = _segments(contents, changes // size, many, together)
        write_segments(partial, segments, small.options, -(-changes // (size * many)))
        partial.rename(path)
    return path


def _contents(payloads: Sequence[bytes]) -> list[list[bytes]]:
    """Return what is between Begin and Commit of each transaction; the first one has the Relation."""
    found: list[list[bytes]] = []
    for payload in payloads:
        if payload[:1] == pgo.Begin.TAG:
            found.append([])
        elif found and payload[:1] != pgo.Commit.TAG:
            found[-1].append(payload)
    return [content for content in found if len(content) >= CHANGES]


def _segments(
    contents: Sequence[Sequence[bytes]], transactions: int, many: int, together: int
) -> Iterator[list[bytes]]:
    """Yield the payloads of each segment: so ``many`` transactions of the contents, over and over."""
    plain = [[payload for payload in content if payload[:1] != pgo.Relation.TAG] for content in contents]
    for first in range(0, transactions, many):
        payloads = []
        for number in range(first, min(first + many, transactions)):
            lsn, time = pgo.Lsn((number + 1) << 12), pgo.Timestamp(number * 2000)
            payloads.append(pgo.build(pgo.Begin(lsn, time, 1000 + number)))
            for part in range(number * together, (number + 1) * together):
                payloads += plain[part % len(plain)] if part else contents[0]
            payloads.append(pgo.build(pgo.Commit(lsn, pgo.Lsn(lsn + 8), time)))
        yield payloads
