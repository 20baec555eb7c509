"""Progress on standard error: a status line, an estimate of the remaining time, and a capture's rates and lag."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO, TypeVar

from pgoutput_construct.cli._logging import LOGGER, EchoHandler
from pgoutput_construct.cli._printing import counted, printable, say, sized
from pgoutput_construct.wire import Lsn

if TYPE_CHECKING:
    from pgoutput_construct.postgres import CaptureProgress, CopyProgress, SlotHealth

__all__ = [
    "Estimate",
    "Meter",
    "announce_spark",
    "describe",
    "progress_line",
    "showing",
    "waiting_line",
    "with_progress",
]

INTERVAL = 0.5
_WAIT_INTERVAL: Final = 60.0
"""Seconds between two lines about what is waited for, where there is no terminal."""
Item = TypeVar("Item")


def with_progress(items: Iterable[Item], done: Callable[[], float | None]) -> Iterator[Item]:
    """Yield messages, and show their number if standard error is a terminal and standard output is not.

    Args:
        items: The messages.
        done: Returns the fraction that has been read, or None.
    """
    if not _is_terminal(sys.stderr) or _is_terminal(sys.stdout):
        yield from items
        return
    due, shown = time.monotonic() + INTERVAL, False
    try:
        for count, item in enumerate(items, 1):
            yield item
            if time.monotonic() >= due:
                _show(f"{count:,} messages{_percent(done())}")
                due, shown = time.monotonic() + INTERVAL, True
    finally:
        if shown:
            _show("")


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a status line, at most every 0.5 s, if standard error is a terminal.

    An empty text removes the line at once.
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


def waiting_line(show: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> Callable[[str], None]:
    """Return a function that shows what is waited for.

    Without a terminal it prints a line, at most every minute: a program that waits must not seem to hang.

    Args:
        show: Updates the status line (``progress_line``).
        clock: Returns seconds.
    """
    due = clock()

    def wait(text: str) -> None:
        nonlocal due
        show(text)
        if not _is_terminal(sys.stderr) and clock() >= due:
            say(text, err=True)
            due = clock() + _WAIT_INTERVAL

    return wait


def announce_spark(
    master: str, kind: str | None = None, show: Callable[[str], None] | None = None, purpose: str = ""
) -> None:
    """Announce the start of Spark, which prints nothing meanwhile, on standard error.

    Args:
        master: Its master; an invalid one raises PgoutputError.
        kind: The format of the tables, whose jars it may have to download.
        show: Shows the line instead.
        purpose: What it is started for, such as a table, where not all need it.
    """
    from pgoutput_construct.spark.formats import check_master

    check_master(master)
    jars = "" if kind in (None, "parquet") else f"; the first time, it downloads the jars of {kind}, a minute or more"
    line = f"starting Spark ({master}){purpose and f' for {purpose}'}: this takes 10 to 30 seconds{jars}"
    say(line, err=True) if show is None else show(line)


class Estimate:
    """The rate at which rows are processed, and the remaining time at that rate."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now; ``clock`` returns seconds."""
        self._clock = clock
        self._begin, self._first, self._last = clock(), 0, 0

    def words(self, done: int, total: int) -> str:
        """Return a description: rows done and in total, rows per second, remaining time."""
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
    return stream is not None and stream.isatty()  # None: the parent process closed it


def _percent(part: float | None) -> str:
    return "" if part is None else f", {part:.0%} read"


def _show(text: str) -> None:
    print(f"\r\033[K{printable(text)}", end="", file=sys.stderr, flush=True)


_WINDOW = 10.0
"""Seconds over which rates are averaged."""
_REMEMBERED = 4096


class _Speed(NamedTuple):
    """Rates and lag at one time."""

    messages_per_second: float
    bytes_per_second: float
    lag_bytes: int
    """Bytes of the server's WAL that are not durable in the log."""
    lag_seconds: float
    """Seconds since the oldest of that WAL was first seen; 0.0 if there is none."""


class _Sample(NamedTuple):
    at: float
    messages: int
    payload_bytes: int


