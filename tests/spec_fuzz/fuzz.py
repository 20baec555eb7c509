"""One specification, taken through everything that follows from it."""

import math
from collections.abc import Mapping
from typing import Any

import yaml
from hypothesis import strategies as st

from pgoutput_construct.testing import damaged
from pgoutput_construct.testing.strategies import any_of
from tests.spec_fuzz.agreement import Engines
from tests.spec_fuzz.kaitai_readers import Compiler
from tests.spec_fuzz.package import Package, generated
from tests.spec_fuzz.tables_agreement import check_page, check_tables
from tests.spec_fuzz.vectors_agreement import check_vectors
from tools.language import Spec
from tools.language.end_rules import goes_on

__all__ = ["BYTE", "check_written", "compare_compiled", "explore", "follow", "follow_generated", "spoilt"]

JUNK = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(max_size=2), st.binary(max_size=3), st.booleans(),
    st.lists(st.none() | st.integers(0, 300) | st.binary(max_size=2), max_size=2).map(tuple),
)  # fmt: skip
"""Values that a field may be given by mistake."""

BYTE = st.integers(0, 255)


def follow(spec: Spec, text: str, data: st.DataObject, compiler: Compiler | None = None) -> None:
    """Explore what a specification generates; what Kaitai Struct reads, too, where there is a compiler."""
    with generated(spec) as package:
        check_written(package, text)
        follow_generated(package, data, compiler)


def check_written(package: Package, text: str) -> None:
    """Check that tables and pages of a specification say what is written."""
    written = yaml.safe_load(text)
    check_tables(package, written)
    check_page(package, written)


def follow_generated(package: Package, data: st.DataObject, compiler: Compiler | None = None) -> None:
    """Explore what was generated, and check the vectors under parameters that are drawn."""
    for _ in range(3):
        explore(package, data)
    reads = compiler.reads(package.spec) if compiler else None
    check_vectors(package, data.draw(_parameters(package.spec), "of vectors"), reads)


def explore(package: Package, data: st.DataObject) -> None:
    """Draw parameters and a message under them, and check that the engines agree on all that is near it."""
    parameters = data.draw(_parameters(package.spec), "parameters")
    engines = Engines(package, parameters)
    strategies = _strategies(package, parameters)
    if not strategies:
        return
    message = data.draw(data.draw(st.sampled_from(strategies), "strategy"), "message")
    payload = engines.check_message(message)
    for size in range(min(len(payload), 64)):
        engines.check_bytes(payload[:size])
    engines.check_bytes(payload + b"\0")
    for _ in range(4):
        engines.check_bytes(data.draw(damaged(st.just(payload)), "damaged"))
    for at in range(1, min(len(payload), 24)):
        for changed in {payload[at] ^ 0xFF, payload[at] ^ 0x80, 0, data.draw(BYTE)}:
            engines.check_bytes(payload[:at] + bytes([changed]) + payload[at + 1 :])
    if not _open_ended(package.spec, payload[:1]):
        engines.check_prefix(payload, data.draw(st.binary(max_size=3), "more"))
    engines.check_built(spoilt(message, data))
    Engines(package, data.draw(_parameters(package.spec), "others")).check_built(message)
    Engines(package, data.draw(_parameters(package.spec), "others")).check_bytes(payload)


def compare_compiled(package: Package, data: st.DataObject) -> None:
    """Draw messages and damaged ones, and check that the compiled kernels accept what the definitions accept."""
    parameters = data.draw(_parameters(package.spec), "parameters")
    payloads = [b"", b"?"]
    for strategy in _strategies(package, parameters):
        message = data.draw(strategy, "message")
        payload = package.reference.build(message, parameters)
        payloads += [payload, *(payload[:size] for size in range(len(payload)))]
        payloads += [data.draw(damaged(st.just(payload)), "damaged") for _ in range(4)]
    Engines(package, parameters).check_compiled(payloads)


def _strategies(package: Package, parameters: Mapping[str, Any]) -> list[st.SearchStrategy[Any]]:
    """Return the strategies of the messages that the protocol version has."""
    version = parameters.get("proto_version", math.inf)
    known = {message.class_name for message in package.spec.messages if version >= (message.needs or 0)}
    definitions = package.definitions.DEFINITIONS.items()
    return [any_of(cls, definition, parameters) for cls, definition in definitions if cls.__name__ in known]


def _parameters(spec: Spec) -> st.SearchStrategy[dict[str, Any]]:
    versions = [version.version for version in spec.versions] or [1, 2]
    each = {p.name: st.booleans() if p.type == "bool" else st.sampled_from(versions) for p in spec.parameters}
    return st.fixed_dictionaries(each)


def _open_ended(spec: Spec, tag: bytes) -> bool:
    last = next(message for message in spec.messages if message.tag == tag).elements[-1]
    return goes_on(last, spec)


def spoilt(message: Any, data: st.DataObject) -> Any:
    """Return a message with any value in one of its fields."""
    values = {
        name: getattr(message, name)
        for name in message.__dataclass_fields__
        if name not in ("TAG", "LENGTH_AT", "CODE")
    }
    if values:
        values[data.draw(st.sampled_from(sorted(values)))] = data.draw(JUNK)
    return type(message)(**values)
