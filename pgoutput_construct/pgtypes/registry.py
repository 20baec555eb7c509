"""The table of types: how the values of each are written, in text and in binary format."""

from collections.abc import Callable, Mapping
from typing import Final

from pgoutput_construct.pgtypes.arrays import array_form
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.pgtypes.form import Form, Writer
from pgoutput_construct.pgtypes.geometry import GEOMETRY
from pgoutput_construct.pgtypes.moments import MOMENTS
from pgoutput_construct.pgtypes.nested import multirange_form, range_form
from pgoutput_construct.pgtypes.numbers import NUMBERS
from pgoutput_construct.pgtypes.scalars import SCALARS
from pgoutput_construct.pgtypes.searches import SEARCHES

__all__ = ["FORMS", "TEXTS"]


def _over(make: Callable[[Form], Form], parts: Mapping[str, Form]) -> dict[str, Form]:
    """Return the forms of the types that are made of ``parts``: ranges of their bounds, multiranges of ranges."""
    subtypes = {row.name: BUILTIN_TYPES[row.subtype_oid].name for row in BUILTIN_TYPES.values() if row.subtype_oid}
    return {name: make(parts[subtype]) for name, subtype in subtypes.items() if subtype in parts}


def _arrays(elements: Mapping[str, Form]) -> dict[str, Form]:
    arrays = ((row, BUILTIN_TYPES[row.element_oid].name) for row in BUILTIN_TYPES.values() if row.element_oid)
    return {row.name: array_form(row, elements[element]) for row, element in arrays if element in elements}


_SINGLE: Final = {**SCALARS, **NUMBERS, **MOMENTS, **GEOMETRY, **SEARCHES}
_RANGES: Final = _over(range_form, _SINGLE)
_ELEMENTS: Final = {**_SINGLE, **_RANGES, **_over(multirange_form, _RANGES)}

_KNOWN: Final = {**_ELEMENTS, **_arrays(_ELEMENTS)}
_ALIKE: Final = {row.name: BUILTIN_TYPES[row.binary_like].name for row in BUILTIN_TYPES.values() if row.binary_like}

FORMS: Final[Mapping[str, Form]] = _KNOWN | {name: _KNOWN[like] for name, like in _ALIKE.items() if like in _KNOWN}
"""By name in pg_type: all types that are built in, but those whose text a locale decides (money), or a catalog
(regclass and its like), and those without a send function (aclitem, gtsvector)."""

TEXTS: Final[Mapping[str, Writer]] = {name: form.text for name, form in FORMS.items()}
"""By name in pg_type: bytes of the binary format -> PostgreSQL's text; raises one of ``CANNOT``.

Only what can be written exactly as the server would: no locale, no catalog, no guess.
"""
