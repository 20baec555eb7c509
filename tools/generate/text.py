"""What the emitters share: the mark of generated files, and formatting."""

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence

from tools.language import Spec
from tools.language.builtin_types import TypeTable
from tools.language.errors import SpecError

__all__ = ["COMMAND", "GENERATED", "WIRE", "constant", "docstring", "python_module", "snake_case"]

COMMAND = "python -m tools.generate"
GENERATED = "Generated from spec/"
"""The text that the first line of every generated file contains."""

WIRE = "pgoutput_construct.wire"
"""The package of the project's messages."""

CONFIGURATION = ("line-length=120", 'target-version="py311"', 'lint.isort.known-first-party=["pgoutput_construct"]')
SETTINGS = ("--isolated", *(word for setting in CONFIGURATION for word in ("--config", setting)))
"""The format of generated Python, independent of the project's settings."""


def python_module(spec: Spec | TypeTable, about: Iterable[str], *chunks: str) -> str:
    """Return a generated module, formatted: the mark, a docstring, and the parts."""
    mark = f"# {GENERATED}{spec.file} by: {COMMAND}. Do not edit."
    return _formatted("\n\n".join([mark, docstring(about, ""), *chunks]))


def constant(declared: str, rows: Iterable[str], *text: str, brackets: Sequence[str] = "{}") -> str:
    """Return a constant with one row a line, and its docstring."""
    body = "".join(f"{row},\n" for row in rows)
    return f"{declared} = {brackets[0]}\n{body}{brackets[1]}\n" + docstring(text, "")


def docstring(lines: Iterable[str], indent: str = "    ") -> str:
    """Return a docstring; quotes and backslashes are escaped, because the text comes from a specification."""
    text = f"\n{indent}".join(line.replace("\\", "\\\\").replace('"', "'") for line in lines)
    closing = f"\n{indent}" if "\n" in text else ""
    return f'{indent}"""{text}{closing}"""'


def _formatted(source: str) -> str:
    """Return Python source formatted by ruff, with sorted imports and without unused ones."""
    return _ruff("format", _ruff("check", source, "--fix", "--exit-zero", "--quiet", "--select", "F401,I,RUF022"))


def _ruff(command: str, source: str, *arguments: str) -> str:
    full = [sys.executable, "-m", "ruff", command, *SETTINGS, *arguments, "--stdin-filename", "generated.py", "-"]
    done = subprocess.run(full, input=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SpecError(f"the generated Python is not valid: {done.stderr.strip()}. Mend the emitter that wrote it.")
    return done.stdout


def snake_case(name: str) -> str:
    """Return a class name as the name of a function: ``StreamStart`` is ``stream_start``."""
    return re.sub(r"(?<!^)(?=[A-Z][a-z])", "_", name).lower()
