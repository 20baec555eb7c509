"""Progress on standard error, where the output goes elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeVar

from pgoutput_construct.cli.words import counted, printable

__all__ = ["Estimate", "progress_line", "with_progress"]

INTERVAL = 0.5
Item = TypeVar("Item")


def with_progress(items: Iterable[Item], done: Callable[[], float | None], noun: str) -> Iterator[Item]:
    """Yield the items and show their number, if standard error is a terminal and standard output is not."""
    if not _is_terminal(sys.stderr) or _is_terminal(sys.stdout):
        yield from items
        return
    due, shown = time.monotonic() + INTERVAL, False
    try:
        for count, item in enumerate(items, 1):
            yield item
            if time.monotonic() >= due:
                _show(f"{count:,} {noun}{_percent(done())}")
                due, shown = time.monotonic() + INTERVAL, True
    finally:
        if shown:
            _show("")


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Yield what shows how far something has come, now and then, if standard error is a terminal.

    An empty text removes what is shown, at once.
    """
    due, is_terminal = 0.0, _is_terminal(sys.stderr)

    def show(text: str) -> None:
        nonlocal due
        if is_terminal and not text:
            _show("")
        elif is_terminal and time.monotonic() >= due:
            _show(text)
            due = time.monotonic() + INTERVAL

    try:
        yield show
    finally:
        if due:
            _show("")


class Estimate:
    """How fast rows are worked through, and how long the rest takes at that rate."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now; ``clock`` returns seconds."""
        self._clock = clock
        self._begin, self._first, self._last = clock(), 0, 0

    def words(self, done: int, total: int) -> str:
        """Return how many rows of how many are done, how many a second, and when the others are."""
        now = self._clock()
        if done < self._last:  # the next table, or batch
            self._begin, self._first = now, done
        self._last = done
        parts = [f"{done:,} of {counted(total, 'row')}"]
        rate = (done - self._first) / max(now - self._begin, 1.0)
        if rate:
            left = max(total - done, 0) / rate
            parts += [f"{rate:,.0f} rows/s", f"about {_lasting(left)} left"]
        return ", ".join(parts)


def _lasting(seconds: float) -> str:
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()  # None: closed by who started this process


def _percent(part: float | None) -> str:
    return "" if part is None else f", {part:.0%} read"


def _show(text: str) -> None:
    print(f"\r\033[K{printable(text)}", end="", file=sys.stderr, flush=True)
