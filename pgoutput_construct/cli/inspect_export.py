"""The picture of an annotated dump as a file, in SVG or HTML, that loads nothing from elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

__all__ = ["COLOURS", "to_html", "to_svg"]

COLOURS: Final[Mapping[str, str]] = {
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
"""The terminal's colours as they are readable on white."""

_FONT: Final = "Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', 'Courier New', monospace"
_SIZE, _WIDTH, _HEIGHT, _MARGIN = 14, 8.4, 20, 12
"""Of the font, of a character, of a line, and around it all, in pixels."""

Lines = Sequence[Sequence[Segment]]


class _Run(NamedTuple):
    """Text in one style, with the column of its first character."""

    column: int
    text: str
    style: Style


def to_svg(title: str, lines: Lines) -> str:
    """Return the lines as an SVG image; white space between cells is not drawn, so no viewer can lose it."""
    width = _MARGIN * 2 + _WIDTH * max((sum(segment.cell_length for segment in line) for line in lines), default=0)
    height = _MARGIN * 2 + _HEIGHT * len(lines)
    drawn = "\n".join(_cell(run, number) for number, line in enumerate(lines) for run in _runs(line))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" \
font-family="{_FONT}" font-size="{_SIZE}">
<title>{_escaped(title)}</title>
<rect width="100%" height="100%" fill="#ffffff"/>
{drawn}
</svg>
"""


def to_html(title: str, lines: Lines) -> str:
    """Return the lines as a page."""
    drawn = "\n".join("".join(map(_span, line)).rstrip() for line in lines)
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{_escaped(title)}</title>
<style>
body {{ color: {COLOURS[""]}; background: #ffffff; }}
pre {{ font: {_SIZE}px/1.4 {_FONT}; }}
</style>
</head>
<body>
<pre>
{drawn}
</pre>
</body>
</html>
"""


def _runs(line: Sequence[Segment]) -> Iterator[_Run]:
    column = 0
    for segment in line:
        text = segment.text.strip()
        if text:
            start = column + cell_len(segment.text) - cell_len(segment.text.lstrip())
            yield _Run(start, text, segment.style or Style())
        column += segment.cell_length


def _cell(run: _Run, line: int) -> str:
    x, y = _MARGIN + _WIDTH * run.column, _MARGIN + _HEIGHT * line + _SIZE
    weight = ' font-weight="bold"' if run.style.bold else ""
    # textLength holds the columns where the font is a substitute with other widths.
    length = f'textLength="{_WIDTH * cell_len(run.text):.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x:.1f}" y="{y}" {length} fill="{_colour(run.style)}"{weight}>{_escaped(run.text)}</text>'


def _span(segment: Segment) -> str:
    text, style = segment.text.rstrip(), segment.style or Style()
    if not text:
        return segment.text
    weight = "; font-weight: bold" if style.bold else ""
    return f'<span style="color: {_colour(style)}{weight}">{_escaped(text)}</span>{segment.text[len(text) :]}'


def _colour(style: Style) -> str:
    return COLOURS[style.color.name if style.color else "dim" if style.dim else ""]


def _escaped(text: str) -> str:
    """Return text as XML and HTML can have it: neither has control characters or bytes that are not UTF-8."""
    return escape("".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text))
