"""Emits the fast engine: every layout as straight-line Python."""

from collections.abc import Iterator

from tools.generate.codec_build import build_message, build_part
from tools.generate.codec_module import Module
from tools.generate.codec_parse import read_message, read_part
from tools.generate.text import constant, python_module
from tools.language import Spec

__all__ = ["emit_codec"]

IMPORTS = """
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final

from pgoutput_construct.wire import {messages} as m
from pgoutput_construct.wire.fast import NOTHING, Reject, draft, number, string_bytes
from pgoutput_construct.wire.types import Lsn, Timestamp
"""

ABOUT = "It raises one of fast.REJECTIONS for whatever it does not accept; the definitions then say what is wrong."

READERS = (
    "What reads a message by its tag: ``(data, at, size, *parameters) -> message, end``.",
    "",
    "It may read as far behind ``size`` as PAD is long; an ``end`` beyond ``size`` means that not all of it is there.",
)
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
        '__all__ = ["BUILDERS", "READERS"]',
        module.constants(),
        *functions,
        *_tables(module),
    )


def _tables(module: Module) -> Iterator[str]:
    known = [(message.tag[0], message.class_name) for message in module.spec.messages]
    readers = (f"{tag}: {module.function('_read', cls)}" for tag, cls in known)
    yield constant("READERS: Final[Mapping[int, Callable[..., tuple[Any, int]]]]", readers, *READERS)
    builders = (f"m.{cls}: {module.function('build', cls)}" for _, cls in known)
    yield constant("BUILDERS: Final[Mapping[type, Callable[..., bytes]]]", builders, BUILDERS)
