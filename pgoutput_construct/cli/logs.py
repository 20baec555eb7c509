"""What a long-running command writes to standard error: lines for people, or JSON for machines."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final

import click

from pgoutput_construct.cli.words import printable

__all__ = ["FORMATS", "LOGGER", "EchoHandler", "logging_to_stderr"]

LOGGER: Final = logging.getLogger("pgoutput_construct")
"""The logger of the whole package."""

_USUAL: Final = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime"})


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{_time(record)} {record.levelname:<7} {printable(record.getMessage())}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        extra = {key: value for key, value in record.__dict__.items() if key not in _USUAL}
        line = {"time": _time(record), "level": record.levelname.lower(), "message": record.getMessage(), **extra}
        return json.dumps(line, default=str)


FORMATS: Final = {"text": _TextFormatter, "json": _JsonFormatter}


class EchoHandler(logging.Handler):
    """Writes to standard error; ``last`` is what it wrote last, without the time."""

    last = ""

    # Asks for sys.stderr at each line: while a progress line is shown, rich stands in for it.
    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        self.last = record.getMessage()
        with suppress(OSError):  # nobody listens any more, which must not end a capture
            click.echo(self.format(record), err=True)


@contextmanager
def logging_to_stderr(form: str) -> Iterator[EchoHandler]:
    """Write what the package logs, from INFO on, in one of FORMATS until the block ends."""
    handler = EchoHandler()
    handler.setFormatter(FORMATS[form]())
    before = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(before)


def _time(record: logging.LogRecord) -> Any:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
