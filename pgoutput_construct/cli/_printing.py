"""Printing for people: lines, tables, numbers with nouns; control characters are escaped."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.types import UNIX_TO_POSTGRES

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "counted",
    "json_line",
    "listed",
    "print_grid",
    "print_lines",
    "printable",
    "say",
    "sized",
    "unix_seconds",
]

_NAMED: Final = 8
"""The maximum number of names in a line."""
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if necessary: ``1 byte``, ``1,024 bytes``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def listed(names: Sequence[str]) -> str:
    """Return the first eight names, and the number of the others: ``a, b and 3 more``."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def sized(size: float) -> str:
    """Return a human-readable size in bytes, in powers of 1024 as in PostgreSQL: ``16 MB``, ``1.5 GB``."""
    power = 0
    while size >= 1000 and power < len(_UNITS) - 1:
        size, power = size / 1024, power + 1
    return f"{size:,.0f} {_UNITS[power]}" if power == 0 or size >= 100 else f"{size:,.1f} {_UNITS[power]}"


def unix_seconds(time: int) -> float:
    """Return a time of PostgreSQL, in microseconds since 2000, in seconds since 1970."""
    return (time + UNIX_TO_POSTGRES) / 1_000_000


def printable(text: str) -> str:
    """Return text for a terminal: characters that are not printable, including line breaks, as Python escapes.

    Names, values and errors come from servers, logs and clients. Control characters in them could move the cursor,
    change the title or overwrite other lines, a line break could forge one, and a bidirectional override (U+202E) could
    display one name as another. ``str.isprintable`` decides.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def json_line(value: Any, **more: Any) -> str:
    """Return a dataclass as one line of JSON, with LSNs and times as PostgreSQL writes them.

    Args:
        value: An object of a dataclass.
        more: Members that come first.
    """
    return json.dumps({**more, **_plain(value)})


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value) if field.repr}
    if isinstance(value, Lsn | Timestamp):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def say(text: str, *, err: bool = False, **style: Any) -> None:
    """Print one line; characters that are not printable are escaped, line breaks too.

    Args:
        text: The line, without styles of its own, which would be escaped.
        err: Print it on standard error.
        style: Arguments of click.style(), for the whole line.
    """
    click.secho(printable(text), err=err, **style)


_PIPE_WIDTH: Final = 200


def print_grid(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[str] = ()
) -> None:
    """Print a table.

    Args:
        title: The line above it.
        columns: The column headings.
        rows: The cells of each row; None is an empty cell.
        right: The columns to align to the right.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        # Text, so that brackets in names and values are not parsed as rich markup.
        table.add_row(*(Text("" if value is None else printable(str(value))) for value in row))
    _console().print(table)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines without wrapping them."""
    console = _console()
    for line in lines:
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def _console() -> "Console":
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=_PIPE_WIDTH)
