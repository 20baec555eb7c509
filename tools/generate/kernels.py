"""Emits the columnar kernels: the same layouts over whole batches, compiled by numba."""

from collections.abc import Iterator

from tools.generate.kernel_read import Reader
from tools.generate.kernel_walk import Walker, row_fields, tuple_parts, values_of
from tools.generate.text import docstring, formatted, header, snake_case
from tools.language import Field, Message, Spec
from tools.language.model import Element

__all__ = ["emit_kernels"]

IMPORTS = """
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.columnar.jit import find_nul, kernel, u8, u16, u32, u64
"""


def emit_kernels(spec: Spec) -> str:
    """Return the module of kernels."""
    walker, reader = Walker(spec), Reader(spec)
    chunks = [
        header(spec),
        docstring([f"{spec.title}: kernels that walk a batch of payloads once.", "", *_about()], ""),
        IMPORTS,
        '__all__ = ["VALUE_TAGS", "MESSAGE_SCHEMA", "READERS", "ROW_FIELDS", "TUPLES", "index"]',
        _row_table(spec),
        _kinds(spec),
        _schema(spec),
        *walker.functions(),
        *(reader.message(message) for message in spec.messages if header_fields(message)),
        _readers(spec),
        _tuples(spec),
    ]
    return formatted("\n\n".join(chunks))


def _about() -> Iterator[str]:
    yield "Positions are bytes from the start of data; a walk returns the position after what it walks, -1 for what is"
    yield "malformed. No length or count is used before it was compared with what is left."


def header_fields(message: Message) -> list[Field]:
    """Return the fields of a message that are columns of the messages batch."""
    return [element for element in message.exposed if isinstance(element, Field) and not element.part]


def _row_table(spec: Spec) -> str:
    rows = "".join(f'"{name}": np.{dtype},\n' for name, dtype in row_fields(spec).items())
    text = "What the index keeps of messages that hold rows: numbers, and the positions of the rows (-1 for none)."
    return f"ROW_FIELDS: Final[Mapping[str, type]] = {{\n{rows}}}\n" + docstring([text], "")


def _kinds(spec: Spec) -> str:
    choices = [choice for part in tuple_parts(spec) if (choice := values_of(part)) is not None]
    rows = "".join(f'"{a.name}": {a.tag[0]},\n' for choice in choices for a in choice.alternatives)
    return f"VALUE_TAGS: Final[Mapping[str, int]] = {{\n{rows}}}\n" + docstring(["The tags of values in a row."], "")


def _schema(spec: Spec) -> str:
    arrow: dict[str, str] = {}
    for message in spec.messages:
        for field in header_fields(message):
            assert field.type is not None
            kind = "string" if _is_letter(field) else field.type.arrow
            if arrow.setdefault(field.name, kind) != kind:
                raise ValueError(f"{message.name}.{field.name} is {kind}, elsewhere {arrow[field.name]}")
    rows = "".join(f'("{name}", pa.{kind}()),\n' for name, kind in arrow.items())
    text = "The columns of a messages batch: the kind, and every header field of every message, null where it has none."
    return f'MESSAGE_SCHEMA: Final = pa.schema([\n("kind", pa.string()),\n{rows}])\n' + docstring([text], "")


def _is_letter(field: Element) -> bool:
    return isinstance(field, Field) and bool(field.values) and all(isinstance(v, str) for v in field.values or ())


def _readers(spec: Spec) -> str:
    rows = "".join(_reader_row(message) for message in spec.messages)
    kind = "Final[Mapping[int, tuple[str, Callable[..., None] | None, tuple[tuple[str, str], ...]]]]"
    text = "By first byte: the message's name, what reads its header, and how each of its fields is read."
    return f"READERS: {kind} = {{\n{rows}}}\n" + docstring([text], "")


def _reader_row(message: Message) -> str:
    fields = header_fields(message)
    names = "".join(f'("{field.name}", "{Reader.form(field)}"), ' for field in fields)
    function = f"read_{snake_case(message.class_name)}" if fields else "None"
    return f'{message.tag[0]}: ("{message.class_name}", {function}, ({names})),\n'


def _tuples(spec: Spec) -> str:
    rows = "".join(f'"{part.name}": values_{snake_case(part.name)},\n' for part in tuple_parts(spec))
    text = "What finds the values of each kind of row."
    return f"TUPLES: Final[Mapping[str, Callable[..., int]]] = {{\n{rows}}}\n" + docstring([text], "")
