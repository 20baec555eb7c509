"""Whether what is shown of a message is what the definitions find in it."""

from datetime import UTC, datetime

from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.spec_metadata import Described
from pgoutput_construct.wire.trace import FieldSpan, Trace
from tests.wireshark.shown import ShownField, ShownMessage

__all__ = ["assert_same"]

TIME = "%b %d, %Y %H:%M:%S.%f"
EXACT = 2**53
"""Microseconds: some 285 years, of which both sides have a calendar."""
LONGEST = 230
"""Characters of a text that Wireshark may cut."""


def assert_same(message: ShownMessage, found: Trace) -> None:
    """The same fields in the same order, each with its bytes, its value, what that stands for, and its description."""
    assert (message.name.replace(" ", ""), message.data) == (found.name, found.data)
    spans = [(span.path, span.end - span.start, found.data[span.start : span.end]) for span in found.spans]
    assert [(field.path, field.size, field.data) for field in message.fields] == spans
    for field, span in zip(message.fields, found.spans, strict=True):
        assert field.start == span.start or not field.size, field
        _assert_value(field, span, found.fields[span.key])


def _assert_value(field: ShownField, span: FieldSpan, described: Described) -> None:
    value, text = span.value, field.text
    if isinstance(value, bytes) and not described.notation.startswith("Byte"):
        value = int.from_bytes(value, "big")
    if len(text) < LONGEST:
        meaning = described.meaning(value)
        description = meaning if described.notation == "Byte1" else described.description
        assert text.endswith(f" [{description}]") and (meaning in text)
        text = text.removesuffix(f" [{description}]")
    match value:
        case Lsn():
            assert text.endswith(f": {value}")
        case Timestamp():
            if abs(value) < EXACT:
                shown = datetime.strptime(field.value.removesuffix("000 UTC"), TIME).replace(tzinfo=UTC)
                assert shown == value.to_datetime()
        case str() if described.notation == "String":
            assert field.value == value or not value.isprintable()
        case str():
            assert field.value == f"'{value}'"
        case int():
            assert field.value == str(value)
        case bytes():
            assert field.data == value
