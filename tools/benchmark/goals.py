"""The goals: ratios within one run, for rows of ten columns, on one thread unless a goal says otherwise."""

from dataclasses import dataclass

from tools.benchmark.cases import HEADLINE
from tools.benchmark.measure import Results
from tools.benchmark.memory import Memory
from tools.benchmark.scaling import Point, growth

__all__ = ["FLAT", "GOALS", "Goal", "Outcome", "outcomes"]

FLAT = 1.5
"""A cost that is nowhere so many times what it is at a smaller size is called flat."""


@dataclass(frozen=True, slots=True)
class Goal:
    """How many times longer ``upper`` takes than ``lower``: at least (or at most) ``must``, better ``aim``."""

    title: str
    upper: str
    lower: str
    must: float
    aim: float
    at_most: bool = False
    upper_case: str = HEADLINE.name
    lower_case: str = HEADLINE.name


@dataclass(frozen=True, slots=True)
class Outcome:
    """A goal and what was measured."""

    title: str
    measured: float | None
    must: float
    aim: float
    at_most: bool
    why_not: str = ""

    @property
    def verdict(self) -> str:
        """``aim``, ``must``, ``missed`` or ``not measured``."""
        if self.measured is None:
            return "not measured"
        sign = -1 if self.at_most else 1
        if sign * self.measured >= sign * self.aim:
            return "aim"
        return "must" if sign * self.measured >= sign * self.must else "missed"


GOALS = (
    Goal("codec parse against pypgoutput", "pypgoutput", "codec", 7, 8),
    Goal("codec parse, binary format against text", "codec", "codec", 1.2, 1, at_most=True, upper_case="binary"),
    Goal("parse_prefix against parse", "prefix", "codec", 1.5, 1.2, at_most=True),
    Goal("codec parse against pg-logical-replication (node)", "pg-logical-replication", "codec", 1, 1.3),
    Goal("Rust codec against pg-walstream", "pg-walstream", "rust-codec", 1.5, 2),
    Goal("Go codec against pglogrepl", "pglogrepl", "go-codec", 1.5, 2),
    Goal("TypeScript codec against pg-logical-replication", "pg-logical-replication", "typescript-codec", 1.5, 2),
    Goal("codec build against construct's build", "construct-build", "codec-build", 20, 40),
    Goal("columnar rows, typed, against pglogrepl's untyped parse", "pglogrepl", "rows", 2.5, 3.5),
    Goal("columnar rows, typed, against pg-walstream's untyped parse", "pg-walstream", "rows", 1, 1.4),
    Goal("columnar rows against pypgoutput", "pypgoutput", "rows", 25, 60),
    Goal("columnar rows, text format against binary", "rows", "rows", 1.5, 2, lower_case="binary"),
    Goal("columnar rows, two threads against one, one array", "rows-one", "rows-one-2", 1.7, 1.9),
    Goal("columnar rows, one array against batches", "rows-one", "rows", 1.3, 1.1, at_most=True),
    Goal("columnar index against copying the bytes", "index", "memcpy", 6, 4, at_most=True),
)
"""The goals that are ratios of two engines; memory and scaling have their own."""

MEMORY_MUST, MEMORY_AIM = 4.0, 2.5


def outcomes(results: Results, memory: list[Memory], points: list[Point]) -> list[Outcome]:
    """Compare everything that was measured with the goals."""
    found = [_ratio(goal, results) for goal in GOALS]
    rows = next((one for one in memory if one.engine == "rows"), None)
    peak = None if rows is None else rows.multiple
    why = "" if rows else results.why_not("memory", "rows")
    found.append(Outcome("peak memory while decoding rows, in batches", peak, MEMORY_MUST, MEMORY_AIM, True, why))
    for engine, per in sorted({(point.engine, point.per) for point in points}):
        grown = growth([point for point in points if (point.engine, point.per) == (engine, per)])
        why = "" if grown else "one size is not enough"
        found.append(Outcome(f"{engine}: growth of the cost a {per}", grown, FLAT, FLAT, True, why))
    return found


def _ratio(goal: Goal, results: Results) -> Outcome:
    upper, lower = (goal.upper_case, goal.upper), (goal.lower_case, goal.lower)
    measured = results.ratio(upper, lower)
    missing = [key for key in dict.fromkeys((upper, lower)) if results.find(*key) is None]
    reasons = [f"{engine}: {results.why_not(case, engine)}" for case, engine in missing]
    return Outcome(goal.title, measured, goal.must, goal.aim, goal.at_most, "; ".join(reasons))
