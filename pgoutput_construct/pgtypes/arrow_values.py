"""One column's values, from the wire to what its Arrow type holds; or a refusal, and PostgreSQL's text."""

import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import cached_property
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, TYPE_NAMES
from pgoutput_construct.pgtypes.form import CANNOT, hexadecimal, utf8
from pgoutput_construct.pgtypes.loader import ValueLoader, base_oid, formatted, kind_text, pieces
from pgoutput_construct.pgtypes.own import writer
from pgoutput_construct.wire.messages import Binary, RelationColumn, Type

__all__ = ["CannotHold", "ColumnReader", "holds"]

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


class CannotHold(Exception):  # noqa: N818 - no error: the value goes elsewhere
    """A value that the column's Arrow type cannot hold."""


def _is_decimal(value: Any, target: pa.DataType) -> bool:
    if not isinstance(value, Decimal) or not value.is_finite():
        return False
    # numeric's scale is how it is written; zeros at its end are no part of its value.
    exponent = value.normalize(_EXACT).as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent <= target.scale and (not value or value.adjusted() < target.precision - target.scale)


def _is_integer(value: Any, target: pa.DataType) -> bool:
    return type(value) is int and -(1 << target.bit_width - 1) <= value < 1 << target.bit_width - 1


def _is_moment(value: datetime, target: pa.DataType) -> bool:
    try:
        return bool(value.tzinfo) == bool(target.tz) and (not target.tz or bool(value.astimezone(UTC)))
    except OverflowError:  # in UTC it is outside of the years 1 to 9999
        return False


_HOLDS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], bool]], ...]] = (
    (pa.types.is_boolean, lambda value, _: isinstance(value, bool)),
    (pa.types.is_integer, _is_integer),
    (pa.types.is_floating, lambda value, _: isinstance(value, float)),
    (pa.types.is_decimal, _is_decimal),
    (pa.types.is_binary, lambda value, _: isinstance(value, bytes)),
    (pa.types.is_string, lambda value, _: isinstance(value, str)),
    (pa.types.is_date, lambda value, _: type(value) is date),
    (pa.types.is_timestamp, lambda v, target: isinstance(v, datetime) and _is_moment(v, target)),
    (
        pa.types.is_list,
        lambda v, target: isinstance(v, list) and all(holds(item, target.value_type) for item in v),
    ),
)


def _is_known(target: pa.DataType) -> bool:
    inner = not pa.types.is_list(target) or _is_known(target.value_type)
    return inner and any(is_type(target) for is_type, _ in _HOLDS)


def holds(value: Any, target: pa.DataType) -> bool:
    """Tell whether a Python value, as psycopg loads it, goes into an Arrow type as it is; None always does."""
    return value is None or next(check for is_type, check in _HOLDS if is_type(target))(value, target)


class ColumnReader:
    """Reads the values of one column of one Relation into one Arrow type, which may be wider than the column's."""

    def __init__(self, column: RelationColumn, types: Mapping[int, Type], target: pa.DataType) -> None:
        """``types`` are the Type messages before the Relation; ``target`` is as ``arrow_type`` or ``unify`` say.

        Raises PgoutputError for another kind of ``target``.
        """
        if not _is_known(target):
            remedy = "read it into string, and cast that"
            raise PgoutputError(f"the column {column.name!r} cannot be read into Arrow's type {target}: {remedy}")
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
            raise CannotHold  # what its bytes mean is not known
        try:
            loaded = self._load(plain)
        except PgoutputError:  # a ValueError too: psycopg is missing
            raise
        except CANNOT as error:
            raise CannotHold from error
        fitted = _fitted(_single(loaded) if self._is_single else loaded, self._target)
        if not holds(fitted, self._target):
            raise CannotHold
        return _exact(fitted)

    def text(self, value: bytes) -> str:
        """Return PostgreSQL's text, ``\\x`` and hexadecimal digits where it is not known.

        Before those of another kind of value than text and binary stands the kind's name.
        """
        plain = formatted(value)
        if plain is None:
            return kind_text(value)
        try:
            return self._text(plain, self._oid)
        except CANNOT:
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
            return [None if item is None else self._value(Binary(item), element, target) for item in _elements(value)]
        if value.startswith(b"["):  # array_out() writes bounds only when one of them is not 1
            raise ValueError("no list")
        return self._values.load(value, TYPE_NAMES["_text"].oid if pa.types.is_string(target) else self._oid)


_SINGLES: Final = (TYPE_NAMES["float4"].oid, TYPE_NAMES["_float4"].oid)


def _single(value: Any) -> Any:
    """Return a float4, alone or in a list, as PostgreSQL converts it to float8: what it holds, not what is printed."""
    if isinstance(value, list):
        return [_single(item) for item in value]
    try:
        return struct.unpack("f", struct.pack("f", value))[0] if isinstance(value, float) else value
    except OverflowError as error:
        raise CannotHold from error


def _fitted(value: Any, target: pa.DataType) -> Any:
    """Return a value as the kind of object that an Arrow type wants of a wider one, or of one that was chosen."""
    if isinstance(value, list) and pa.types.is_list(target):
        return [_fitted(item, target.value_type) for item in value]
    if type(value) is int and pa.types.is_decimal(target):
        return Decimal(value)
    if type(value) is int and pa.types.is_floating(target):
        return float(value)
    if isinstance(value, Decimal) and pa.types.is_floating(target):
        return _float(value)
    if type(value) is date and pa.types.is_timestamp(target) and not target.tz:
        return datetime.combine(value, time())
    return value.bytes if isinstance(value, UUID) and pa.types.is_binary(target) else value


def _float(value: Decimal) -> float:
    if value.is_snan() or (value.is_finite() and math.isinf(float(value))):
        raise CannotHold
    return float(value)


def _exact(value: Any) -> Any:
    """Return what Arrow takes for a Decimal, alone or in a list: without zeros at its end, which need not fit."""
    if isinstance(value, list):
        return [_exact(item) for item in value]
    return value.normalize(_EXACT) if isinstance(value, Decimal) else value


def _elements(value: bytes) -> list[bytes | None]:
    """Split an array of one dimension, or none, in binary format (array_send()); raise one of CANNOT for others."""
    (dimensions,) = struct.unpack_from("!i", value)
    if not dimensions:
        return []
    size, lower = struct.unpack_from("!ii", value, 12)
    items = list(pieces(value[20:]))
    if dimensions != 1 or lower != 1 or len(items) != size:
        raise ValueError("no list")
    return items
