"""python -m tools.fuzz: mutated bytes, guided by coverage through all readers, or in bulk through the kernels."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

EXAMPLES = """\
examples:
  python -m tools.fuzz bulk                               10^8 payloads through kernels and codec; about ten minutes
  python -m tools.fuzz bulk --payloads 1000000 --seed 7
  python -m tools.fuzz guided                             every target for ten minutes; needs the extra fuzz
  python -m tools.fuzz guided --seconds 60 --targets message segment --keep corpus/

exit status: 0 nothing was found, 1 something was, 2 wrong arguments
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    if options.mode == "bulk":
        from tools.fuzz import bulk

        report = bulk.run(options.payloads, options.seed, options.jobs)
        print(*report.lines(), sep="\n")
        return int(bool(report.problems))
    return _guided(options)


def _guided(options: argparse.Namespace) -> int:
    from tools.fuzz import guided
    from tools.fuzz.targets import TARGETS

    if reason := guided.lacking():
        print(f"fuzzing guided by coverage is skipped: {reason}", file=sys.stderr)
        return 0
    names = options.targets or [*TARGETS]
    if unknown := [name for name in names if name not in TARGETS]:
        print(f"{unknown[0]} is no target: the targets are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    directory = options.keep or Path(tempfile.mkdtemp(prefix="fuzz-"))
    found = guided.run(names, options.seconds, options.seed, directory)
    print(f"{found} findings; inputs and findings are in {directory}")
    return int(found > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.fuzz",
        description="Fuzz whatever reads bytes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    modes = parser.add_subparsers(dest="mode", required=True)
    bulk = modes.add_parser("bulk", help="the kernels against the codec, by the million")
    bulk.add_argument("--payloads", type=int, default=100_000_000, help="how many (default: 10^8)")
    bulk.add_argument("--jobs", type=int, default=1, help="processes at a time (default: 1)")
    guided = modes.add_parser("guided", help="every reader of bytes, guided by coverage (atheris)")
    guided.add_argument("--seconds", type=int, default=600, help="for how long each target runs (default: 600)")
    guided.add_argument("--targets", nargs="+", metavar="TARGET", help="which ones (default: all)")
    guided.add_argument("--keep", type=Path, help="a directory for inputs and findings (default: a new one)")
    for mode in (bulk, guided):
        mode.add_argument("--seed", type=int, default=0, help="another one gives other bytes (default: 0)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
