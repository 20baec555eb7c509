"""PostgreSQL's text of values in Spark: what the output function of a type writes under ``SESSION_SETTINGS``.

The only place that says how a typed column is written. The session's own settings (its time zone, how it casts) make no
difference.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.pgtypes.float_bits import float_bits, lists_of_float_bits
from pgoutput_construct.pgtypes.float_texts import float_texts, lists_of_float_texts

__all__ = ["BITS", "TEXTS", "Floats", "array_text", "is_plain", "output_text", "quoted"]

_NEEDS_QUOTES: Final = r'\A\z|\A(?i:null)\z|["\\{},\s]'
"""Which elements array_out() puts into quotes. Not $: in Java it also matches before a line separator at the end."""
_NEVER_QUOTED: Final = (T.BooleanType, T.IntegralType, T.FractionalType, T.DateType)
"""Whose texts array_out() writes as they are."""


@dataclass(frozen=True)
class Floats:
    """How floating-point numbers are written; each function takes and returns an Arrow array."""

    of_values: Callable[..., object]
    of_lists: Callable[..., object]

    # Made where they are used: they are others with Spark Connect.
    def text(self, value: Column) -> Column:
        """Return the text of a number."""
        return F.arrow_udf(self.of_values, T.StringType())(value)

    def texts(self, value: Column) -> Column:
        """Return the texts of a list of numbers."""
        return F.arrow_udf(self.of_lists, T.ArrayType(T.StringType()))(value)


TEXTS: Final = Floats(float_texts, lists_of_float_texts)
"""As PostgreSQL writes them."""
BITS: Final = Floats(float_bits, lists_of_float_bits)
"""As columnar/canonical.py has them."""


def output_text(value: Column, kind: T.DataType, floats: Floats = TEXTS) -> Column:
    """Return the text of a value of a type; null for NULL."""
    if isinstance(kind, T.ArrayType):
        if isinstance(kind.elementType, T.FloatType | T.DoubleType):
            return array_text(floats.texts(value))
        return array_text(
            F.transform(value, lambda item: quoted(output_text(item, kind.elementType), kind.elementType))
        )
    if isinstance(kind, T.FloatType | T.DoubleType):
        return floats.text(value)
    if isinstance(kind, T.DecimalType):
        return _decimal(value, kind.scale)
    return _FORMS.get(type(kind), _cast)(value)


def quoted(text: Column, kind: T.DataType = T.StringType()) -> Column:  # noqa: B008 - it has no state
    """Return the text of an element as array_out() writes it; NULL stays null."""
    if is_plain(kind):
        return text
    escaped = F.regexp_replace(text, r'(["\\])', r"\\$1")
    return F.when(text.rlike(_NEEDS_QUOTES), F.concat(F.lit('"'), escaped, F.lit('"'))).otherwise(text)


def is_plain(kind: T.DataType) -> bool:
    """Return whether no text of a type needs quotes as an element."""
    return isinstance(kind, _NEVER_QUOTED)


def array_text(elements: Column) -> Column:
    """Return the text of an array, given its elements, in quotes where they need them."""
    return F.concat(F.lit("{"), F.array_join(elements, ",", "NULL"), F.lit("}"))


def _cast(value: Column) -> Column:
    return value.cast("string")


def _decimal(value: Column, scale: int) -> Column:
    """A decimal without an exponent, which Spark writes for those near zero unless the session casts as ANSI says."""
    text = _cast(value)
    digits = F.regexp_replace(text, r"E.*\z|[-.]", "")
    sign = F.when(text.startswith("-"), "-").otherwise("")
    near_zero = F.concat(sign, F.lit("0."), F.lpad(digits, scale, "0"))
    return F.when(text.contains("E"), near_zero).otherwise(text)


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


_FORMS: Final[Mapping[type[T.DataType], Callable[[Column], Column]]] = {
    T.BooleanType: _boolean,
    T.BinaryType: _bytes,
    T.TimestampType: _moment,
}
"""By type; a cast to string gives PostgreSQL's text of all others."""
