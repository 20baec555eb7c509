"""python -m tools.language.released: the layouts of protocol versions, what differs, and what a change breaks.

With the newest version that a release of PostgreSQL has it prints the layouts up to that: spec/released.json.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tools.language import conditions
from tools.language.breakage import MEANINGS, Level, breaks
from tools.language.differences import Difference, differences, in_version
from tools.language.errors import SpecError
from tools.language.load import SPEC, load
from tools.language.model import Spec
from tools.language.program_names import program_names
from tools.language.released import layouts
from tools.language.wire_names import ROLES, renamed, role

__all__ = ["main"]

FILES: Final = ("pgoutput.yaml", "replication.yaml", "protocol.yaml")
_SIGNS: Final = {"new": "+", "ended": "-", "changed": "~"}
_LEVELS: Final = "\n".join(f"  {level:<11} {meaning}" for level, meaning in MEANINGS.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 done, 1 something breaks, 2 wrong arguments or specification."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.language.released",
        description=__doc__,
        epilog=f"levels of --check:\n{_LEVELS}\n  all         all of them",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "newest", type=int, nargs="?", help="the newest protocol version that a release of PostgreSQL has"
    )
    what.add_argument(
        "--diff",
        nargs=2,
        type=int,
        metavar=("FROM", "TO"),
        help="print what two protocol versions do not have in common",
    )
    what.add_argument(
        "--check", choices=[*map(str, Level), "all"], nargs="?", const="all", metavar="LEVEL",
        help="print what breaks a released version or programs, by level (default: all); exit 1 if anything does",
    )  # fmt: skip
    what.add_argument(
        "--names", action="store_true", help="print the names that programs use: spec/released-names.json"
    )
    parser.add_argument("--spec", type=Path, default=SPEC, metavar="FOLDER", help="the folder of the specifications")
    given = parser.parse_args(arguments)
    try:
        specs = [load(given.spec / name) for name in FILES]
        if given.diff:
            return _print_differences(specs, *given.diff)
        if given.check:
            return _print_breaks(specs, given.spec, tuple(Level) if given.check == "all" else (Level(given.check),))
    except SpecError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(_names(specs) if given.names else _layouts(specs[0], given.newest), indent=1))
    return 0


def _layouts(spec: Spec, newest: int) -> dict[int, dict[str, list[str]]]:
    return {
        version.version: {
            key: [entry.text for entry in entries] for key, entries in layouts(spec, version.version).items()
        }
        for version in spec.versions
        if version.version <= newest
    }


def _names(specs: Sequence[Spec]) -> dict[str, dict[str, Any]]:
    names = {spec.file: {key: list(each.names) for key, each in program_names(spec).items()} for spec in specs}
    return {**names, ROLES: {spec.protocol: _roles(spec) for spec in specs if not spec.versions or spec.carries}}


def _roles(spec: Spec) -> dict[str, str]:
    """Return the roles of messages by the names that they had first: renamed ones are found by those."""
    first = {now: name for name, now in renamed(spec).items()}
    return {first.get(each.class_name, each.class_name): role(each) for each in spec.messages}


def _print_differences(specs: Sequence[Spec], before: int, after: int) -> int:
    known = [version.version for version in specs[0].versions]
    for version in (before, after):
        if version not in known:
            versions = ", ".join(map(str, known)) or "none"
            raise SpecError(f"unknown protocol version {version}: {specs[0].file} has {versions}")
    lines = [line for spec in specs for line in _lines(spec, before, after)]
    print(*(lines or [f"nothing differs between protocol versions {before} and {after}"]), sep="\n")
    return 0


def _lines(spec: Spec, before: int, after: int) -> Iterator[str]:
    for each in differences(spec, in_version(before), in_version(after)):
        yield f"{_SIGNS[each.mark]} {_described(each)} ({spec.file}:{each.item.line})"


def _described(difference: Difference) -> str:
    item = difference.item
    text = f": {item.text}" if item.text else ""
    rule = f" if {conditions.text(item.when)}" if item.when is not None else ""
    return f"{item.kind} {item.name}{text}{rule}"


def _print_breaks(specs: Sequence[Spec], folder: Path, levels: Sequence[Level]) -> int:
    found = [each.text(spec.file) for spec in specs for each in breaks(spec, folder, levels)]
    print(*(found or [f"nothing breaks {', '.join(levels)}"]), sep="\n", file=sys.stderr if found else sys.stdout)
    return 1 if found else 0
