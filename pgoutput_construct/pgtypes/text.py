"""Text types, and documents in text format: json, jsonb, jsonpath and xml (varlena.c, jsonb.c, xml.c)."""

from collections.abc import Mapping, Sequence
from typing import Final

from pgoutput_construct.pgtypes.family import ArrowKind, ArrowTypes, Compiled, Family
from pgoutput_construct.pgtypes.value_codec import Codec, utf8

__all__ = ["FAMILY"]

_OCTAL = 4
"""Length of the octal escape that "char" writes for a byte above 127."""


def _char_text(data: bytes) -> str:
    # charout(): a byte above 127 is written as an octal escape, zero as the empty string.
    (code,) = data
    return f"\\{code:03o}" if code > 127 else data.decode("ascii").rstrip("\0")


def _char_binary(text: str) -> bytes:
    return bytes([int(text[1:], 8)]) if len(text) == _OCTAL else text.encode("ascii") or b"\0"


def _versioned_text(data: bytes) -> str:
    if data[:1] != b"\x01":  # jsonb_send(), jsonpath_send(): version 1
        raise ValueError(f"version {data[:1]!r} is not 1")
    return utf8(data[1:])


def _arrow() -> ArrowTypes:
    import pyarrow as pa

    strings = ArrowKind(pa.types.is_string, lambda value, _: isinstance(value, str))
    return ArrowTypes({"string": pa.string()}, [strings])


def _compiled() -> Mapping[str, Sequence[Compiled]]:
    import pyarrow as pa

    from pgoutput_construct.pgtypes.kernels import planned_casts

    text = Compiled(pa.types.is_string, planned_casts.TEXT, planned_casts.TEXT)
    versioned = Compiled(pa.types.is_string, planned_casts.TEXT, planned_casts.text_after(1))  # jsonb_send()
    plain = ("text", "varchar", "bpchar", "name", "json", "xml")
    return {**{name: [text] for name in plain}, "jsonb": [versioned]}


_TEXT: Final = Codec(utf8, str.encode)
_VERSIONED: Final = Codec(_versioned_text, lambda text: b"\x01" + text.encode())

FAMILY: Final = Family(
    {
        "char": Codec(_char_text, _char_binary),
        **dict.fromkeys(("name", "text", "json", "xml", "bpchar", "varchar", "refcursor"), _TEXT),
        **dict.fromkeys(("jsonb", "jsonpath"), _VERSIONED),
    },
    arrow=_arrow,
    compiled=_compiled,
)
