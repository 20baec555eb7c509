"""Kinds of arguments that several commands take: positions, moments, seconds, addresses to listen at."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import click

from pgoutput_construct.cli.readers import is_log
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.stream.identifiers import normal_name, split_list
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = [
    "FILE_MODE",
    "LISTEN",
    "LOG",
    "LSN",
    "LSN_OR_TIME",
    "OPERATIONS",
    "REPLACE_ROWS",
    "SECONDS",
    "TABLE",
    "TABLES",
    "TIME",
    "Listen",
]


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


def _file_mode(text: str) -> int:
    try:
        return int(text, 8)
    except ValueError:
        raise PgoutputError(f"{text!r} is no mode of files, such as 0640") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(split_list(text))


LSN: Final = _Parsed("lsn", Lsn)
"""A WAL position, as PostgreSQL writes it."""
LOG: Final = _Parsed("log", _log)
"""The address of a change log: a directory that exists, or a URI."""
LSN_OR_TIME: Final = _Parsed("time|lsn", _lsn_or_time)
"""A position, or a moment in ISO 8601; UTC where it names no zone."""
TIME: Final = _Parsed("time", _time)
"""A moment in ISO 8601; UTC where it names no zone."""
LISTEN: Final = _Parsed("[host:]port", _listen)
TABLE: Final = _Parsed("schema.table", normal_name)
"""A table, as in SQL: in double quotes what SQL would fold or not read."""
FILE_MODE: Final = _Parsed("mode", _file_mode)
"""The mode of files, as chmod takes it."""
OPERATIONS: Final = _Parsed("operation,...", lambda text: tuple(word.strip() for word in text.split(",")))
"""Operations that a publication publishes, separated by commas."""
TABLES: Final = _Parsed("table,...", _names)
"""Tables, or whole schemas (schema.*), separated by commas."""
SECONDS: Final = click.FloatRange(min=0, min_open=True)
REPLACE_ROWS: Final = (
    "Send a later copy of a table by TRUNCATE also where its publications have no deletes or no truncates."
    "  [default: such a copy is not sent, and named]"
)
"""The help of the option --replace-rows."""
