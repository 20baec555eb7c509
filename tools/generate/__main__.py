"""python -m tools.generate: write every file that is generated from the specification, or check that it is current.

With --package the specification is that of another protocol: one YAML file in the folder of --spec, and a types.yaml if
it has notations of its own. A package of Python, codecs in Rust, Go and TypeScript, a reference page and golden vectors
follow from it; kernels, Arrow columns, Kaitai Struct and Wireshark are PostgreSQL's alone.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

from tools.generate.outputs import OUTPUTS, orphans, render
from tools.generate.own_protocol import check_own_files, own_orphans, render_own
from tools.language.errors import SpecError

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 done or current, 1 stale, 2 broken specification or files."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.package and (options.spec is None or options.into is None):
        parser.error("--package needs the folders of its specification and of its files: --spec FOLDER --into FOLDER")
    root: Path = options.into or ROOT
    if root.exists() and not root.is_dir():
        parser.error(f"--into {root}: it is a file. Give a folder")
    try:
        outputs, found = _outputs(options.spec or ROOT / "spec", root, options.package)
        if options.check:
            return check(outputs, root, found)
        _write(outputs, root, found)
    except SpecError as error:
        print(f"broken specification: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _write(outputs: Mapping[str, str], root: Path, found: Sequence[str]) -> None:
    """Write every output, and remove the files that nothing writes any more."""
    for path, text in outputs.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
        print(f"wrote {path}")
    for path in found:
        (root / path).unlink()
        print(f"removed {path}: nothing writes it any more")


def _parser() -> argparse.ArgumentParser:
    about, _, more = str(__doc__).partition("\n\n")
    parser = argparse.ArgumentParser(prog="python -m tools.generate", description=about, epilog=more)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 when an output is stale, missing or orphaned"
    )
    parser.add_argument("--spec", type=Path, metavar="FOLDER", help="the folder of the specifications (default: spec)")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="the folder to write to (default: the project)")
    parser.add_argument("--package", metavar="NAME", help="the name of the package of another protocol")
    return parser


def _outputs(spec: Path, root: Path, package: str | None) -> tuple[Mapping[str, str], list[str]]:
    """Return the text of every output by its path, and the paths of files that nothing writes any more."""
    if package:
        outputs = render_own(spec, package)
        check_own_files(root, outputs)
        return outputs, own_orphans(root, outputs, package)
    missing = sorted({output.spec for output in OUTPUTS if not (spec / output.spec).is_file()})
    if missing:
        remedy = "Give --package NAME and --into FOLDER if it is the specification of another protocol."
        raise SpecError(f"{spec}: has no {', '.join(missing)}, which are PostgreSQL's specification. {remedy}")
    return render(spec), orphans(root)


def check(outputs: Mapping[str, str], root: Path, orphaned: Sequence[str]) -> int:
    """Print the files that are not current; return the exit status."""
    problems = [*_stale(outputs, root), *(f"orphaned: {path}" for path in orphaned)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print("run the same command without --check", file=sys.stderr)
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
