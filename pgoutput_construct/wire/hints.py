"""The likely mistake behind bytes that are no message: words for the end of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire import frames, messages
from pgoutput_construct.wire.options import STATE_PARAMETERS, noun
from pgoutput_construct.wire.protocol import LAID_OUT_BY_STATE, STATES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pgoutput_construct.wire.options import Options
    from pgoutput_construct.wire.reference import Reference

__all__ = ["hint_for_frame", "hint_for_message"]

_DIGITS = frozenset(b"0123456789abcdefABCDEF")


def hint_for_message(data: bytes, given: Options, reference: Reference, envelope: Reference) -> str | None:
    """Return what a payload that is no message may be instead, None where nothing comes to mind."""
    cls = messages.BY_TAG.get(data[:1])
    if cls is None:
        frame = frames.BY_TAG.get(data[:1])
        if frame is not None and _accepts(envelope, data, {}):
            rest = ": parse_frame(data).data is the message" if "data" in frame.__dataclass_fields__ else ""
            article = "an" if frame.__name__[0] in "AEIOX" else "a"
            return f"this is {article} {frame.__name__} frame{rest}"
        return _hexadecimal(data, messages.BY_TAG)
    before = given.parameters()
    for sets in dict.fromkeys(STATES.values()) if cls in LAID_OUT_BY_STATE else ():
        others = {name: name in sets for name in STATE_PARAMETERS if (name in sets) != before[name]}
        if others and _accepts(reference, data, before | others):
            said = ", ".join(f"{name}={value}" for name, value in others.items())
            where = " and ".join(f"{'inside' if on else 'outside'} a {noun(name)}" for name, on in others.items())
            return f"with {said} these bytes are a valid {cls.__name__}: {where}?"
    return None


def hint_for_frame(data: bytes) -> str | None:
    """Return what bytes that are no frame may be instead, None where nothing comes to mind."""
    if data[:1] in messages.BY_TAG and data[:1] not in frames.BY_TAG:
        return f"{messages.BY_TAG[data[:1]].__name__} is a message: parse reads the data of an XLogData frame"
    return _hexadecimal(data, frames.BY_TAG)


def _hexadecimal(data: bytes, by_tag: Mapping[bytes, type]) -> str | None:
    digits = data.removeprefix(b"\\x")
    if len(digits) < 2 or not _DIGITS.issuperset(digits[:64]) or bytes([int(digits[:2], 16)]) not in by_tag:
        return None
    return "this is hexadecimal text: bytes.fromhex() gives the bytes"


def _accepts(reference: Reference, data: bytes, parameters: Mapping[str, Any]) -> bool:
    try:
        reference.parse(data, parameters)
    except PgoutputError:
        return False
    return True
