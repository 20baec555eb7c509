"""All families, and what each says, by the type's name."""

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
    searches,
    system,
    text,
)
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, FIRST_USER_OID
from pgoutput_construct.pgtypes.codec import Form, Writer
from pgoutput_construct.pgtypes.family import Family
from pgoutput_construct.pgtypes.loader import base_oid
from pgoutput_construct.wire.messages import Type

__all__ = ["FAMILIES", "FORMS", "TEXTS", "writer"]


def _forms(families: Mapping[str, Family]) -> dict[str, Form]:
    return {name: form for family in families.values() for name, form in family.forms.items()}


_SINGLE: Final = {
    module.__name__.rpartition(".")[2]: module.FAMILY
    for module in (numbers, text, binary, dates, bits, network, geometry, searches, system, composites)
}
_ELEMENTS: Final = {**_SINGLE, "ranges": ranges.family_over(_forms(_SINGLE))}

FAMILIES: Final[Mapping[str, Family]] = {**_ELEMENTS, "arrays": arrays.family_over(_forms(_ELEMENTS))}
"""By the names of their modules."""

_KNOWN: Final = _forms(FAMILIES)
_ALIKE: Final = {row.name: BUILTIN_TYPES[row.binary_like].name for row in BUILTIN_TYPES.values() if row.binary_like}

FORMS: Final[Mapping[str, Form]] = _KNOWN | {name: _KNOWN[like] for name, like in _ALIKE.items() if like in _KNOWN}
"""By name in pg_type: all types that are built in, but those that are ``without_form`` in their families."""

TEXTS: Final[Mapping[str, Writer]] = {name: form.text for name, form in FORMS.items()}
"""By name in pg_type: bytes of the binary format -> PostgreSQL's text; raises one of ``CANNOT``.

Only what can be written exactly as the server would: no locale, no catalog, no guess.
"""


def writer(type_oid: int, types: Mapping[int, Type]) -> Writer:
    """Return what writes the text of a type's values in binary format; it raises one of ``CANNOT`` where nothing does.

    Args:
        type_oid: The type's OID.
        types: The Type messages before the Relation, by OID.
    """
    oid = base_oid(type_oid, types)
    if oid < FIRST_USER_OID:
        return TEXTS.get(BUILTIN_TYPES[oid].name, _refuse) if oid in BUILTIN_TYPES else _refuse
    name = types[oid].name if oid in types else None
    return partial(composites.user_text, name, lambda part: writer(part, types))


def _refuse(data: bytes) -> str:
    raise ValueError("only its server knows its text")
