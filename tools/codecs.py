"""The codecs in Rust, Go and TypeScript: how their programs are built; ``python -m tools.codecs`` fetches the compiler
of TypeScript, which comes from npm and is kept in the user's cache.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.cache import FOLDER, fetching

__all__ = ["CODECS", "TSC", "Codec", "CodecError", "answers", "built", "message_line", "missing_tools", "run_tool"]

_SPEC: Final = Path(__file__).parents[1] / "spec"
_TYPESCRIPT: Final = "7.0.2"
_HOME: Final = FOLDER / f"typescript-{_TYPESCRIPT}"
TSC: Final = _HOME / "node_modules" / ".bin" / "tsc"
"""The compiler of TypeScript, once it was fetched."""
_INSTALL: Final = ("install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts")


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
    if codec.name == "typescript" and not TSC.exists():
        return "no compiler of TypeScript: fetch it: python -m tools.codecs"
    return ""


def built(codec: Codec, target: Path, spec: Path = _SPEC) -> list[str]:
    """Build the program that answers lines of bytes; return its command.

    Args:
        codec: The language.
        target: A folder for what is built; what was built there before saves time.
        spec: The folder of the specifications, with the codec in it.

    Raises:
        CodecError: It does not compile.
    """
    folder = codec.folder(spec)
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
    yield from map(json.loads, printed.splitlines())


@contextmanager
def _process(command: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
    if process.returncode:
        raise CodecError(f"{' '.join(command)} ended with {process.returncode}")


def main() -> None:
    """Fetch the compiler of TypeScript, unless it is there."""
    with fetching(_HOME.name):
        if not TSC.exists():
            _fetch()


def _fetch() -> None:
    npm = shutil.which("npm")
    if npm:
        print("fetching the compiler of TypeScript", file=sys.stderr)
        _HOME.mkdir(parents=True, exist_ok=True)
        package = f"typescript@{_TYPESCRIPT}"
        subprocess.run([npm, *_INSTALL, "--prefix", str(_HOME), package], check=False, stdout=sys.stderr)
    if problem := missing_tools(CODECS["typescript"]):
        raise SystemExit(f"Error: {problem}" + " (it failed, for the reason above)" * bool(npm))


if __name__ == "__main__":
    main()
