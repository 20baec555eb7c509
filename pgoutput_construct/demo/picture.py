"""A chart of a pipeline over time: transactions captured and replicated, their lag, and events. Plain SVG."""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from statistics import median
from typing import Final

from pgoutput_construct.demo.freshness import Freshness

__all__ = ["bars", "median_lags", "picture", "rates"]

_WIDTH, _LEFT, _RIGHT = 900, 60, 190
_TOP, _HEIGHT, _GAP = 40, 200, 90
_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_COLOURS: Final = ("#3b6ea5", "#b5643c", "#7a9a3b", "#8a4f9e", "#4f9e94", "#9a9a3b")
_STYLE: Final = "text { font: 12px sans-serif; fill: #222 } .title { font-weight: bold } .axis { fill: #666 }"

Point = tuple[float, float]


def picture(watched: Freshness) -> str:
    """Return an SVG image: transactions over time, and the lag from commit to queryable by table."""
    ends = [sample.seconds for sample in watched.samples] + [lag.seconds for lag in watched.lags]
    width = max(ends, default=1.0)
    captured = [(sample.seconds, float(sample.captured)) for sample in watched.samples]
    replicated = [(sample.seconds, float(sample.replicated)) for sample in watched.samples]
    tables = {lag.table: list[Point]() for lag in watched.lags}
    for lag in watched.lags:
        tables[lag.table].append((lag.seconds, median(lag.lags)))
    second = _TOP + _HEIGHT + _GAP
    bottom = second + _HEIGHT + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom}" width="{_WIDTH}" height="{bottom}">',
        f'<style>{_STYLE}</style><rect width="{_WIDTH}" height="{bottom}" fill="#fff"/>',
        *_panel("committed transactions", {"in the log": captured, "in the tables": replicated}, width, _TOP),
        *_panel("seconds from commit to queryable (median of each batch)", tables, width, second),
        *_events(watched, width, bottom - 40),
        "</svg>",
    ]
    return "\n".join([*parts, ""])


def bars(values: Sequence[float], most: int = 40) -> str:
    """Return numbers as a sparkline of at most ``most`` blocks, each for the maximum of its interval."""
    step = max(1, -(-len(values) // most))
    largest = [max(values[first : first + step]) for first in range(0, len(values), step)]
    top = max(largest, default=0.0) or 1.0
    return "".join(_BLOCKS[round(value / top * (len(_BLOCKS) - 1))] for value in largest)


def rates(watched: Freshness) -> list[float]:
    """Return the number of transactions added to the tables in each second."""
    found: dict[int, float] = {}
    for before, after in pairwise(watched.samples):
        second = int(after.seconds)
        found[second] = found.get(second, 0.0) + max(after.replicated - before.replicated, 0)
    return [found.get(second, 0.0) for second in range(max(found, default=-1) + 1)]


def median_lags(watched: Freshness) -> dict[str, float]:
    """Return the median lag of each table in seconds, over all transactions."""
    lags = {lag.table: list[float]() for lag in watched.lags}
    for lag in watched.lags:
        lags[lag.table] += lag.lags
    return {table: median(of_table) for table, of_table in lags.items()}


def _panel(title: str, lines: dict[str, list[Point]], width: float, top: int) -> Iterator[str]:
    high = max((value for points in lines.values() for _, value in points), default=0.0) or 1.0
    place = _places(width, high, top)
    yield f'<text class="title" x="{_LEFT}" y="{top - 12}">{escape(title)}</text>'
    for value in (0.0, high / 2, high):
        _, y = place((0.0, value))
        yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text class="axis" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.4g}</text>'
    for number, (name, points) in enumerate(sorted(lines.items())):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [place(point) for point in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in places)
        y = top + 16 * number + 10
        yield f'<text x="{_WIDTH - _RIGHT + 12}" y="{y}" style="fill: {colour}">{escape(name)}</text>'
    yield f'<text class="axis" x="{_WIDTH - _RIGHT}" y="{top + _HEIGHT + 18}" text-anchor="end">{width:.0f} s</text>'


def _places(width: float, high: float, top: int) -> Callable[[Point], Point]:
    def place(point: Point) -> Point:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * point[0] / (width or 1.0)
        return x, top + _HEIGHT * (1 - point[1] / high)

    return place


def _events(watched: Freshness, width: float, bottom: int) -> Iterator[str]:
    for number, event in enumerate(watched.events):
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * event.seconds / (width or 1.0)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" stroke="#c33" stroke-dasharray="3 3"/>'
        y = _TOP + _HEIGHT + 34 + 12 * (number % 2)
        yield f'<text class="axis" x="{x + 3:.1f}" y="{y}">{escape(event.text)}</text>'
