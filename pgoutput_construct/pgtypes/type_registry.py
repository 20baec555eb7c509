"""All families, and the codecs of all types by name."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from pgoutput_construct.pgtypes import (
    arrays,
    binary,
    bits,
    composites,
    dates,
    geometry,
    network,
    numbers,
    ranges,
    system,
    text,
    text_search,
)
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, FIRST_USER_OID
from pgoutput_construct.pgtypes.family import Family
from pgoutput_construct.pgtypes.loader import base_oid
from pgoutput_construct.pgtypes.value_codec import Codec, Writer
from pgoutput_construct.wire.messages import Type

__all__ = ["CODECS", "FAMILIES", "TEXT_WRITERS", "writer"]


def _codecs(families: Mapping[str, Family]) -> dict[str, Codec]:
    return {name: codec for family in families.values() for name, codec in family.codecs.items()}


_SINGLE: Final = {
    module.__name__.rpartition(".")[2]: module.FAMILY
    for module in (numbers, text, binary, dates, bits, network, geometry, text_search, system, composites)
}
_ELEMENTS: Final = {**_SINGLE, "ranges": ranges.family_over(_codecs(_SINGLE))}

FAMILIES: Final[Mapping[str, Family]] = {**_ELEMENTS, "arrays": arrays.family_over(_codecs(_ELEMENTS))}
"""All families by the names of their modules."""

_KNOWN: Final = _codecs(FAMILIES)
_ALIKE: Final = {row.name: BUILTIN_TYPES[row.binary_like].name for row in BUILTIN_TYPES.values() if row.binary_like}

CODECS: Final[Mapping[str, Codec]] = _KNOWN | {name: _KNOWN[like] for name, like in _ALIKE.items() if like in _KNOWN}
"""Codecs by typname: all built-in types except those ``without_codec`` in their families."""

TEXT_WRITERS: Final[Mapping[str, Writer]] = {name: codec.text for name, codec in CODECS.items()}
"""By typname: a function from binary format to PostgreSQL's text, which raises one of ``CODEC_ERRORS``.

Only types whose text equals the server's exactly, without its locale or catalog.
"""


def writer(type_oid: int, types: Mapping[int, Type]) -> Writer:
    """Return the function that converts a type's values from binary format to text.

    The function raises one of ``CODEC_ERRORS`` for bytes whose text cannot be determined.

    Args:
        type_oid: The type's OID.
        types: The Type messages before the Relation, by OID.
    """
    oid = base_oid(type_oid, types)
    if oid < FIRST_USER_OID:
        return TEXT_WRITERS.get(BUILTIN_TYPES[oid].name, _refuse) if oid in BUILTIN_TYPES else _refuse
    name = types[oid].name if oid in types else None
    return partial(composites.user_text, name, lambda part: writer(part, types))


def _refuse(data: bytes) -> str:
    raise ValueError("only the server can write the text of this type")
