"""When two values are the same one, by type: for Arrow, for Spark, and for SQL.

PostgreSQL's messages name a row by the values of its replica identity, as the output functions of their types write
them. So two values are the same where PostgreSQL writes the same of both, which is not always where it, Arrow or Spark
take them for equal:

| value | the same | what Arrow and Spark do by themselves |
|---|---|---|
| NULL | as NULL, and as nothing else | Spark: ``<=>`` and GROUP BY do, ``=`` does not |
| 0.0 and -0.0 | no | Spark takes them for one, and hashes them matching |
| NaN | one value, whatever its bits | Spark does; Arrow promises nothing |
| numeric(p, s) | by value: all have the scale s | the same |
| other numerics, interval, json, ... | by PostgreSQL's text: 1.0 is not 1.00 | the same: the text is the value |
| text | by its bytes, whatever its collation | the same |
| bytea | by its bytes | the same |
| date, timestamp | to the day, to the microsecond | the same |
| timestamptz | to the microsecond, in no time zone | the same, as long as it is not written in the session's |
| arrays | by their items and their number | Spark takes [0.0] and [-0.0] for one; Arrow numbers no lists |
| infinity, NaN of numeric(p, s), the year 10000 | by the text in ``_untyped`` | their column is null: see below |

``_RULES`` says the same for programs: one entry a type, with the form of it for each of the three. A type that is not
there is refused.

**A key** is the encoded values of its columns, and the texts that ``_untyped`` has of them: two keys are the same where
both are. In Arrow it is a number, its *code* (``codes_of``, ``combined``), in Spark columns that rows can be grouped,
joined and hashed by (``exact_key``), in SQL a condition on two rows (``same_sql``). Of types that hold all of their
values (``is_always_typed``) there are no such texts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type

from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.errors import EngineError


class _EqualityRule(NamedTuple):
    """How values of a type are told apart; ``kind`` is the type."""

    arrow: Callable[[pa.Array], pa.Array]
    """Values that Arrow's dictionaries tell apart."""
    spark: Callable[[Column, T.DataType], Column]
    """What Spark groups and joins by."""
    restored: Callable[[Column, T.DataType], Column]
    """The value of that."""
    sql: Callable[[str, T.DataType], str]
    """What SQL compares; the same as the value itself where that is enough."""
    always_typed: bool = False
    """Whether the type holds every value, so that ``_untyped`` has no text of one."""


def codes_of(values: pa.Array) -> Numbers:
    """Return a number for each value, from 0 on, the same for the same ones."""
    rule = _rule(from_arrow_type(values.type, prefer_timestamp_ntz=True))
    return _numbered(rule.arrow(values))


def combined(rows: int, codes: Iterable[Numbers]) -> Numbers:
    """Return a number for each of ``rows`` rows, the same for those that have the same in all ``codes``."""
    found = np.zeros(rows, np.int64)
    for each in codes:
        # Codes are fewer than rows, so that the product of two fits.
        found = _numbered(pa.array(found * (each.max(initial=0) + 1) + each))
    return found


def exact(value: Column, kind: T.DataType) -> Column:
    """Return what can be grouped and joined by: the value itself, or a text where Spark takes two values for one."""
    return _rule(kind).spark(value, kind)


def exact_key(value: Callable[[str], Column], kinds: Mapping[str, T.DataType]) -> list[Column]:
    """Return the ``exact`` values of columns, given their types, and what gives the value of a column."""
    return [exact(value(name), kind) for name, kind in kinds.items()]


def restored(value: Column, kind: T.DataType) -> Column:
    """Return the value of what ``exact`` made of it."""
    return _rule(kind).restored(value, kind)


def same_sql(one: str, other: str, kind: T.DataType) -> Iterator[str]:
    """Yield the conditions under which two values of a type, as SQL has them, are the same.

    The first of them compares the values themselves: by it a format of tables finds the files to look into.
    """
    rule = _rule(kind)
    yield f"{one} {'=' if rule.always_typed else '<=>'} {other}"
    if (encoded := rule.sql(one, kind)) != one:
        yield f"{encoded} <=> {rule.sql(other, kind)}"


