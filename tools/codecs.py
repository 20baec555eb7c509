"""The codecs in Rust, Go and TypeScript: how their programs are built; ``python -m tools.codecs`` fetches the compiler
of TypeScript and its formatter, which come from npm and are kept in the user's cache.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.npm import PRETTIER, TYPESCRIPT

__all__ = [
    "BUILT_FOLDERS",
    "CODECS",
    "TSC",
    "Codec",
    "CodecError",
    "answers",
    "built",
    "is_alike",
    "is_built",
    "message_line",
    "missing_tools",
    "run_tool",
]

_SPEC: Final = Path(__file__).parents[1] / "spec"
TSC: Final = TYPESCRIPT.path
"""The compiler of TypeScript, once it was fetched."""
BUILT_FOLDERS: Final = frozenset({"dist", "node_modules", "target"})
"""The folders of what the tools of languages make of sources: no part of them."""
_FETCH: Final = "python -m tools.codecs"


class CodecError(Exception):
    """A program of a language that fails, with what it says."""


@dataclass(frozen=True)
class Codec:
    """The codec of one language, in a folder of spec/."""

    name: str
    tools: tuple[str, ...]
    """The programs that are needed."""

    def folder(self, spec: Path = _SPEC) -> Path:
        """Where it is."""
        return spec / self.name


CODECS: Final[Mapping[str, Codec]] = {
    codec.name: codec
    for codec in (Codec("rust", ("cargo",)), Codec("go", ("go", "gofmt")), Codec("typescript", ("node", "npm")))
}
"""The codecs, by the names of their folders."""


def missing_tools(codec: Codec) -> str:
    """Say what to do where the tools of a language are missing; "" where they are not."""
    missing = [tool for tool in codec.tools if not shutil.which(tool)]
    if missing:
        return f"the codec in {codec.name} needs {', '.join(missing)} on the PATH"
    return TYPESCRIPT.missing(_FETCH) if codec.name == "typescript" else ""


def is_built(path: Path, root: Path) -> bool:
    """Return whether tools made a file under ``root``, wherever that is itself."""
    return not BUILT_FOLDERS.isdisjoint(path.relative_to(root).parts)


def built(codec: Codec, target: Path, spec: Path = _SPEC) -> list[str]:
    """Build the program that answers lines of bytes; return its command.

    Args:
        codec: The language.
        target: A folder for what is built; what was built there before saves time.
        spec: The folder of the specifications, with the codec in it.

    Raises:
        CodecError: It does not compile.
    """
    folder, target = codec.folder(spec), target.resolve()  # the programs run in another folder
    if codec.name == "rust":
        run_tool(
            ("cargo", "build", "--offline", "--release", "--example", "check"),
            folder,
            {"CARGO_TARGET_DIR": str(target)},
        )
        return [str(target / "release" / "examples" / "check")]
    if codec.name == "go":
        run_tool(("go", "build", "-o", str(target / "check"), "./cmd/check"), folder)
        return [str(target / "check")]
    run_tool((str(TSC), "--outDir", str(target / "dist")), folder)
    (target / "package.json").write_text('{"type": "module"}', "utf-8")
    shutil.copy(folder / "check.mjs", target)
    return ["node", str(target / "check.mjs")]


def run_tool(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program of a language; return what it prints, or raise CodecError with that."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CodecError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def message_line(settings: Mapping[str, object], payload: str) -> str:
    """Return the line that asks a program for a message.

    Args:
        settings: The options of parse, and the parameters that states set, by name.
        payload: Its bytes, as hexadecimal digits.
    """
    words = (f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in settings.items())
    return " ".join(["message", *words, payload])


def answers(command: Sequence[str], lines: Iterable[str]) -> Iterator[Any]:
    """Yield what a program answers to each line, from JSON."""
    with _process(command) as process:
        printed, _ = process.communicate("".join(f"{line}\n" for line in lines))
    yield from map(json.loads, printed.split("\n")[:-1])  # texts in it may have other characters that end lines


def is_alike(found: Any, wanted: Any) -> bool:
    """Return whether two values of JSON are equal.

    1 equals 1.0, since numbers have one type there; but not true. 0.0 does not equal -0.0.
    """
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(is_alike(found[name], wanted[name]) for name in found)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(is_alike, found, wanted))
    if (isinstance(found, float) and type(wanted) in (int, float)) or (
        isinstance(wanted, float) and type(found) is int
    ):
        return repr(float(found)) == repr(float(wanted))
    return type(found) is type(wanted) and bool(found == wanted)


@contextmanager
def _process(command: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        yield process
    if process.returncode:
        raise CodecError(f"{' '.join(command)} ended with {process.returncode}")


def main() -> None:
    """Fetch the compiler and the formatter of TypeScript, unless they are there."""
    for program in (TYPESCRIPT, PRETTIER):
        program.fetch()
    if problem := TYPESCRIPT.missing(_FETCH) or PRETTIER.missing(_FETCH):
        raise SystemExit(f"Error: {problem}")


if __name__ == "__main__":
    main()
