"""The report of a run: tables for people, JSON for programs, and a plot as SVG with one bar per engine."""

import math
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tools.benchmark import memory as memory_of
from tools.benchmark.batch import Batch
from tools.benchmark.goals import Outcome, outcomes
from tools.benchmark.harness import Allocated
from tools.benchmark.measure import Result, Results
from tools.benchmark.memory import Memory
from tools.benchmark.scaling import Point

__all__ = ["Report", "machine", "machine_text", "plot", "table_text"]

_LIBRARIES = ("construct", "pyarrow", "numba", "numpy")


def machine(libraries: Sequence[str] = _LIBRARIES) -> dict[str, Any]:
    """Return the facts about the machine that the results depend on.

    Args:
        libraries: The distributions whose versions are among them.
    """
    return {
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "libraries": {name: _version(name) for name in libraries},
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8", "replace").splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@dataclass(slots=True)
class Report:
    """The results of one run; complete or interrupted."""

    machine: dict[str, Any]
    threads: str
    batches: list[Batch] = field(default_factory=list)
    results: Results = field(default_factory=Results)
    memory: list[Memory] = field(default_factory=list)
    allocated: list[tuple[str, Allocated]] = field(default_factory=list)
    """The cases, each with what a parser in another language allocates for a message of it."""
    points: list[Point] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    """What each engine is."""

    @property
    def outcomes(self) -> list[Outcome]:
        """The goals, and whether they are reached."""
        return outcomes(self.results, self.memory, self.points)

    def text(self) -> str:
        """Return the tables."""
        parts = [machine_text(self.machine, self.threads)]
        parts += [self._case_text(batch) for batch in self.batches]
        parts += [_allocated_text(self.allocated)] if self.allocated else []
        parts += [_memory_text(self.memory)] if self.memory else []
        parts += [_scaling_text(self.points)] if self.points else []
        parts += [_outcomes_text(self.outcomes)]
        return "\n\n".join(parts)

    def json(self) -> dict[str, Any]:
        """Return everything, each single measurement too."""
        return {
            "machine": self.machine,
            "threads": self.threads,
            "cases": [_batch_json(batch) for batch in self.batches],
            "engines": self.titles,
            "results": [_result_json(result) for result in self.results.results],
            "skipped": [dict(zip(("case", "engine", "why"), entry, strict=True)) for entry in self.results.skipped],
            "allocated": [{"case": case, **asdict(each)} for case, each in self.allocated],
            "memory": [memory_of.as_json(one) for one in self.memory],
            "scaling": [asdict(point) for point in self.points],
            "goals": [{**asdict(outcome), "verdict": outcome.verdict} for outcome in self.outcomes],
        }

    def _case_text(self, batch: Batch) -> str:
        case = batch.case
        average = batch.size / max(len(batch), 1)
        title = f"{case.name}: {case.title}\n{len(batch):,} messages of {average:.0f} bytes on average"
        found = [result for result in self.results.results if result.case == case.name]
        lines = [_result_line(result, self.titles) for result in found]
        why = [
            f"  {engine} was not measured: {text}" for name, engine, text in self.results.skipped if name == case.name
        ]
        return "\n".join([title, table_text(_RESULT_HEAD, lines), *why])


_RESULT_HEAD = ("engine", "does", "ns/message", "spread", "messages/s", "MB/s", "what it is")


def _result_line(result: Result, titles: dict[str, str]) -> Sequence[str]:
    numbers = f"{result.ns:,.0f}" if result.ns >= 100 else f"{result.ns:.1f}"
    rates = f"{result.messages_per_second:,.0f}", f"{result.bytes_per_second / 1e6:,.1f}"
    return result.engine, result.does, numbers, f"{result.spread:.0%}", *rates, titles.get(result.engine, "")


def machine_text(found: dict[str, Any], threads: str) -> str:
    """Return what ``machine`` found as lines.

    Args:
        found: The facts.
        threads: How many threads and CPUs are used.
    """
    libraries = ", ".join(f"{name} {number}" for name, number in found["libraries"].items())
    lines = [f"{found['cpu']}, {found['cpus']} CPUs, {found['system']}", f"{found['python']}, {libraries}", threads]
    if found["load"] > 0.5:
        lines.append(f"the machine was busy when this began (load {found['load']}): single numbers are rough")
    return "\n".join(lines)


def _allocated_text(found: Iterable[tuple[str, Allocated]]) -> str:
    lines = []
    for case, one in found:
        count = "-" if one.allocations is None else f"{one.allocations:.1f}"
        lines.append((case, one.engine, count, f"{one.bytes:,.0f}"))
    return "allocated for a message\n" + table_text(("case", "engine", "allocations", "bytes"), lines)


def _memory_text(found: Iterable[Memory]) -> str:
    head = ("engine", "batch MB", "before MB", "peak MB", "peak/batch", "added/batch", "seconds")
    lines = []
    for one in found:
        sizes = (f"{size / 2**20:,.0f}" for size in (one.batch_bytes, one.before, one.peak))
        lines.append((one.engine, *sizes, f"{one.multiple:.2f}", f"{one.beside:.2f}", f"{one.seconds:.2f}"))
    return "peak memory of a process that decodes one batch of rows\n" + table_text(head, lines)


def _scaling_text(points: Sequence[Point]) -> str:
    texts = []
    for per, sizes_of in (("message", "messages in one batch"), ("column", "columns")):
        sizes = sorted({point.size for point in points if point.per == per})
        engines = dict.fromkeys(point.engine for point in points if point.per == per)
        cost = {(point.engine, point.size): point.ns for point in points if point.per == per}
        lines = [(engine, *(_cost(cost.get((engine, size))) for size in sizes)) for engine in engines]
        texts.append(f"ns a {per}, by {sizes_of}\n" + table_text(("engine", *(f"{size:,}" for size in sizes)), lines))
    return "\n\n".join(texts)


def _cost(ns: float | None) -> str:
    return "-" if ns is None else f"{ns:,.1f}"


def _outcomes_text(found: Iterable[Outcome]) -> str:
    head = ("goal", "measured", "must", "aim", "reached")
    lines = []
    for outcome in found:
        measured = "-" if outcome.measured is None else f"{outcome.measured:.2f}x"
        sign = "<=" if outcome.at_most else ">="
        reached = f"{outcome.verdict} ({outcome.why_not})" if outcome.why_not else outcome.verdict
        lines.append((outcome.title, measured, f"{sign} {outcome.must:g}x", f"{sign} {outcome.aim:g}x", reached))
    return "goals\n" + table_text(head, lines)


def table_text(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table as lines; a column whose last cell begins with a digit is aligned to the right.

    Args:
        head: The titles of the columns.
        lines: The cells of each row.
    """
    rows = [head, *lines]
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    left = {place for place in range(len(head)) if not rows[-1][place][:1].isdigit()}
    return "\n".join("  " + "  ".join(_cells(row, widths, left)).rstrip() for row in rows)


def _cells(row: Sequence[str], widths: Sequence[int], left: set[int]) -> Iterable[str]:
    for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.ljust(width) if place in left else cell.rjust(width)


def _batch_json(batch: Batch) -> dict[str, Any]:
    case = batch.case
    shown = {"name": case.name, "title": case.title, "messages": len(batch), "bytes": batch.size}
    return {**shown, "proto_version": case.proto_version, "streaming": case.streaming, "binary": case.binary}


def _result_json(result: Result) -> dict[str, Any]:
    return {
        **asdict(result),
        "ns": result.ns,
        "spread": result.spread,
        "messages_per_second": result.messages_per_second,
        "bytes_per_second": result.bytes_per_second,
    }


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
