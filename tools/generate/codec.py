"""Emits the fast engine: every layout as straight-line Python, one function to parse and one to build a message."""

from collections.abc import Iterator

from tools.generate.codec_build import Builder
from tools.generate.codec_parse import Parser
from tools.generate.codec_runs import Formats
from tools.generate.text import docstring, formatted, header, snake_case
from tools.language import Message, Spec

__all__ = ["emit_codec"]

IMPORTS = """
from collections.abc import Callable, Mapping
from struct import Struct, unpack_from
from typing import Any, Final

from pgoutput_construct.wire import {messages} as m
from pgoutput_construct.wire.fast import PAD, Reject, new, number, setters, string_bytes
from pgoutput_construct.wire.types import Lsn, Timestamp
"""


def emit_codec(spec: Spec, messages: str) -> str:
    """Return the module of parse and build functions for the classes of the module ``messages``."""
    formats = Formats()
    parser, builder = Parser(spec, formats), Builder(spec, formats)
    functions = [
        *(parser.part(part) for part in spec.parts_in_order),
        *(parser.message(message) for message in spec.messages),
        *(builder.part(part) for part in spec.parts_in_order),
        *(builder.message(message) for message in spec.messages),
    ]
    chunks = [
        header(spec),
        docstring([f"{spec.title}: the fast engine, the same layouts as straight-line Python.", "", *_about()], ""),
        IMPORTS.format(messages=messages),
        '__all__ = ["BUILDERS", "PARSERS"]',
        formats.constants(),
        "\n".join(parser.setters()),
        *functions,
        _table("PARSERS", "int", [f"{m.tag[0]}: parse_{_name(m)}" for m in spec.messages], "parses each first byte"),
        _table(
            "BUILDERS",
            "type",
            [f"m.{m.class_name}: build_{_name(m)}" for m in spec.messages],
            "builds each class",
        ),
    ]
    return formatted("\n\n".join(chunks))


def _about() -> Iterator[str]:
    yield "It raises one of fast.REJECTIONS for whatever it does not accept; the definitions then say what is wrong."


def _name(message: Message) -> str:
    return snake_case(message.class_name)


def _table(name: str, key: str, rows: list[str], text: str) -> str:
    body = "".join(f"{row},\n" for row in rows)
    return f"{name}: Final[Mapping[{key}, Callable[..., Any]]] = {{\n{body}}}\n" + docstring([f"What {text}."], "")
