"""python -m tools.benchmark clients: build the clients of other people that the tests of the publisher know."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tools.benchmark.harness import CLIENTS, prepare

__all__ = ["DIRECTORY", "main"]

DIRECTORY = Path(__file__).parents[2] / "build" / "benchmark"
"""Where they are built."""


def main(arguments: Sequence[str] = ()) -> int:
    """Build each client whose toolchain is on the PATH; return how many could not be built."""
    failed = 0
    for client in CLIENTS:
        folder = prepare(client, DIRECTORY)
        failed += isinstance(folder, str)
        print(f"{client.name} ({client.language}): {folder}", file=sys.stderr)
    return failed
