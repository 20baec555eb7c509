"""Plots a report as SVG: one bar per engine on a logarithmic scale, one panel per case."""

import math
from collections.abc import Sequence
from html import escape

from tools.benchmark.measure import Result
from tools.benchmark.report import Report

__all__ = ["plot"]

_LEFT, _RIGHT, _BARS = 190, 110, 520
_BAR, _TITLE, _FOOT = 20, 34, 26
_COLOURS = {"parse": "#3b6ea5", "build": "#7a9a3b", "limit": "#9a9a9a"}
_WIDTH = _LEFT + _BARS + _RIGHT


def plot(report: Report) -> str:
    """Return the text of an SVG file."""
    panels, top = [], 10
    for batch in report.batches:
        results = [result for result in report.results.results if result.case == batch.case.name]
        if results:
            title = f"{batch.case.name}: ns per message, {batch.size / len(batch):.0f} bytes on average (logarithmic)"
            panels.append(_panel(title, sorted(results, key=lambda result: result.ns), top))
            top += _TITLE + _BAR * len(results) + _FOOT
    style = "text { font: 12px sans-serif; fill: #222 } .title { font-weight: bold } .axis { fill: #666 }"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" height="{top}">'
    return "\n".join([head, f"<style>{style}</style>", _box(0, 0, _WIDTH, top, "#fff"), *panels, "</svg>", ""])


def _panel(title: str, results: Sequence[Result], top: int) -> str:
    low = math.floor(math.log10(results[0].ns))
    high = max(math.ceil(math.log10(results[-1].ns)), low + 1)

    def place(ns: float) -> float:
        return max(_BARS * (math.log10(ns) - low) / (high - low), 1.0)

    bottom = top + _TITLE + _BAR * len(results)
    parts = [f'<text class="title" x="10" y="{top + 20}">{escape(title)}</text>']
    parts += [_tick(10.0**power, _LEFT + place(10.0**power), top + _TITLE, bottom) for power in range(low, high + 1)]
    for row, result in enumerate(results):
        parts.append(_bar(result, place(result.ns), top + _TITLE + _BAR * row))
    return "\n".join(parts)


def _bar(result: Result, width: float, top: int) -> str:
    shown = f"{result.ns:,.0f}" if result.ns >= 10 else f"{result.ns:.1f}"
    base = top + _BAR - 7
    name = f'<text x="{_LEFT - 8}" y="{base}" text-anchor="end">{escape(result.engine)}</text>'
    value = f'<text x="{_LEFT + width + 6:.1f}" y="{base}">{shown}</text>'
    return name + _box(_LEFT, top + 2, width, _BAR - 4, _COLOURS[result.does]) + value


def _tick(ns: float, x: float, top: int, bottom: int) -> str:
    line = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" stroke="#ddd"/>'
    return line + f'<text class="axis" x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{ns:g}</text>'


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
