"""Kinds of arguments that several commands take: positions, moments, seconds, addresses to listen at."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import click

from pgoutput_construct.cli.readers import is_log
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["LISTEN", "LOG", "LSN", "LSN_OR_TIME", "NAMES", "SECONDS", "TIME", "Listen"]


class _Parsed(click.ParamType[Any]):
    """A value that a function reads, whose ValueError is a usage error."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Listen(NamedTuple):
    """Where a server listens."""

    host: str
    port: int


def _lsn_or_time(text: str) -> Lsn | Timestamp:
    try:
        return Lsn(text)
    except PgoutputError:
        pass
    try:
        return _time(text)
    except ValueError:
        raise PgoutputError(f"{text!r} is neither an LSN (16/B374D848) nor a time (2026-01-31T12:00+00:00)") from None


def _time(text: str) -> Timestamp:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise PgoutputError(f"{text!r} is no time such as 2026-01-31T12:00+00:00") from None
    return Timestamp.from_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _listen(text: str) -> Listen:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 0xFFFF:
        raise PgoutputError(f"{text!r} is no port: give a number up to 65535, or HOST:PORT")
    return Listen(host.strip("[]") or "127.0.0.1", int(port))


def _log(text: str) -> str:
    if not is_log(text):
        raise PgoutputError(f"Directory {text!r} does not exist.")
    return text


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise PgoutputError(f"{text!r} has an empty name: separate names by single commas")
    return names


LSN: Final = _Parsed("lsn", Lsn)
"""A WAL position, as PostgreSQL writes it."""
LOG: Final = _Parsed("log", _log)
"""The address of a change log: a directory that exists, or a URI."""
LSN_OR_TIME: Final = _Parsed("time|lsn", _lsn_or_time)
"""A position, or a moment in ISO 8601; UTC where it names no zone."""
TIME: Final = _Parsed("time", _time)
"""A moment in ISO 8601; UTC where it names no zone."""
LISTEN: Final = _Parsed("[host:]port", _listen)
NAMES: Final = _Parsed("name,...", _names)
"""Names separated by commas."""
SECONDS: Final = click.FloatRange(min=0, min_open=True)
