"""Tables on standard output."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from pgoutput_construct.cli.words import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_grid", "print_lines"]

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
