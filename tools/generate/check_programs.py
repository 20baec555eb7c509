"""The programs of the codecs in Rust, Go and TypeScript that answer lines of bytes with JSON.

``check/`` has a program in each language, and what it does with lines for a specification with options, one without
(``plain``), and that of a connection: the line itself, how it is distinguished, and the function that reads it.
"""

from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Final, NamedTuple

from tools.language import Spec

__all__ = ["Lines", "check_program", "settings_of"]

_PROGRAMS: Final = Path(__file__).parent / "check"


class Lines(NamedTuple):
    """The lines that a program reads for the messages of a specification."""

    kind: str
    """The first word."""
    settings: str
    """What determines the layout: ``options``, a ``connection``, or nothing, ``plain``."""
    module: str
    """The module of the messages."""


def settings_of(spec: Spec) -> str:
    """Return what determines the layout of the messages of a specification."""
    return "connection" if spec.framed else "options" if spec.versions else "plain"


def check_program(suffix: str, mark: str, lines: Sequence[Lines], package: str = "", imports: str = "") -> str:
    """Return the program.

    Args:
        suffix: The language: ``rs``, ``go`` or ``mjs``.
        mark: The first line of generated files.
        lines: What it reads.
        package: The name of the crate, or the path of the module in Go.
        imports: The lines that import the messages in Go.
    """
    parts = [_part(f"{each.settings}.{suffix}", each) for each in lines]
    usages, cases, readers = zip(*parts, strict=True)
    program = Template((_PROGRAMS / f"program.{suffix}").read_text("utf-8"))
    return f"// {mark}\n\n" + program.substitute(
        usage="\n".join(usages),
        cases="\n".join(cases),
        readers="\n".join(readers),
        package=package,
        imports=imports,
        slices='\n\t"slices"' * any(each.settings != "plain" for each in lines),
        modules=", ".join(sorted(each.module for each in lines)),
    )


def _part(name: str, lines: Lines) -> tuple[str, str, str]:
    """Return the line, the case of it, and the function."""
    text = Template((_PROGRAMS / name).read_text("utf-8"))
    head, _, reader = text.substitute(lines._asdict(), Kind=lines.kind.title()).partition("\n\n")
    usage, _, case = head.partition("\n")
    return usage, case, reader
