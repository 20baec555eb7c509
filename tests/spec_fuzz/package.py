"""Everything that a specification generates, as modules that live in memory."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from unittest.mock import patch

from pgoutput_construct.wire.reference import Reference
from pgoutput_construct.wire.spec_engines import ConnectionEngine
from tools.generate import text as generated_text
from tools.generate.python.codec import emit_codec
from tools.generate.python.definitions import emit_definitions
from tools.generate.python.kernels import emit_kernels
from tools.generate.python.messages import emit_messages
from tools.generate.python.protocol import emit_protocol
from tools.generate.reference.reference_page import emit_reference
from tools.generate.reference.reference_table import emit_fields
from tools.language import Spec

__all__ = ["Package", "generated", "texts"]

NAME = "fuzzed"
"""The package of the modules, while they are there."""
MODULES = ("messages", "protocol", "definitions", "codec", "kernels", "fields")
"""The modules, each after those that it imports; there is no protocol where there are no options.

Messages that say how long they are have no kernels.
"""


@dataclass(frozen=True)
class Package:
    """The generated modules of one specification."""

    spec: Spec
    messages: ModuleType
    definitions: ModuleType
    codec: ModuleType
    fields: ModuleType
    reference: Reference
    protocol: Any = None
    """The tables around the messages; None where there are no options or no versions."""
    reference_page: str = ""
    kernels: Any = None
    connection: Any = None
    """The engine of messages with a length."""
    checked: set[tuple[Any, ...]] = field(default_factory=set)
    """The parameters under which its vectors agree."""


def texts(spec: Spec, tidy: bool = False) -> dict[str, str]:
    """Return the text of every output by its module; ``tidy`` runs ruff over them, as the generator does."""
    with patch.object(generated_text, "_ruff", generated_text._ruff if tidy else _as_it_is):
        protocol = {"protocol": emit_protocol(spec)} if spec.options and spec.versions else {}
        rest = {} if spec.framed else {"kernels": emit_kernels(spec)}
        return (
            protocol
            | rest
            | {
                "messages": emit_messages(spec, union="ConnectionMessage" if spec.framed else "PgoutputMessage"),
                "definitions": emit_definitions(spec, messages="messages"),
                "codec": emit_codec(spec, messages="messages"),
                "fields": emit_fields(spec),
                "reference": emit_reference(spec),
            }
        )


def _as_it_is(command: str, source: str, *arguments: str) -> str:
    return source


@contextmanager
def generated(spec: Spec, compiled: bool = False, tidy: bool = False) -> Iterator[Package]:
    """Generate everything and import it, the kernels in plain Python unless ``compiled``; afterwards it is gone."""
    loaded: dict[str, ModuleType] = {}
    try:
        written = texts(spec, tidy)
        for name in MODULES:
            if name in written:
                loaded[name] = _module(name, _moved(written[name], compiled))
        reference = Reference(getattr(loaded["messages"], "BY_TAG", {}), loaded["definitions"].DEFINITIONS)
        connection = ConnectionEngine(loaded["messages"], loaded["codec"]) if spec.framed else None
        yield Package(spec, reference=reference, reference_page=written["reference"], connection=connection, **loaded)
    finally:
        for name in loaded:
            sys.modules.pop(f"{NAME}.{name}", None)


def _moved(text: str, compiled: bool) -> str:
    """Return a module's text with the imports that lead to the other generated modules."""
    text = text.replace("from pgoutput_construct.wire import messages as m", f"from {NAME} import messages as m")
    for place in () if compiled else ("compiled.jit", "pgtypes.kernels.row_plan"):
        text = text.replace(f"pgoutput_construct.{place} ", "tests.spec_fuzz.checked_reads ")
    return text


def _module(name: str, text: str) -> ModuleType:
    module = ModuleType(f"{NAME}.{name}")
    parent = sys.modules.setdefault(NAME, ModuleType(NAME))
    sys.modules[module.__name__] = module
    setattr(parent, name, module)
    exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return module