def is_always_typed(kind: T.DataType) -> bool:
    """Return whether a type holds every value of its columns: ``_untyped`` has no text of them, and a key no NULL."""
    return _rule(kind).always_typed


def _rule(kind: T.DataType) -> _EqualityRule:
    if type(kind) not in _RULES:
        raise EngineError(f"there is no equality rule for the type {kind.simpleString()}: please report this")
    return _RULES[type(kind)]


def _numbered(values: pa.Array) -> Numbers:
    indices = values.dictionary_encode(null_encoding="encode").indices
    return np.asarray(indices.to_numpy(zero_copy_only=False), np.int64)


def _bits(floats: pa.Array) -> pa.Array:
    """Return the bits of floating-point numbers, those of one NaN for all."""
    values = floats.fill_null(0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(values), values.dtype.type(np.nan), values).view(f"i{values.itemsize}")
    return pa.array(bits, mask=floats.is_null().to_numpy(zero_copy_only=False))


def _codes_of_items(lists: pa.Array) -> pa.Array:
    """Return each list as the bytes of the codes of its items."""
    items = codes_of(pc.list_flatten(lists))
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.append(0, np.cumsum(lengths)) * items.itemsize
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(items)]
    found = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)
    return pc.if_else(lists.is_valid(), found, pa.scalar(None, pa.large_binary()))


def _is_by_value(kind: T.DataType) -> bool:
    return _rule(kind).sql("value", kind) == "value"


def _array(value: Column, kind: T.DataType) -> Column:
    item = _item(kind)
    return value if _is_by_value(item) else F.to_json(F.transform(value, lambda each: exact(each, item)))


def _restored_array(value: Column, kind: T.DataType) -> Column:
    item = _item(kind)
    if _is_by_value(item):
        return value
    return F.transform(F.from_json(value, "array<string>"), lambda each: restored(each, item))


def _array_sql(value: str, kind: T.DataType) -> str:
    item = _item(kind)
    return value if _is_by_value(item) else f"to_json(transform({value}, item -> {_rule(item).sql('item', item)}))"


def _item(kind: T.DataType) -> T.DataType:
    assert isinstance(kind, T.ArrayType)
    return kind.elementType


_BY_VALUE: Final = _EqualityRule(
    lambda values: values, lambda value, _: value, lambda value, _: value, lambda value, _: value
)
_ALWAYS_TYPED: Final = _BY_VALUE._replace(always_typed=True)
# Java's text of a floating-point number has its sign and all of its digits, and one NaN.
_BY_TEXT: Final = _EqualityRule(
    _bits,
    lambda value, _: value.cast("string"),
    lambda text, kind: text.cast(kind),
    lambda value, _: f"CAST({value} AS STRING)",
)
_BY_ITEMS: Final = _EqualityRule(_codes_of_items, _array, _restored_array, _array_sql)
_RULES: Final[Mapping[type[T.DataType], _EqualityRule]] = {
    T.BooleanType: _ALWAYS_TYPED,
    T.ShortType: _ALWAYS_TYPED,
    T.IntegerType: _ALWAYS_TYPED,
    T.LongType: _ALWAYS_TYPED,
    T.FloatType: _BY_TEXT,
    T.DoubleType: _BY_TEXT,
    T.DecimalType: _BY_VALUE,
    T.StringType: _BY_VALUE,
    T.BinaryType: _BY_VALUE,
    T.DateType: _BY_VALUE,
    T.TimestampNTZType: _BY_VALUE,
    T.TimestampType: _BY_VALUE,
    T.ArrayType: _BY_ITEMS,
}
"""By type of Spark; those of Arrow are the ones that Spark makes of them."""
