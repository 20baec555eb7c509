"""The outputs of somebody's own protocol: a package of Python, codecs in other languages, a page, and golden vectors.

They follow from one YAML file of a folder. Kernels, Arrow, Kaitai Struct and Wireshark are PostgreSQL's alone.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tools.codecs import is_built
from tools.generate.own_codecs import own_codecs
from tools.generate.python.codec import emit_codec
from tools.generate.python.definitions import emit_definitions
from tools.generate.python.messages import emit_messages
from tools.generate.reference.reference_page import emit_reference
from tools.generate.reserved import RESERVED
from tools.generate.taken_names import check_names
from tools.generate.text import COMMAND, GENERATED, docstring, python_module
from tools.generate.typed_layouts import pascal
from tools.generate.vectors.golden_vectors import emit_vectors
from tools.generate.vectors.vectors_schema import emit_vectors_schema
from tools.language import Choice, Spec
from tools.language.errors import SpecError
from tools.language.own_rules import load_own
from tools.language.rules import class_names

__all__ = ["check_own_files", "own_orphans", "render_own"]

_MARK: Final = "Generated from "
_FOLDERS: Final = ("rust", "go", "typescript")
_HERE: Final = "."
"""The package of the messages, in the imports of its modules."""
_NAMES: Final = frozenset({"ConnectionEngine", "FIRST_STATE", "JsonFormat", "MessageEngine", "VERSIONS"})
"""Names besides the classes in the package of Python."""
_PACKAGES: Final = frozenset({"alloc", "core", "main", "pgoutput_construct", "proc_macro", "std", "tools", "wire"})
"""Names of other packages in Rust, in Go, and in this project."""


def render_own(folder: Path, package: str) -> Mapping[str, str]:
    """Return the text of every output by its path.

    Args:
        folder: The folder of the specification.
        package: The name of the package.

    Raises:
        SpecError: A specification that breaks a rule, or a name that no package can have.
    """
    spec, union = load_own(folder), f"{pascal(package)}Message"
    _check_package_name(package, union, spec)
    check_names(spec, union)
    mark = f"{_MARK}{spec.file} by: {COMMAND} --package {package}. Do not edit."
    ours = f"{GENERATED}{spec.file} by: {COMMAND}. Do not edit."
    files = {**dict(_python(spec, package, union, mark)), **dict(own_codecs(spec, package, union, mark))}
    files |= {
        "reference.md": emit_reference(spec),
        "vectors.jsonl": emit_vectors(spec),
        "vectors.schema.json": emit_vectors_schema(spec),
    }
    return {path: text.replace(ours, mark, 1) for path, text in files.items()}


def _check_package_name(package: str, union: str, spec: Spec) -> None:
    """Raise SpecError for a name that a package of Python, Rust or Go cannot have, or that a class of it has."""
    words = {word for language in ("python", "rust", "go") for word in RESERVED[language].split()}
    problem = ""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", package):
        problem = "is not a word of lower-case letters, digits and underscores"
    elif package in sys.stdlib_module_names:
        problem = "is a module of Python's library"
    elif package in words | _PACKAGES | set(_FOLDERS):
        problem = "is a word of Python, Rust or Go, or the name of another package or folder"
    if problem:
        raise SpecError(f"--package {package}: the name {problem}. Choose another one, such as queue_protocol.")
    for line, name in class_names(spec):
        if name in _NAMES | {union}:
            problem = f"the class {name} would hide a name of the generated package"
            raise SpecError(f"{spec.file}:{line}: {problem}. Choose another name for it, or for the package.")


def own_orphans(root: Path, outputs: Mapping[str, str], package: str) -> list[str]:
    """Return the files that an earlier run wrote, and this one does not."""
    name = f" by: {COMMAND} --package {package}."
    found = (path for folder in (package, *_FOLDERS) for path in sorted((root / folder).rglob("*")))
    return [
        path.relative_to(root).as_posix()
        for path in found
        if path.is_file() and not is_built(path, root) and name in _first_line(path)
        if path.relative_to(root).as_posix() not in outputs
    ]


def check_own_files(root: Path, outputs: Mapping[str, str]) -> None:
    """Raise SpecError if an output would replace a file that was written by somebody else."""
    for path, text in outputs.items():
        file = root / path
        if file.exists() and _MARK not in _first_line(file) and file.read_bytes() != text.encode():
            raise SpecError(f"{file}: was not generated, and would be replaced. Give another folder: --into FOLDER.")


def _first_line(path: Path) -> str:
    with path.open("rb") as file:
        return file.readline().decode("utf-8", "replace")


def _python(spec: Spec, package: str, union: str, mark: str) -> Iterator[tuple[str, str]]:
    """Yield the modules of the package."""
    yield f"{package}/__init__.py", _package(spec, union)
    yield f"{package}/messages.py", emit_messages(spec, union=union)
    yield f"{package}/definitions.py", emit_definitions(spec, messages="messages", package=_HERE)
    yield f"{package}/codec.py", emit_codec(spec, messages="messages", package=_HERE)
    yield f"{package}/py.typed", f"# {mark}\n"


_CONNECTION = '''
_ENGINE: Final = ConnectionEngine[{union}](messages, codec)

FIRST_STATE: Final = _ENGINE.states[0]
"""The state of a connection before its first message."""

parse = _ENGINE.parse
build = _ENGINE.build
message_size = _ENGINE.message_size
next_state = _ENGINE.next_state
'''
_MESSAGES = '''
VERSIONS: Final = {versions}
"""The versions of the protocol."""

_ENGINE: Final = MessageEngine[{union}](messages, codec, versions=VERSIONS)


def parse(payload: bytes | bytearray | memoryview{declared}) -> {union}:
    """Return the message that fills the bytes exactly.

    Args:
        payload: The bytes of one message.{about}

    Raises:
        DecodeError: Bytes that are not a message, with the path of the field and the offset.
    """
    return _ENGINE.parse(payload, {given})


def parse_prefix(data: bytes, start: int = 0{declared}) -> tuple[{union}, int]:
    """Return the message that starts at ``start``, and its size in bytes; the bytes after it are not read.

    Args:
        data: Bytes that contain a message at ``start``, with anything before and after it.
        start: Offset of its first byte.{about}

    Raises:
        DecodeError: As of ``parse``; offsets count from the start of the message.
    """
    return _ENGINE.parse_prefix(data, start, {given})


def build(message: {union}{declared}) -> bytes:
    """Return the bytes of a message.

    Args:
        message: An object of a message class.{about}

    Raises:
        EncodeError: A value that the message cannot carry, with the path of the field.
    """
    return _ENGINE.build(message, {given})
'''
_JSON = """
_FORMAT: Final = JsonFormat[{union}](codec.BUILDERS, {values})

