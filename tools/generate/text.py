"""What the emitters share: the line that marks a generated file, and formatting."""

import re
import subprocess
import sys
from collections.abc import Iterable

from tools.language import Spec
from tools.language.builtin_types import TypeTable
from tools.language.errors import SpecError

__all__ = ["COMMAND", "GENERATED", "docstring", "formatted", "header", "python_class", "snake_case"]

COMMAND = "python -m tools.generate"
GENERATED = "Generated from spec/"
"""What the first line of every generated file contains."""


def header(spec: Spec | TypeTable) -> str:
    """Return the first line of a generated Python file."""
    return f"# {GENERATED}{spec.file} by: {COMMAND}. Do not edit."


def docstring(lines: Iterable[str], indent: str = "    ") -> str:
    """Return a docstring; the words come from a specification, so quotes and backslashes are made harmless."""
    text = f"\n{indent}".join(line.replace("\\", "\\\\").replace('"', "'") for line in lines)
    closing = f"\n{indent}" if "\n" in text else ""
    return f'{indent}"""{text}{closing}"""'


def formatted(source: str) -> str:
    """Return Python source without the imports it does not use, sorted and formatted by ruff."""
    return _ruff("format", _ruff("check", source, "--fix", "--exit-zero", "--quiet", "--select", "F401,I,RUF022"))


def _ruff(command: str, source: str, *arguments: str) -> str:
    known = 'lint.isort.known-first-party=["pgoutput_construct"]'
    settings = [
        "--isolated",
        "--config",
        "line-length=120",
        "--config",
        'target-version="py311"',
        "--config",
        known,
    ]
    full = [
        sys.executable,
        "-m",
        "ruff",
        command,
        *settings,
        *arguments,
        "--stdin-filename",
        "generated.py",
        "-",
    ]
    done = subprocess.run(full, input=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SpecError(f"the generated Python is not valid: {done.stderr.strip()}. Mend the emitter that wrote it.")
    return done.stdout


def snake_case(name: str) -> str:
    """Return a class name as the name of a function: ``StreamStart`` is ``stream_start``."""
    return re.sub(r"(?<!^)(?=[A-Z][a-z])", "_", name).lower()


def python_class(python: str) -> str | None:
    """Return the class that a python name of an alternative needs, None for built-in values."""
    return None if python in ("None", "bytes") or python.isupper() else python
