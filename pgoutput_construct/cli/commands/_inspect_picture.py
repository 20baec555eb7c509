"""Rendering of an annotated dump, for a terminal, a pipe, or a file in SVG or HTML."""

import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from pgoutput_construct.cli._printing import printable
from pgoutput_construct.cli.commands._inspect_rows import Row, RowKind

__all__ = ["ON_WHITE", "Picture", "escaped"]

SHORT: Final = 8
"""Bytes per line."""
LONG: Final = 16
"""Bytes per line if all bytes are shown."""
LINES: Final = 2
"""Lines of bytes per field, unless all bytes are shown."""
COLOURS: Final = ("cyan", "green", "yellow", "magenta", "bright_blue", "bright_green")
"""The colours of consecutive fields, so that neighbours differ."""
VALUE: Final = 96
"""The width of a value in columns; longer ones wrap."""
WIDE: Final = 1000
"""The width of a pipe in columns: nothing wraps."""
WIDEST_FILE: Final = 180
"""The maximum width of a file in columns: longer lines wrap."""


class Picture(NamedTuple):
    """The dump to show: a title, and the rows."""

    title: str
    rows: Sequence[Row]
    all: bool = False

    def print(self) -> None:
        """Print it on standard output, in colours if that is a terminal and NO_COLOR is not set."""
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

    def text(self) -> str:
        """Return it as text, without colours."""
        console = Console(file=io.StringIO(), color_system=None, width=WIDEST_FILE, highlight=False)
        with console.capture() as capture:
            console.print(*self._parts())
        return "\n".join(line.rstrip() for line in capture.get().splitlines())

    def svg(self) -> str:
        """Return it as an SVG image."""
        return _to_svg(self.title, self._lines_of_file())

    def html(self) -> str:
        """Return it as an HTML page."""
        return _to_html(self.title, self._lines_of_file())

    def fragment(self) -> str:
        """Return it as the content of an element ``pre`` of an HTML page."""
        return _drawn(self._lines_of_file())

    def _lines_of_file(self) -> list[list[Segment]]:
        """Return it laid out at its natural width, up to WIDEST_FILE."""
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
        yield Text(printable(row.meaning), style if row.kind in (RowKind.FAULT, RowKind.UNREAD, RowKind.ELIDED) else "")

    def _lines(self, row: Row) -> tuple[list[str], list[str]]:
        """Return the offsets and the bytes of a row, by line."""
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
    styles = {RowKind.GROUP: "bold", RowKind.ELIDED: "dim", RowKind.FAULT: "bold red", RowKind.UNREAD: "dim red"}
    return styles.get(kind, colour)


ON_WHITE: Final[Mapping[str, str]] = {
    "": "#1f2328",
    "dim": "#59636e",
    "red": "#b3261e",
    "cyan": "#0a6c74",
    "green": "#1a7036",
    "yellow": "#7d5200",
    "magenta": "#8a3ab9",
    "bright_blue": "#0550ae",
    "bright_green": "#4a6b00",
}
"""Substitutes for the terminal's colours that are readable on white."""

_FONT: Final = "Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', 'Courier New', monospace"
_SIZE, _WIDTH, _HEIGHT, _MARGIN = 14, 8.4, 20, 12
"""In pixels: font size, character width, line height, margin."""

Lines = Sequence[Sequence[Segment]]


class _StyledRun(NamedTuple):
    """Text in one style, with the column of its first character."""

    column: int
    text: str
    style: Style


def _to_svg(title: str, lines: Lines) -> str:
    """Return the lines as an SVG image; each text is placed by its column, since viewers may collapse white space."""
    width = _MARGIN * 2 + _WIDTH * max((sum(segment.cell_length for segment in line) for line in lines), default=0)
    height = _MARGIN * 2 + _HEIGHT * len(lines)
    drawn = "\n".join(_cell(run, number) for number, line in enumerate(lines) for run in _runs(line))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" \
font-family="{_FONT}" font-size="{_SIZE}">
<title>{escaped(title)}</title>
<rect width="100%" height="100%" fill="#ffffff"/>
{drawn}
</svg>
"""


def _to_html(title: str, lines: Lines) -> str:
    """Return the lines as an HTML page."""
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{escaped(title)}</title>
<style>
body {{ color: {ON_WHITE[""]}; background: #ffffff; }}
pre {{ font: {_SIZE}px/1.4 {_FONT}; }}
</style>
</head>
<body>
<pre>
{_drawn(lines)}
</pre>
</body>
</html>
"""


def _drawn(lines: Lines) -> str:
    return "\n".join("".join(map(_span, line)).rstrip() for line in lines)


def _runs(line: Sequence[Segment]) -> Iterator[_StyledRun]:
    column = 0
    for segment in line:
        text = segment.text.strip()
        if text:
            start = column + cell_len(segment.text) - cell_len(segment.text.lstrip())
            yield _StyledRun(start, text, segment.style or Style())
        column += segment.cell_length


def _cell(run: _StyledRun, line: int) -> str:
    x, y = _MARGIN + _WIDTH * run.column, _MARGIN + _HEIGHT * line + _SIZE
    weight = ' font-weight="bold"' if run.style.bold else ""
    # textLength keeps columns aligned if the viewer substitutes a font with other widths.
    length = f'textLength="{_WIDTH * cell_len(run.text):.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x:.1f}" y="{y}" {length} fill="{_colour(run.style)}"{weight}>{escaped(run.text)}</text>'


def _span(segment: Segment) -> str:
    text, style = segment.text.rstrip(), segment.style or Style()
    if not text:
        return segment.text
    weight = "; font-weight: bold" if style.bold else ""
    return f'<span style="color: {_colour(style)}{weight}">{escaped(text)}</span>{segment.text[len(text) :]}'


def _colour(style: Style) -> str:
    return ON_WHITE[style.color.name if style.color else "dim" if style.dim else ""]


def escaped(text: str) -> str:
    """Return text escaped for XML and HTML, which allow neither control characters nor surrogates."""
    return escape("".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text))
