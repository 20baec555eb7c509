"""Emits the fast engine: every layout as straight-line Python."""

from collections.abc import Iterator

from tools.generate.python.codec_build import build_message, build_part
from tools.generate.python.codec_module import Module
from tools.generate.python.codec_parse import read_message, read_part
from tools.generate.text import WIRE, constant, docstring, python_module
from tools.language import Spec

__all__ = ["emit_codec"]

IMPORTS = """
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final

from {package} import {messages} as m
from pgoutput_construct.wire.codec_runtime import NOTHING, Reject, draft, number, part_bytes, string_bytes
from pgoutput_construct.wire.types import Float, Lsn, Timestamp
"""

ABOUT = "For input that it does not accept it raises one of codec_runtime.REJECTIONS; the definitions then explain."

READERS = (
    "The parse functions by tag: ``(data, at, size, *parameters) -> message, end``.",
    "",
    "They may read up to the length of PAD beyond ``size``; an ``end`` beyond ``size`` means truncated data.",
)
LENGTH = "The format of the length of a message, which follows its tag and does not include it."
FRAMED_READERS = ("The parse functions by class; see READERS of the codec of messages.",)
BUILDERS = "The build functions by class: ``(message, *parameters) -> bytes``."


def emit_codec(spec: Spec, messages: str, package: str = WIRE) -> str:
    """Return the module of parse and build functions for the classes of ``messages`` in ``package``."""
    module = Module(spec)
    functions = [
        *(read_part(module, part) for part in spec.parts_in_order),
        *(read_message(module, message) for message in spec.messages),
        *(build_part(module, part) for part in spec.parts_in_order),
        *(build_message(module, message) for message in spec.messages),
    ]
    about = f"{spec.title}: the fast engine, the same layouts as straight-line Python."
    return python_module(
        spec,
        [about, "", ABOUT],
        IMPORTS.format(package=package, messages=messages),
        f"__all__ = {_public(spec)!r}",
        module.constants(),
        *functions,
        *_tables(module),
        *_length(spec),
    )


def _public(spec: Spec) -> list[str]:
    return ["BUILDERS", *["LENGTH"] * spec.framed, "READERS"]


def _length(spec: Spec) -> Iterator[str]:
    """Yield the constants that locate the end of a connection's message."""
    field = next((message.length for message in spec.messages if message.length), None)
    if field is not None:
        yield f'LENGTH: Final = Struct(">{field.code}")\n' + docstring([LENGTH], "")


def _tables(module: Module) -> Iterator[str]:
    framed, messages = module.spec.framed, module.spec.messages
    keys = [f"m.{message.class_name}" if framed else message.tag[0] for message in messages]
    names = [message.class_name for message in messages]
    readers = (f"{key}: {module.function('_read', cls)}" for key, cls in zip(keys, names, strict=True))
    key, about = ("type", FRAMED_READERS) if framed else ("int", READERS)
    yield constant(f"READERS: Final[Mapping[{key}, Callable[..., tuple[Any, int]]]]", readers, *about)
    builders = (f"m.{cls}: {module.function('build', cls)}" for cls in names)
    yield constant("BUILDERS: Final[Mapping[type, Callable[..., bytes]]]", builders, BUILDERS)
