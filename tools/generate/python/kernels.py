"""Emits the columnar kernels: the same layouts over whole batches, compiled by numba."""

from collections.abc import Iterator

from tools.generate.python.kernel_index import Walker, row_fields, row_messages
from tools.generate.python.kernel_read import header_fields, read_header
from tools.generate.python.kernel_walk import Names, tag_name
from tools.generate.text import constant, python_module, snake_case
from tools.language import Choice, Field, Spec

__all__ = ["emit_kernels"]

IMPORTS = """
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.compiled.jit import find_nul, kernel, prefetch, u8, u16, u32, u64
from pgoutput_construct.pgtypes.kernels.row_plan import put_nothing, read_value
"""
NAMES = (
    "MESSAGE_SCHEMA",
    "READERS",
    "ROW_FIELDS",
    "ROW_PARAMETERS",
    "ROW_TAGS",
    "TUPLES",
    "index",
)
ABOUT = (
    "Offsets are bytes from the start of data; a walk returns the offset after what it walks, -1 if that is",
    "malformed. No length or count is used before it was compared with what is left. Names that begin with an",
    "underscore are fields; a parameter that a state sets has a value for each row (``_by_row``).",
)


def emit_kernels(spec: Spec) -> str:
    """Return the module of kernels."""
    names = Names(spec)
    return python_module(
        spec,
        [f"{spec.title}: kernels that walk a batch of payloads once.", "", *ABOUT],
        IMPORTS,
        f"__all__ = {list(NAMES)}",
        "\n".join(_tags(spec)),
        *_row_tables(spec),
        _schema(spec),
        *Walker(spec).functions(),
        *(read_header(names, message) for message in spec.messages if header_fields(message)),
        _readers(spec),
        _finders(spec),
    )


def _tags(spec: Spec) -> Iterator[str]:
    yield from (f"TAG_{message.class_name} = {message.tag[0]:#x}  # {message.tag_text}" for message in spec.messages)
    choices = [e for structure in spec.structures() for e in structure.elements if isinstance(e, Choice)]
    found = {tag_name(a): a.tag[0] for choice in choices for a in choice.alternatives}
    yield from (f"{name} = {code:#x}" for name, code in sorted(found.items()))


def _row_tables(spec: Spec) -> Iterator[str]:
    kept = (f'"{name}": np.{dtype}' for name, dtype in row_fields(spec).items())
    yield constant("ROW_FIELDS: Final[Mapping[str, type]]", kept, _ROW_FIELDS)
    parameters = (f'"{name}"' for name in Names(spec).by_row)
    yield constant("ROW_PARAMETERS: Final[tuple[str, ...]]", parameters, _ROW_PARAMETERS, brackets="()")
    tags = (f"TAG_{message.class_name}" for message in row_messages(spec) if message.group == "change")
    yield constant("ROW_TAGS: Final[tuple[int, ...]]", tags, "The tags of changes with tuples.", brackets="()")


_ROW_FIELDS = (
    "The fields that the index stores of messages with tuples: numbers, and the offsets of the tuples (-1 for none)."
)
_ROW_PARAMETERS = "The parameters that states set: they have a value for each row."


def _schema(spec: Spec) -> str:
    rows = (f'("{name}", pa.{kind}())' for name, kind in dict(_columns(spec).values()).items())
    text = (
        "The columns of a messages batch: the kind, and the header fields of all messages, null if a message has none."
    )
    return constant("MESSAGE_SCHEMA: Final", ['("kind", pa.string())', *rows], text, brackets=("pa.schema([", "])"))


def _columns(spec: Spec) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the column of each header field, by message and field: its name, and the widest of its types.

    A field whose type does not fit that of a column with its name has a column of its own, named after its message.
    """
    types: dict[str, str] = {"kind": ""}
    columns: dict[tuple[str, str], str] = {}
    for message in spec.messages:
        for field in header_fields(message):
            name, kind = field.name, "string" if field.is_letter else field.type.arrow if field.type else ""
            while name in types and _wider(types[name], kind) is None:
                name = f"{snake_case(message.class_name)}_{name}"
            types[name] = _wider(types.get(name, kind), kind) or kind
            columns[message.name, field.name] = name
    return {key: (name, types[name]) for key, name in columns.items()}


def _wider(one: str, other: str) -> str | None:
    if one == other:
        return one
    same = one.rstrip("0123456789") == other.rstrip("0123456789") and one[-1:].isdigit()
    return max(one, other, key=lambda kind: int(kind.lstrip("uint"))) if same else None


def _readers(spec: Spec) -> str:
    columns, names = _columns(spec), Names(spec)
    rows = []
    for message in spec.messages:
        fields = header_fields(message)
        read = "".join(f'("{columns[message.name, f.name][0]}", "{_form(f)}"), ' for f in fields)
        function = f"read_{names.of(message.class_name)}" if fields else "None"
        rows.append(f'TAG_{message.class_name}: ("{message.class_name}", {function}, ({read}))')
    kind = "Final[Mapping[int, tuple[str, Callable[..., None] | None, tuple[tuple[str, str], ...]]]]"
    text = (
        "By tag: the message's name, the kernel that reads its header, and the column and kind of each of its fields."
    )
    return constant(f"READERS: {kind}", rows, text)


def _form(field: Field) -> str:
    """Return the kind of a field: number, float, letter, or bytes with start and length; ``?`` if it may be absent."""
    form = "letter" if field.is_letter else "float" if field.is_float else "number" if field.width else "bytes"
    return form + ("?" if field.conditional else "")


def _finders(spec: Spec) -> str:
    rows = (f'"{part.name}": find_{Names(spec).of(part.name)}' for part in spec.rows)
    text = "The kernels that locate the values of tuples, by part; they return whether all have ``columns`` values."
    return constant("TUPLES: Final[Mapping[str, Callable[..., bool]]]", rows, text)
