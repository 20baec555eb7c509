"""Compiles spec/*.ksy: ``python -m tools.kaitai LANGUAGE FOLDER`` writes readers of messages in another language.

The compiler of Kaitai Struct comes from npm and is kept in the user's cache; without arguments it is only fetched.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from tools.cache import FOLDER, fetching

__all__ = ["PACKAGE", "compiled", "missing_compiler"]

VERSION: Final = "0.11.0"
"""The version of the compiler; ``kaitaistruct``, which runs the readers in Python, has the same."""

_SPEC: Final = Path(__file__).parents[1] / "spec"
_HOME: Final = FOLDER / f"kaitai-{VERSION}"
PACKAGE: Final = _HOME / "node_modules" / "kaitai-struct-compiler"
"""Where the compiler is, once it was fetched."""
_INSTALL: Final = ("install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts")
_PROGRAM: Final = """
const compiler = require(process.argv[1]);
const text = require("fs").readFileSync(0, "utf8");
compiler.compile(process.argv[2], JSON.parse(text), null, false).then(
    (files) => console.log(JSON.stringify(files)),
    (error) => { console.error(String(error)); process.exitCode = 1; },
);
"""
"""What node runs; the compiler reads no YAML itself."""


def missing_compiler() -> str:
    """Say what to do where the compiler, or node that runs it, is not there; "" where both are."""
    if not shutil.which("node"):
        return "the compiler of Kaitai Struct needs node on the PATH"
    return "" if PACKAGE.exists() else "no compiler of Kaitai Struct: fetch it: python -m tools.kaitai"


def compiled(ksy: Path, language: str) -> Mapping[str, str]:
    """Return the sources of a reader by file name; raise ValueError with what the compiler says against it."""
    command = ["node", "-e", _PROGRAM, str(PACKAGE), language]
    given = json.dumps(yaml.safe_load(ksy.read_text("utf-8")))
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{ksy.name}: {done.stderr.strip()}")
    files: Mapping[str, str] = json.loads(done.stdout)
    return files


def main() -> None:
    """Fetch the compiler unless it is there, and run it where a language and a folder are given."""
    with fetching(_HOME.name):
        if missing_compiler():
            _fetch()
    if len(sys.argv) > 1:
        _write(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "."))


def _fetch() -> None:
    npm = shutil.which("npm")
    if npm:
        print("fetching the compiler of Kaitai Struct", file=sys.stderr)
        _HOME.mkdir(parents=True, exist_ok=True)
        package = f"kaitai-struct-compiler@{VERSION}"
        subprocess.run([npm, *_INSTALL, "--prefix", str(_HOME), package], check=False, stdout=sys.stderr)
    if problem := missing_compiler():
        raise SystemExit(f"Error: {problem}" + " (it failed, for the reason above)" * bool(npm))


def _write(language: str, folder: Path) -> None:
    for ksy in sorted(_SPEC.glob("*.ksy")):
        for name, text in compiled(ksy, language).items():
            path = folder / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
