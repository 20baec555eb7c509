"""A chart of a pipeline over time: transactions captured and replicated, their lag, and events."""

import io
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Final

from pgoutput_construct.demo.freshness import Freshness

__all__ = ["bars", "median_lags", "picture", "rates"]

_SIZE: Final = (10.0, 6.5)
"""Width and height in inches."""
_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_GRAY: Final = "#808a94"
_INK: Final = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _GRAY)
_SETTINGS: Final[Any] = {"svg.fonttype": "none", "svg.hashsalt": "freshness", "text.parse_math": False, **_INK}
"""Texts stay texts; the same numbers give the same file; it can be read on a light and on a dark page."""
_NEAR: Final = 0.03
"""Events that are nearer to each other than this share of the width have their numbers on different levels."""

Point = tuple[float, float]


def picture(watched: Freshness) -> str:
    """Return an SVG image: transactions over time, and the lag from commit to queryable by table."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    tables = {lag.table: list[Point]() for lag in watched.lags}
    for lag in watched.lags:
        tables[lag.table].append((lag.seconds, median(lag.lags)))
    counts = {
        "in the log": [(sample.seconds, float(sample.captured)) for sample in watched.samples],
        "in the tables": [(sample.seconds, float(sample.replicated)) for sample in watched.samples],
    }
    written = io.StringIO()
    with rc_context(_SETTINGS):
        figure = Figure(figsize=_SIZE, layout="constrained")
        above, below = figure.subplots(2, sharex=True)
        _draw(above, "committed transactions", counts, "", pad=36.0)
        _draw(below, "seconds from commit to queryable, median of each batch", tables, ".")
        below.set_xlabel("seconds")
        _mark(above, below, watched)
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return written.getvalue()


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


def _draw(axes: Any, title: str, lines: Mapping[str, Sequence[Point]], marker: str, pad: float = 6.0) -> None:
    axes.set_title(title, loc="left", fontsize="medium", fontweight="bold", pad=pad)
    for name, points in sorted(lines.items()):
        axes.plot([x for x, _ in points], [y for _, y in points], label=name, marker=marker or None)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if lines:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def _mark(above: Any, below: Any, watched: Freshness) -> None:
    """Draw a numbered line for each event through both charts, and explain the numbers next to them."""
    width = max(
        [event.seconds for event in watched.events] + [sample.seconds for sample in watched.samples], default=1.0
    )
    said, level, before = list[str](), 0, -width
    for number, event in enumerate(sorted(watched.events, key=lambda event: event.seconds), 1):
        level = (level + 1) % 3 if event.seconds - before < _NEAR * width else 0
        before = event.seconds
        for axes in (above, below):
            axes.axvline(event.seconds, color=_GRAY, linestyle=":", linewidth=1)
        anchor = {"xy": (event.seconds, 1.0), "xycoords": above.get_xaxis_transform(), "ha": "center"}
        above.annotate(
            str(number), **anchor, xytext=(0, 3 + 10 * level), textcoords="offset points", color=_GRAY, fontsize=8
        )
        said.append(f"{number}: {event.text}")
    for line, text in enumerate(said):
        below.annotate(
            text,
            xy=(1.0, 0.0),
            xycoords="axes fraction",
            xytext=(12, 12 * (len(said) - 1 - line)),
            textcoords="offset points",
            color=_GRAY,
            fontsize=8,
            annotation_clip=False,
        )
