"""python -m tools.benchmark peers: builds other projects' parsers and clients, which the benchmarks compare with."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tools.benchmark import pypgoutput
from tools.benchmark.harness import CLIENTS, HARNESSES, PEERS, Harness, built, lacking, prepare
from tools.cache import fetching

__all__ = ["main"]


def main(_: Sequence[str] = ()) -> int:
    """Build each that is not built yet; return how many could not be."""
    with fetching(PEERS.name):
        return sum([_told("pypgoutput", pypgoutput.prepare()), *map(_build, (*CLIENTS, *HARNESSES))])


def _build(harness: Harness) -> bool:
    if not (built(harness) or lacking(harness)):
        print(f"building {harness.title}; the first time this takes up to a minute", file=sys.stderr)
    return _told(harness.title, prepare(harness))


def _told(title: str, found: Path | str) -> bool:
    if failed := isinstance(found, str):
        print(f"{title}: {found}", file=sys.stderr)
    return failed
