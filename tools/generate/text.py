"""What the emitters share: the line that marks a generated file, and formatting."""

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence

from tools.language import Spec
from tools.language.builtin_types import TypeTable
from tools.language.errors import SpecError

__all__ = ["COMMAND", "GENERATED", "constant", "docstring", "python_module", "snake_case"]

COMMAND = "python -m tools.generate"
GENERATED = "Generated from spec/"
"""What the first line of every generated file contains."""

CONFIGURATION = ("line-length=120", 'target-version="py311"', 'lint.isort.known-first-party=["pgoutput_construct"]')
SETTINGS = ("--isolated", *(word for setting in CONFIGURATION for word in ("--config", setting)))
"""How generated Python is formatted, whatever the project's own settings are."""


def python_module(spec: Spec | TypeTable, about: Iterable[str], *chunks: str) -> str:
    """Return a generated module, formatted: the line that marks it, a docstring, and what it holds."""
    mark = f"# {GENERATED}{spec.file} by: {COMMAND}. Do not edit."
    return _formatted("\n\n".join([mark, docstring(about, ""), *chunks]))


def constant(declared: str, rows: Iterable[str], *text: str, brackets: Sequence[str] = "{}") -> str:
    """Return a constant that holds rows, one a line, with its docstring."""
    body = "".join(f"{row},\n" for row in rows)
    return f"{declared} = {brackets[0]}\n{body}{brackets[1]}\n" + docstring(text, "")


def docstring(lines: Iterable[str], indent: str = "    ") -> str:
    """Return a docstring; the words come from a specification, so quotes and backslashes are made harmless."""
    text = f"\n{indent}".join(line.replace("\\", "\\\\").replace('"', "'") for line in lines)
    closing = f"\n{indent}" if "\n" in text else ""
    return f'{indent}"""{text}{closing}"""'


def _formatted(source: str) -> str:
    """Return Python source without the imports it does not use, sorted and formatted by ruff."""
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
