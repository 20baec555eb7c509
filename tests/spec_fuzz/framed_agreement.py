"""What definitions, codec and the reader of a connection must agree on, for messages with a length."""

from typing import Any

import pytest
from hypothesis import strategies as st

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.testing import damaged
from pgoutput_construct.testing.strategies import any_of
from pgoutput_construct.wire.codec_runtime import PAD
from pgoutput_construct.wire.reference import Reference
from pgoutput_construct.wire.trace import _trace
from tests.spec_fuzz.agreement import REFUSED, outcome
from tests.spec_fuzz.fuzz import BYTE, spoilt
from tests.spec_fuzz.package import Package, generated
from tools.language import Spec

__all__ = ["explore_framed", "follow_framed", "follow_generated_framed"]


def follow_framed(spec: Spec, data: st.DataObject) -> None:
    """Explore what a specification generates."""
    with generated(spec) as package:
        follow_generated_framed(package, data)


def follow_generated_framed(package: Package, data: st.DataObject) -> None:
    """Explore what was generated."""
    for _ in range(3):
        explore_framed(package, data)


def explore_framed(package: Package, data: st.DataObject) -> None:
    """Draw a message, and check that the engines agree on all that is near it."""
    kinds = [any_of(cls, definition, {}) for cls, definition in package.definitions.DEFINITIONS.items()]
    message = data.draw(data.draw(st.sampled_from(kinds), "strategy"), "message")
    engines = _Framed(package, type(message))
    payload = engines.check_message(message)
    for size in range(min(len(payload), 64)):
        engines.check_bytes(payload[:size])
    engines.check_bytes(payload + b"\0")
    for _ in range(4):
        engines.check_bytes(data.draw(damaged(st.just(payload)), "damaged"))
    for at in range(len(engines.cls.TAG), min(len(payload), 24)):
        for changed in {payload[at] ^ 0xFF, payload[at] ^ 0x80, 0, data.draw(BYTE)}:
            engines.check_bytes(payload[:at] + bytes([changed]) + payload[at + 1 :])
    engines.check_built(spoilt(message, data))
    engines.check_places(message, payload)
    engines.check_any(data.draw(damaged(st.just(payload)), "any"))


class _Framed:
    """The engines of one package, for messages of one class."""

    def __init__(self, package: Package, cls: Any) -> None:
        self.package = package
        self.cls = cls
        self.read, self.build = package.codec.READERS[cls], package.codec.BUILDERS[cls]

    def check_message(self, message: Any) -> bytes:
        """Check all that is true of a message that can be sent; return its bytes."""
        data = self.package.reference.build(message, {})
        built: bytes = self.build(message)
        assert built == data, f"codec builds {built.hex()}, definitions {data.hex()}"
        assert self.check_bytes(data) == repr(message), "what comes back is another message"
        reference = Reference({data[:1]: self.cls}, self.package.reference.definitions)
        trace = _trace(reference, data, {}, self.package.fields.FIELDS)
        unknown = [span.key for span in trace.spans if span.key not in trace.fields]
        assert (trace.fault, unknown) == (None, [])
        return data

    def check_bytes(self, data: bytes) -> str:
        """Check that the engines accept or refuse the same, and give the same; return what they give."""
        if not data.startswith(self.cls.TAG):
            return REFUSED  # whoever reads has chosen the class by the tag, which the codec therefore skips
        reference = outcome(lambda: self.package.reference.read(self.cls, data, {}))
        fast = outcome(lambda: self._whole(data))
        assert fast == reference, f"{data.hex()}: codec parses {fast}, definitions {reference}"
        return reference

    def _whole(self, data: bytes) -> Any:
        message, end = self.read(data + PAD, 0, len(data))
        if end != len(data):
            raise DecodeError("more or less than the bytes")
        return message

    def check_built(self, message: Any) -> None:
        """Check that the engines build the same from a message that may be none, or refuse it both."""
        reference = outcome(lambda: self.package.reference.build(message, {}))
        fast = outcome(lambda: self.build(message))
        assert fast == reference, f"{message!r}: codec builds {fast}, definitions {reference}"

    def check_places(self, message: Any, data: bytes) -> None:
        """Check that a message is found by its first bytes wherever it can come, and nowhere else."""
        spec, connection = self.package.spec, self.package.connection
        for sender in ("server", "client"):
            for state in spec.states:
                place = sender, state.name
                if _following(spec, self.cls.__name__, *place) is None:
                    with pytest.raises(DecodeError):
                        connection.next_state(message, *place)
                    continue
                assert repr(connection.parse(data, *place)) == repr(message)
                assert connection.next_state(message, *place) == _following(spec, self.cls.__name__, *place)
                assert connection.message_size(data + b"more", *place) == len(data)
                sizes = {connection.message_size(data[:size], *place) for size in range(min(len(data), 12))}
                assert sizes <= {None, len(data)}
                with pytest.raises(DecodeError):
                    connection.parse(data + b"\0", *place)

    def check_any(self, data: bytes) -> None:
        """Check that bytes are refused wherever they come, or are a message of which they are the bytes."""
        spec, connection = self.package.spec, self.package.connection
        for sender in ("server", "client"):
            for state in spec.states:
                try:
                    found = connection.parse(data, sender, state.name)
                except DecodeError:
                    continue
                assert _following(spec, type(found).__name__, sender, state.name) is not None
                assert connection.build(found) == data


def _following(spec: Spec, name: str, sender: str, state: str) -> str | None:
    """Return the state that the specification says follows a message; None where it cannot come."""
    message = next(message for message in spec.messages if message.class_name == name)
    if state not in message.within or message.sender not in (None, sender):
        return None
    return message.enters or state