to_json = _FORMAT.to_json
from_json = _FORMAT.from_json
"""
_IMPORTS = """
from typing import Final

from pgoutput_construct.errors import DecodeError, EncodeError
from pgoutput_construct.wire.jsonable import JsonFormat
from pgoutput_construct.wire.spec_engines import {engine}

from . import codec, messages
from .messages import {names}
"""


def _package(spec: Spec, union: str) -> str:
    """Return the module of the package: its classes, and the functions that parse and build."""
    valued = any(isinstance(e, Choice) and e.valued for structure in spec.structures() for e in structure.elements)
    constants = (
        name
        for structure in spec.structures()
        for choice in structure.elements
        if isinstance(choice, Choice) and choice.valued
        for alternative in choice.alternatives
        for name in alternative.defines
    )
    names = sorted({union, *spec.class_names(), *constants})
    functions = ["build", "from_json", "parse", "to_json"]
    functions += ["FIRST_STATE", "message_size", "next_state"] if spec.framed else ["VERSIONS", "parse_prefix"]
    engine = "ConnectionEngine" if spec.framed else "MessageEngine"
    chunk = _CONNECTION if spec.framed else _MESSAGES
    given = ", ".join(f'"{name}": {name}' for name in spec.arguments)
    return python_module(
        spec,
        [f"{spec.title}: the classes, and functions that parse and build.", "", f"Source: {spec.described_in}."],
        _IMPORTS.format(engine=engine, names=", ".join(names)),
        f"__all__ = {['DecodeError', 'EncodeError', *names, *functions]!r}",
        chunk.format(
            union=union,
            versions=tuple(version.version for version in spec.versions),
            declared=_declared(spec),
            about="".join(
                f"\n        {each.name}: {_about(each.description or each.name)}" for each in spec.parameters
            ),
            given=f"{{{given}}}",
        ),
        _JSON.format(union=union, values="messages.VALUES" if valued else "{}"),
    )


def _declared(spec: Spec) -> str:
    """Return the declarations of the parameters, which are keywords: the oldest version, and off, by default."""
    defaults = {"int": spec.versions[0].version if spec.versions else 1, "bool": False}
    rows = [f"{each.name}: {each.type} = {defaults[each.type]}" for each in spec.parameters]
    return "".join(f", {row}" for row in ["*", *rows]) if rows else ""


def _about(text: str) -> str:
    return docstring([text], "")[3:-3]