class Meter:
    """Computes rates and lag from progress reports; one thread reports, any other may call ``speed``."""

    def __init__(self, progress: "CaptureProgress", clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with the first progress of a capture; ``clock`` returns seconds."""
        self.progress = progress
        """The latest report."""
        self.server_lsn = Lsn(0)
        """The end of the server's WAL when the slot was last polled: the stream itself does not contain it."""
        self._clock = clock
        self._samples: deque[_Sample] = deque([_Sample(clock(), progress.rows, progress.payload_bytes)])
        self._health: SlotHealth | None = None
        self._ends: deque[tuple[float, Lsn]] = deque(maxlen=_REMEMBERED)

    def report(self, progress: "CaptureProgress") -> None:
        """Process a progress report."""
        now, self.progress = self._clock(), progress
        self._samples.append(_Sample(now, progress.rows, progress.payload_bytes))
        while len(self._samples) > 2 and self._samples[1].at < now - _WINDOW:
            self._samples.popleft()
        self._see(now, progress.health)

    def speed(self) -> _Speed:
        """Return the rates over the last seconds, and the lag now."""
        now, first, last, confirmed = self._clock(), self._samples[0], self._samples[-1], self.progress.confirmed_lsn
        seconds = max(now - first.at, 1.0)
        messages, size = last.messages - first.messages, last.payload_bytes - first.payload_bytes
        missing_since = next((at for at, lsn in list(self._ends) if lsn > confirmed), now)
        lag = max(self.server_lsn - confirmed, 0)
        return _Speed(messages / seconds, size / seconds, lag, now - missing_since)

    def _see(self, now: float, health: "SlotHealth | None") -> None:
        if health is not None and health is not self._health:
            self._health = health
            self.server_lsn = Lsn((health.confirmed_lsn or 0) + (health.lag_bytes or 0))
            self._ends.append((now, self.server_lsn))
        while self._ends and self._ends[0][1] <= self.progress.confirmed_lsn:
            self._ends.popleft()


_LOG_INTERVAL: Final = 10.0
"""Seconds between two lines of progress in the log."""


def describe(meter: Meter) -> str:
    """Return one line: counts, rates, confirmed LSN, lag, open transactions, table copies."""
    progress, speed = meter.progress, meter.speed()
    parts = [
        *([] if progress.connected else ["not connected"]),
        counted(progress.rows, "message"),
        f"{speed.messages_per_second:,.0f}/s",
        f"{sized(speed.bytes_per_second)}/s",
        f"confirmed {progress.confirmed_lsn}",
        f"lag {sized(speed.lag_bytes)}, {speed.lag_seconds:.1f} s",
        f"{counted(progress.open_transactions, 'open transaction')}",
    ]
    if progress.copies.waiting:
        parts.append(_copying(progress.copies))
    return " · ".join(parts)


def _copying(copies: "CopyProgress") -> str:
    tables = f"{copies.tables} of {counted(copies.tables + copies.waiting, 'table')}"
    return f"copied {tables}, {counted(copies.rows, 'row')}, {sized(copies.payload_bytes)}, {copies.percent:.0f} %"


@contextmanager
def showing(meter: Meter, logged: EchoHandler, as_text: bool) -> "Iterator[Callable[[CaptureProgress], None]]":
    """Show the progress of a capture until the block ends; yield the function to which it is reported.

    On a terminal a status line is updated, which includes the last log message; otherwise progress is logged.

    Args:
        meter: The meter of the capture, to which the function reports.
        logged: The handler that has the last log message.
        as_text: Whether the log is text; other formats have no status line.
    """
    if as_text and sys.stderr is not None and sys.stderr.isatty():
        with _live(meter, logged):
            yield meter.report
    else:
        yield _Logged(meter)


@contextmanager
def _live(meter: Meter, logged: EchoHandler) -> Iterator[None]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def line() -> Text:
        return Text(printable(f"{describe(meter)} · {logged.last}"), overflow="ellipsis", no_wrap=True)

    # Log messages appear above the line, which is removed at the end.
    console = Console(stderr=True)
    with Live(console=console, get_renderable=line, refresh_per_second=2, transient=True, redirect_stdout=False):
        yield


class _Logged:
    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._due = time.monotonic() + _LOG_INTERVAL

    def __call__(self, progress: "CaptureProgress") -> None:
        self.meter.report(progress)
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _LOG_INTERVAL
            LOGGER.info("%s", describe(self.meter), extra=_fields(self.meter))


def _fields(meter: Meter) -> dict[str, Any]:
    """Return the progress as values, for structured logs."""
    progress, speed = meter.progress, meter.speed()
    return {
        "messages": progress.rows,
        "transactions": progress.transactions,
        "segments": progress.segments,
        "reconnects": progress.reconnects,
        "confirmed_lsn": str(progress.confirmed_lsn),
        "messages_per_second": round(speed.messages_per_second, 1),
        "bytes_per_second": round(speed.bytes_per_second, 1),
        "lag_bytes": speed.lag_bytes,
        "lag_seconds": round(speed.lag_seconds, 3),
        "open_transactions": progress.open_transactions,
        "copied_rows": progress.copies.rows,
        "copied_percent": round(progress.copies.percent, 1),
    }
