"""Converts the values of one column one by one: to Python objects for its Arrow type, or to PostgreSQL's text.

The slow path: every value that the kernels leave comes here, so this module defines what decoding means.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.arrays import binary_elements
from pgoutput_construct.pgtypes.arrow_types import fitted, is_known
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, TYPE_NAMES
from pgoutput_construct.pgtypes.family import CannotHold
from pgoutput_construct.pgtypes.loader import ValueLoader, base_oid, formatted, kind_text
from pgoutput_construct.pgtypes.numbers import single
from pgoutput_construct.pgtypes.type_registry import writer
from pgoutput_construct.pgtypes.value_codec import CODEC_ERRORS, hexadecimal, utf8
from pgoutput_construct.wire.messages import Binary, RelationColumn, Type

__all__ = ["ColumnReader"]

_SINGLES: Final = (TYPE_NAMES["float4"].oid, TYPE_NAMES["_float4"].oid)


class ColumnReader:
    """Converts values of one column of one Relation for one Arrow type, which may be wider than the column's own."""

    def __init__(self, column: RelationColumn, types: Mapping[int, Type], target: pa.DataType) -> None:
        """Prepare the conversion.

        Args:
            column: The column, as the Relation describes it.
            types: The Type messages before the Relation, by OID.
            target: An Arrow type, as ``arrow_type`` or ``unify`` return it.

        Raises:
            PgoutputError: An Arrow type of another kind.
        """
        if not is_known(target):
            remedy = "read it as string, and cast that"
            raise PgoutputError(f"the column {column.name!r} cannot be read as Arrow type {target}: {remedy}")
        self.name = column.name
        self._oid = base_oid(column.type_oid, types)
        self._target = target
        self._types = types
        self._load = self._list if pa.types.is_list(target) else self._scalar
        self._is_single = self._oid in _SINGLES

    @cached_property
    def _values(self) -> ValueLoader:
        return ValueLoader(self._types)

    def load(self, value: bytes) -> Any:
        """Return a value (bytes for text format, Binary for binary) for the Arrow type; raise CannotHold."""
        plain = formatted(value)
        if plain is None:
            raise CannotHold  # a format of a later version
        try:
            loaded = self._load(plain)
        except PgoutputError:  # psycopg is missing; also a ValueError, so it must come first
            raise
        except CODEC_ERRORS as error:
            raise CannotHold from error
        return fitted(single(loaded) if self._is_single else loaded, self._target)

    def text(self, value: bytes) -> str:
        """Return PostgreSQL's text, or ``\\x`` and hexadecimal digits if it cannot be determined.

        For a kind of value other than text and binary, the name of the kind precedes the digits.
        """
        plain = formatted(value)
        if plain is None:
            return kind_text(value)
        try:
            return self._text(plain, self._oid)
        except CODEC_ERRORS:
            return hexadecimal(value)

    def _scalar(self, value: bytes) -> Any:
        return self._value(value, self._oid, self._target)

    def _value(self, value: bytes, oid: int, target: pa.DataType) -> Any:
        return self._text(value, oid) if pa.types.is_string(target) else self._values.load(value, oid)

    def _text(self, value: bytes, oid: int) -> str:
        return writer(oid, self._types)(value) if isinstance(value, Binary) else utf8(value)

    def _list(self, value: bytes) -> Any:
        element, target = BUILTIN_TYPES[self._oid].element_oid, self._target.value_type
        if isinstance(value, Binary):
            return [
                None if item is None else self._value(Binary(item), element, target) for item in binary_elements(value)
            ]
        if value.startswith(b"["):  # array_out() writes bounds only if a lower bound is not 1
            raise ValueError("lower bounds other than 1")
        return self._values.load(value, TYPE_NAMES["_text"].oid if pa.types.is_string(target) else self._oid)
