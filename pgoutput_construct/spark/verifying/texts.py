"""The canonical text of values in Spark (columnar/canonical.py), and what is computed of it: digests and checksums."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.columnar.canonical import BUCKET_DIGITS, DIGITS
from pgoutput_construct.columnar.float_bits import float_bits, lists_of_float_bits
from pgoutput_construct.spark.schemas import column

__all__ = ["bucket", "canonical", "checksum", "digest", "quoted"]

_NEEDS_QUOTES: Final = r'\A\z|\A(?i:null)\z|["\\{},\s]'
"""Which elements array_out() puts into quotes. Not $: in Java it also matches before a line separator at the end."""


def canonical(rows: DataFrame, name: str) -> Column:
    """Return the canonical text of a column of rows that have ``_untyped``."""
    return F.coalesce(_text(column(name), rows.schema[name].dataType), F.col("_untyped")[F.lit(name)])


def digest(rows: DataFrame, names: Sequence[str]) -> Column:
    """Return the MD5 digest, as hexadecimal digits, of the text of rows: their columns of these names."""
    elements = [_element(rows, name) for name in names]
    return F.md5(F.encode(_listed(F.array(*elements).cast("array<string>")), "UTF-8"))


def checksum(of: Column) -> tuple[Column, Column, Column]:
    """Return the three numbers of a Checksum as aggregates over digests."""
    first, second = (F.substring(of, 1 + place * DIGITS, DIGITS) for place in (0, 1))
    numbers = [F.sum(F.conv(digits, 16, 10).cast("decimal(20,0)")) for digits in (first, second)]
    return F.count(F.lit(1)), *(F.coalesce(number, F.lit(0)) for number in numbers)


def bucket(of: Column, count: int) -> Column:
    """Return the bucket of each row by its digest."""
    return F.conv(F.substring(of, 32 - BUCKET_DIGITS + 1, BUCKET_DIGITS), 16, 10).cast("int") % count


def quoted(element: Column) -> Column:
    """Return an element as array_out() writes it; NULL stays null."""
    escaped = F.regexp_replace(element, r'(["\\])', r"\\$1")
    return F.when(element.rlike(_NEEDS_QUOTES), F.concat(F.lit('"'), escaped, F.lit('"'))).otherwise(element)


def _listed(elements: Column) -> Column:
    """Return the text of an array, given its elements, in quotes where they need them."""
    return F.concat(F.lit("{"), F.array_join(elements, ",", "NULL"), F.lit("}"))


def _element(rows: DataFrame, name: str) -> Column:
    kind, untyped = rows.schema[name].dataType, quoted(F.col("_untyped")[F.lit(name)])
    text = _text(column(name), kind)
    return F.coalesce(text if isinstance(kind, _NEVER_QUOTED) else quoted(text), untyped)


def _text(value: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.ArrayType):
        if isinstance(kind.elementType, T.FloatType | T.DoubleType):
            return _listed(_lists_of_floats(value))
        return _listed(F.transform(value, lambda item: quoted(_text(item, kind.elementType))))
    return _FORMS.get(type(kind), _cast)(value)


def _cast(value: Column) -> Column:
    return value.cast("string")


def _boolean(value: Column) -> Column:
    return F.when(value, "t").when(~value, "f")


def _moment(value: Column) -> Column:
    """A moment in UTC, whatever the session's time zone is: without a clock that is set back."""
    seconds = F.unix_micros(value).cast("decimal(20,0)") * F.lit("0.000001").cast("decimal(6,6)")
    nothing = F.lit(0)
    since = F.make_dt_interval(nothing, nothing, nothing, seconds.cast("decimal(18,6)"))
    return F.concat((F.lit("1970-01-01").cast("timestamp_ntz") + since).cast("string"), F.lit("+00"))


def _bytes(value: Column) -> Column:
    return F.concat(F.lit("\\x"), F.lower(F.hex(value)))


def _floats(value: Column) -> Column:
    # Made where it is used: it is another one with Spark Connect.
    return F.arrow_udf(float_bits, T.StringType())(value)


def _lists_of_floats(value: Column) -> Column:
    return F.arrow_udf(lists_of_float_bits, T.ArrayType(T.StringType()))(value)


_FORMS: Final[Mapping[type[T.DataType], Callable[[Column], Column]]] = {
    T.BooleanType: _boolean,
    T.FloatType: _floats,
    T.DoubleType: _floats,
    T.BinaryType: _bytes,
    T.TimestampType: _moment,
}
"""By type; a cast to string gives PostgreSQL's text of all others."""

_NEVER_QUOTED: Final = (T.BooleanType, T.IntegralType, T.FractionalType, T.DateType)
"""Whose texts array_out() writes as they are."""
