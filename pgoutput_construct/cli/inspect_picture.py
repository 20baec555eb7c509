"""The picture of an annotated dump, for a terminal, a pipe, or a file in SVG or HTML."""

import io
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pgoutput_construct.cli.inspect_export import to_html, to_svg
from pgoutput_construct.cli.inspect_rows import Row, RowKind
from pgoutput_construct.cli.words import printable

__all__ = ["Picture"]

SHORT: Final = 8
"""Bytes in a line."""
LONG: Final = 16
"""Bytes in a line where all bytes are shown."""
LINES: Final = 2
"""Lines of bytes before the rest is left out."""
COLOURS: Final = ("cyan", "green", "yellow", "magenta", "bright_blue", "bright_green")
"""Fields have them in turn, so that neighbours differ."""
VALUE: Final = 96
"""Columns of a value, which continues on the next line."""
WIDE: Final = 1000
"""Columns of a pipe, which wraps nothing."""
WIDEST_FILE: Final = 180
"""Columns of a file, in which longer lines wrap."""


class Picture(NamedTuple):
    """What is shown: a line above, and the rows."""

    title: str
    rows: Sequence[Row]
    all: bool = False

    def print(self) -> None:
        """Show it on standard output, in colours where that is a terminal and NO_COLOR is not set."""
        system: Any = None if os.environ.get("NO_COLOR") else "auto"
        console = Console(file=sys.stdout, color_system=system, highlight=False, soft_wrap=False)
        if not console.is_terminal:
            console.width = WIDE
        with console.capture() as capture:
            console.print(*self._parts())
        lines = (line if console.is_terminal else line.rstrip() for line in capture.get().splitlines())
        text = "".join(f"{line}\n" for line in lines)
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", "replace"))
        sys.stdout.buffer.flush()

    def svg(self) -> str:
        """Return it as an SVG image."""
        return to_svg(self.title, self._lines_of_file())

    def html(self) -> str:
        """Return it as a page."""
        return to_html(self.title, self._lines_of_file())

    def _lines_of_file(self) -> list[list[Segment]]:
        """Lay it out as wide as it needs, up to a limit."""
        console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=WIDE)
        parts = self._parts()
        widths = [Measurement.get(console, console.options, part).maximum for part in parts]
        options = console.options.update(width=min(max(widths), WIDEST_FILE), highlight=False)
        return [line for part in parts for line in console.render_lines(part, options, pad=False)]

    def _parts(self) -> tuple[Text, Table]:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("offset", justify="right", no_wrap=True, style="dim")
        table.add_column("bytes", no_wrap=True)
        table.add_column("field", overflow="fold")
        table.add_column("type", overflow="fold", style="dim")
        table.add_column("value", overflow="fold", max_width=VALUE)
        table.add_column("meaning", overflow="fold")
        number = 0
        for row in self.rows:
            table.add_row(*self._cells(row, COLOURS[number % len(COLOURS)]))
            number += row.kind is RowKind.FIELD
        return Text(printable(self.title), style="bold"), table

    def _cells(self, row: Row, colour: str) -> Iterator[Text]:
        style = _style(row.kind, colour)
        offsets, lines = self._lines(row)
        yield Text("\n".join(offsets))
        yield Text("\n".join(lines), style)
        yield Text(printable("  " * row.depth + row.name), style)
        yield Text(printable(row.type))
        yield Text(printable(row.value), style)
        yield Text(
            printable(row.meaning), style if row.kind in (RowKind.FAULT, RowKind.UNREAD, RowKind.LEFT_OUT) else ""
        )

    def _lines(self, row: Row) -> tuple[list[str], list[str]]:
        """Return the offsets and the bytes, line by line."""
        size = LONG if self.all else SHORT
        starts = range(0, len(row.data), size)
        shown = starts if self.all else starts[:LINES]
        offsets = [str(row.start + start) for start in shown] or [_offset(row)]
        lines = [row.data[start : start + size].hex(" ") for start in shown]
        left = len(row.data) - size * len(shown)
        return offsets, [*lines, f"… {left:,} more"] if left > 0 else lines


def _offset(row: Row) -> str:
    return "" if row.kind is RowKind.GROUP else str(row.start)


def _style(kind: RowKind, colour: str) -> str:
    styles = {RowKind.GROUP: "bold", RowKind.LEFT_OUT: "dim", RowKind.FAULT: "bold red", RowKind.UNREAD: "dim red"}
    return styles.get(kind, colour)
