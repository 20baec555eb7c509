"""python -m tools.generate: write every file that is generated from the specification, or check that it is current."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

from tools.generate.outputs import orphans, render
from tools.language.errors import SpecError

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 done or current, 1 stale, 2 broken specification."""
    parser = argparse.ArgumentParser(prog="python -m tools.generate", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 when an output is stale, missing or orphaned"
    )
    parser.add_argument(
        "--spec", type=Path, default=ROOT / "spec", metavar="FOLDER", help="the folder of the specifications"
    )
    parser.add_argument("--root", type=Path, default=ROOT, metavar="FOLDER", help="the project folder to write to")
    options = parser.parse_args(arguments)
    try:
        outputs = render(options.spec)
    except SpecError as error:
        print(f"broken specification: {error}", file=sys.stderr)
        return 2
    if options.check:
        return check(outputs, options.root)
    for path, text in outputs.items():
        (options.root / path).parent.mkdir(parents=True, exist_ok=True)
        (options.root / path).write_text(text, "utf-8")
        print(f"wrote {path}")
    for path in orphans(options.root):
        (options.root / path).unlink()
        print(f"removed {path}: nothing writes it any more")
    return 0


def check(outputs: Mapping[str, str], root: Path) -> int:
    """Print the files that are not current; return the exit status."""
    problems = [*_stale(outputs, root), *(f"orphaned: {path}" for path in orphans(root))]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print("run: python -m tools.generate", file=sys.stderr)
    return 1 if problems else 0


def _stale(outputs: Mapping[str, str], root: Path) -> list[str]:
    problems = []
    for path, text in outputs.items():
        file = root / path
        if not file.exists():
            problems.append(f"missing: {path}")
        elif (current := file.read_text("utf-8")) != text:
            lines = unified_diff(current.splitlines(), text.splitlines(), path, "as generated", lineterm="", n=1)
            problems.append(f"stale: {path}\n" + "\n".join(list(lines)[:20]))
    return problems


if __name__ == "__main__":
    sys.exit(main())
