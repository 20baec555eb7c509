"""python -m tools.fuzz: fuzzes all readers of bytes, guided by coverage, in bulk, in other languages, or whole logs."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.codecs import CodecError

__all__ = ["main"]

EXAMPLES = """\
examples:
  python -m tools.fuzz bulk                               10^8 payloads through kernels and codec; about ten minutes
  python -m tools.fuzz bulk --payloads 1000000 --seed 7
  python -m tools.fuzz languages                          10^6 payloads through the codecs in Rust, Go and TypeScript
  python -m tools.fuzz guided                             every target for ten minutes; needs the extra fuzz
  python -m tools.fuzz guided --seconds 60 --targets message segment --keep corpus/
  python -m tools.fuzz logs --seconds 3600 --seed 7       whole logs that say something else, with fitting checksums

exit status: 0 no findings, 1 findings, 2 wrong arguments, or nothing that could be fuzzed
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    if options.mode == "bulk":
        from tools.fuzz import bulk

        report = bulk.run(options.payloads, options.seed, options.jobs)
        print(*report.lines(), sep="\n")
        return int(bool(report.problems))
    if options.mode == "languages":
        from tools.fuzz import other_languages

        try:
            compared = other_languages.run(options.payloads, options.seed, _directory(options))
        except CodecError as error:
            print(f"Error: {error}", file=sys.stderr)
            return 2
        print(*compared.lines(), sep="\n")
        return int(bool(compared.problems))
    if options.mode == "logs":
        from tools.fuzz import whole_logs

        read = whole_logs.run(options.seconds, options.seed, _directory(options))
        print(f"{read.logs:,} logs; {read.findings} findings")
        return int(read.findings > 0)
    return _guided(options)


def _guided(options: argparse.Namespace) -> int:
    from tools.fuzz import guided
    from tools.fuzz.targets import TARGETS

    if reason := guided.lacking():
        print(f"Error: coverage-guided fuzzing is skipped: {reason}", file=sys.stderr)
        return 2
    names = options.targets or [*TARGETS]
    if unknown := [name for name in names if name not in TARGETS]:
        print(f"{unknown[0]} is not a target: choose from {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    directory = _directory(options)
    found = guided.run(names, options.seconds, options.seed, directory)
    print(f"{found} findings; inputs and findings are in {directory}")
    return int(found > 0)


def _directory(options: argparse.Namespace) -> Path:
    return options.keep or Path(tempfile.mkdtemp(prefix="fuzz-"))


def _positive(text: str) -> int:
    """Return a number from 1 on, of an option."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.fuzz",
        description="Fuzz everything that reads bytes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    modes = parser.add_subparsers(dest="mode", required=True)
    bulk = modes.add_parser("bulk", help="compare the kernels with the codec on mutated payloads")
    bulk.add_argument("--payloads", type=_positive, default=100_000_000, help="number of payloads (default: 10^8)")
    bulk.add_argument("--jobs", type=_positive, default=1, help="parallel processes (default: 1)")
    languages = modes.add_parser("languages", help="compare the codecs in other languages with Python's")
    languages.add_argument("--payloads", type=_positive, default=1_000_000, help="number of payloads (default: 10^6)")
    guided = modes.add_parser("guided", help="run every target, guided by coverage (atheris)")
    guided.add_argument("--seconds", type=int, default=600, help="seconds for each target (default: 600)")
    guided.add_argument("--targets", nargs="+", metavar="TARGET", help="the targets to run (default: all)")
    logs = modes.add_parser("logs", help="change whole logs, and read them with everything that reads a log")
    logs.add_argument("--seconds", type=int, default=600, help="seconds (default: 600)")
    for mode in (languages, guided, logs):
        mode.add_argument("--keep", type=Path, help="directory for inputs and findings (default: a temporary one)")
    for mode in (bulk, languages, guided, logs):
        mode.add_argument("--seed", type=int, default=0, help="seed of the mutations (default: 0)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
