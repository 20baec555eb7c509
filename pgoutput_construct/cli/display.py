"""How a running capture is shown: one line that changes on a terminal, else a line in the log now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.cli.logs import LOGGER, EchoHandler
from pgoutput_construct.cli.meter import Meter
from pgoutput_construct.cli.words import counted, printable, sized

if TYPE_CHECKING:
    from pgoutput_construct.postgres import CopyProgress

__all__ = ["describe", "showing"]

_LOG_INTERVAL: Final = 10.0
"""Seconds between two lines of progress in the log."""


def describe(meter: Meter) -> str:
    """Return one line: rates, position, lag, open transactions."""
    progress, speed = meter.progress, meter.speed()
    parts = [
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
def showing(meter: Meter, logged: EchoHandler, as_text: bool) -> Iterator[Callable[[], None]]:
    """Show a capture until the block ends, on a terminal with what was ``logged`` last.

    Yields what is to be called after each report.
    """
    if as_text and sys.stderr is not None and sys.stderr.isatty():
        with _live(meter, logged) as show:
            yield show
    else:
        yield _Logged(meter)


@contextmanager
def _live(meter: Meter, logged: EchoHandler) -> Iterator[Callable[[], None]]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def line() -> Text:
        return Text(printable(f"{describe(meter)} · {logged.last}"), overflow="ellipsis", no_wrap=True)

    # What is logged meanwhile appears above the line; when it ends, the line goes.
    console = Console(stderr=True)
    with Live(console=console, get_renderable=line, refresh_per_second=2, transient=True, redirect_stdout=False):
        yield lambda: None


class _Logged:
    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._due = time.monotonic() + _LOG_INTERVAL

    def __call__(self) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _LOG_INTERVAL
            LOGGER.info("%s", describe(self.meter), extra=_fields(self.meter))


def _fields(meter: Meter) -> dict[str, Any]:
    """Return the same as values, for structured logs."""
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
