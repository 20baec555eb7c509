"""``python -m tools.conformance``: the report card of all clients; ``suite`` writes the suite as data."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pgoutput_construct.conformance import all_cases
from pgoutput_construct.conformance.suite_file import suite_lines

__all__ = ["SUITE", "main"]

SUITE: Final = Path(__file__).parents[2] / "spec" / "conformance.jsonl"


def main(arguments: Sequence[str]) -> int:
    """Write the suite."""
    if [*arguments] == ["suite"]:
        SUITE.write_text("".join(f"{line}\n" for line in suite_lines(all_cases())), "utf-8")
        return 0
    raise SystemExit("usage: python -m tools.conformance suite")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
