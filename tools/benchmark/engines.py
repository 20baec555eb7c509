"""The list of all engines, and their selection by name."""

from collections.abc import Iterable
from functools import partial

from tools.benchmark import harness, pypgoutput
from tools.benchmark.batches import BATCH_ENGINES
from tools.benchmark.harness import HARNESSES, Harness
from tools.benchmark.limits import LIMIT_ENGINES
from tools.benchmark.measure import Engine
from tools.benchmark.messages import MESSAGE_ENGINES

__all__ = ["GROUPS", "choose", "engines"]

GROUPS = ("ours", "peers", "limits")
"""Names that stand for several engines."""

_PYPGOUTPUT = Engine(
    "pypgoutput",
    "parse",
    "peers",
    "pypgoutput (Python): its decoders",
    pypgoutput.start,
    sample=50_000,
    prepare=pypgoutput.prepare,
)


def engines() -> tuple[Engine, ...]:
    """Return every engine."""
    return (*MESSAGE_ENGINES, *BATCH_ENGINES, _PYPGOUTPUT, *map(_peer, HARNESSES), *LIMIT_ENGINES)


def choose(known: Iterable[Engine], names: Iterable[str]) -> list[Engine]:
    """Return the engines with these names, or of these groups; all of them where no name is given."""
    wanted = set(names)
    return [engine for engine in known if not wanted or {engine.name, engine.group} & wanted]


def _peer(foreign: Harness) -> Engine:
    start, prepare = partial(harness.start, foreign), partial(harness.prepare, foreign)
    return Engine(foreign.name, "parse", "peers", foreign.title, start, prepare=prepare)
