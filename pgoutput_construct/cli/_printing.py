"""What commands print: lines, tables, numbers with their nouns; nothing that moves a terminal's cursor."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "counted",
    "print_grid",
    "print_lines",
    "printable",
    "say",
    "sized",
]

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 byte``, ``1,024 bytes``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def sized(size: float) -> str:
    """Return a number of bytes as people read it, in powers of 1024 as PostgreSQL does: ``16 MB``, ``1.5 GB``."""
    power = 0
    while size >= 1000 and power < len(_UNITS) - 1:
        size, power = size / 1024, power + 1
    return f"{size:,.0f} {_UNITS[power]}" if power == 0 or size >= 100 else f"{size:,.1f} {_UNITS[power]}"


def printable(text: str) -> str:
    """Return text for a terminal: what is not printable, line breaks included, as the escapes of a Python string.

    Names, values and errors come from servers, logs and clients. A control character among them would move the cursor,
    change a title or paint over other lines, a line break would forge one, and a character that turns the direction of
    writing (U+202E) would show a name as another. What is printable is what Unicode calls so (str.isprintable).
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(text: str, *, err: bool = False, **style: Any) -> None:
    """Print one line for people, whatever its parts have in them; whoever wants several lines calls it for each.

    Args:
        text: The line, without styles of its own: these would be escaped.
        err: Print it on standard error.
        style: As click.style() has it, for the whole line.
    """
    click.secho(printable(text), err=err, **style)


_PIPE_WIDTH: Final = 200


def print_grid(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[str] = ()
) -> None:
    """Print rows under a title; the columns in ``right`` are aligned to the right, None is an empty cell."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        # Text: names and values are not rich's markup, whatever brackets they have.
        table.add_row(*(Text("" if value is None else printable(str(value))) for value in row))
    _console().print(table)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, however long."""
    console = _console()
    for line in lines:
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def _console() -> "Console":
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=_PIPE_WIDTH)
