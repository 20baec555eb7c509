"""The table of everything that can be measured, and the choice of it by name."""

from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tools.benchmark import harness, pypgoutput
from tools.benchmark.batch import Batch
from tools.benchmark.batches import BATCH_ENGINES
from tools.benchmark.harness import HARNESSES, Harness
from tools.benchmark.limits import LIMIT_ENGINES
from tools.benchmark.measure import Engine, Pass
from tools.benchmark.messages import MESSAGE_ENGINES

__all__ = ["GROUPS", "choose", "engines"]

GROUPS = ("ours", "peers", "limits")
"""Names that stand for several engines."""


def engines(directory: Path) -> tuple[Engine, ...]:
    """Return every engine; what the peers need is kept in ``directory``."""
    return (*MESSAGE_ENGINES, *BATCH_ENGINES, *_peers(directory), *LIMIT_ENGINES)


def choose(known: Iterable[Engine], names: Iterable[str]) -> list[Engine]:
    """Return the engines with these names, or of these groups; all of them where no name is given."""
    wanted = set(names)
    return [engine for engine in known if not wanted or {engine.name, engine.group} & wanted]


def _peers(directory: Path) -> tuple[Engine, ...]:
    python = Engine(
        "pypgoutput",
        "parse",
        "peers",
        "pypgoutput (Python): its decoders",
        partial(pypgoutput.start, directory),
        sample=50_000,
        prepare=partial(pypgoutput.prepare, directory),
    )
    return (python, *(_peer(foreign, directory) for foreign in HARNESSES))


def _peer(foreign: Harness, directory: Path) -> Engine:
    def start(batch: Batch, stack: ExitStack) -> Pass:
        return harness.start(foreign, directory, batch, stack)

    title = f"{foreign.name} ({foreign.language}): its parser"
    return Engine(foreign.name, "parse", "peers", title, start, prepare=partial(harness.prepare, foreign, directory))
