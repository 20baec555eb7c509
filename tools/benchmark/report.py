"""The report: tables for people, JSON for programs."""

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tools.benchmark import memory as memory_of
from tools.benchmark.batch import Batch
from tools.benchmark.goals import Outcome, outcomes
from tools.benchmark.measure import Result, Results
from tools.benchmark.memory import Memory
from tools.benchmark.scaling import Point

__all__ = ["Report", "machine"]

_LIBRARIES = ("construct", "pyarrow", "numba", "numpy")


def machine() -> dict[str, Any]:
    """Return what the numbers depend on beside the code."""
    return {
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "libraries": {name: _version(name) for name in _LIBRARIES},
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
    """All of one run; it can be shown at any time, also when the run was interrupted."""

    machine: dict[str, Any]
    threads: str
    batches: list[Batch] = field(default_factory=list)
    results: Results = field(default_factory=Results)
    memory: list[Memory] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    """What each engine is."""

    @property
    def outcomes(self) -> list[Outcome]:
        """The goals, and whether they are reached."""
        return outcomes(self.results, self.memory, self.points)

    def text(self) -> str:
        """Return the tables."""
        parts = [_machine_text(self.machine, self.threads)]
        parts += [self._case_text(batch) for batch in self.batches]
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
        return "\n".join([title, _table(_RESULT_HEAD, lines), *why])


_RESULT_HEAD = ("engine", "does", "ns/message", "spread", "messages/s", "MB/s", "what it is")


def _result_line(result: Result, titles: dict[str, str]) -> Sequence[str]:
    numbers = f"{result.ns:,.0f}" if result.ns >= 100 else f"{result.ns:.1f}"
    rates = f"{result.messages_per_second:,.0f}", f"{result.bytes_per_second / 1e6:,.1f}"
    return result.engine, result.does, numbers, f"{result.spread:.0%}", *rates, titles.get(result.engine, "")


def _machine_text(found: dict[str, Any], threads: str) -> str:
    libraries = ", ".join(f"{name} {number}" for name, number in found["libraries"].items())
    lines = [f"{found['cpu']}, {found['cpus']} CPUs, {found['system']}", f"{found['python']}, {libraries}", threads]
    if found["load"] > 0.5:
        lines.append(f"the machine was busy when this began (load {found['load']}): single numbers are rough")
    return "\n".join(lines)


def _memory_text(found: Iterable[Memory]) -> str:
    head = ("engine", "batch MB", "before MB", "peak MB", "peak/batch", "added/batch", "seconds")
    lines = []
    for one in found:
        sizes = (f"{size / 2**20:,.0f}" for size in (one.batch_bytes, one.before, one.peak))
        lines.append((one.engine, *sizes, f"{one.multiple:.2f}", f"{one.beside:.2f}", f"{one.seconds:.2f}"))
    return "peak memory of a process that decodes one batch of rows\n" + _table(head, lines)


def _scaling_text(points: Sequence[Point]) -> str:
    texts = []
    for per, sizes_of in (("message", "messages in one batch"), ("column", "columns")):
        sizes = sorted({point.size for point in points if point.per == per})
        engines = dict.fromkeys(point.engine for point in points if point.per == per)
        cost = {(point.engine, point.size): point.ns for point in points if point.per == per}
        lines = [(engine, *(_cost(cost.get((engine, size))) for size in sizes)) for engine in engines]
        texts.append(f"ns a {per}, by {sizes_of}\n" + _table(("engine", *(f"{size:,}" for size in sizes)), lines))
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
    return "goals\n" + _table(head, lines)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
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
