"""Emits the fast engine: every layout as straight-line Python."""

from collections.abc import Iterator

from tools.generate.codec_build import build_message, build_part
from tools.generate.codec_module import Module
from tools.generate.codec_parse import read_message, read_part
from tools.generate.text import constant, docstring, python_module
from tools.language import Spec

__all__ = ["emit_codec"]

IMPORTS = """
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final

from pgoutput_construct.wire import {messages} as m
from pgoutput_construct.wire.codec_runtime import NOTHING, Reject, draft, number, string_bytes
from pgoutput_construct.wire.types import Lsn, Timestamp
"""

ABOUT = "It raises one of fast.REJECTIONS for whatever it does not accept; the definitions then say what is wrong."

READERS = (
    "What reads a message by its tag: ``(data, at, size, *parameters) -> message, end``.",
    "",
    "It may read as far behind ``size`` as PAD is long; an ``end`` beyond ``size`` means that not all of it is there.",
)
LENGTH = "How many bytes a message takes without its tag, behind which this stands."
FRAMED_READERS = ("What reads a message of each class: see READERS of the codec of messages.",)
BUILDERS = "What builds an object of each class: ``(message, *parameters) -> bytes``."


def emit_codec(spec: Spec, messages: str) -> str:
    """Return the module of parse and build functions for the classes of the module ``messages``."""
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
        IMPORTS.format(messages=messages),
        f"__all__ = {_public(spec)!r}",
        module.constants(),
        *functions,
        *_tables(module),
        *_length(spec),
    )


def _public(spec: Spec) -> list[str]:
    return ["BUILDERS", *["LENGTH"] * spec.framed, "READERS"]


def _length(spec: Spec) -> Iterator[str]:
    """Yield how the messages of a connection say where the next one begins."""
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
