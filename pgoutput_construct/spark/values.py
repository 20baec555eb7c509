"""Values in Spark that tell rows apart: a column, and its text where the column's type cannot hold the value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.spark.schemas import column

__all__ = ["BEFORE", "NEW", "Side", "exact", "is_exact", "restored", "texts", "untyped_of"]


@dataclass(frozen=True)
class Side:
    """The new row of a change, or the one in ``_before``."""

    prefix: tuple[str, ...] = ()

    def value(self, name: str) -> Column:
        """Return a column of the row, as its type holds it."""
        return column(*self.prefix, name)

    def text(self, name: str) -> Column:
        """Return the text of what the column's type cannot hold, null where it can."""
        return F.col("_untyped")[F.lit(".".join((*self.prefix, name)))]


NEW: Final = Side()
BEFORE: Final = Side(("_before",))


def texts(parts: Sequence[Column]) -> Column:
    """Return texts as an array, null where all of them are."""
    found = F.array(*parts).cast("array<string>")
    return F.when(F.exists(found, lambda text: text.isNotNull()), found)


def untyped_of(found: Mapping[str, Column]) -> Column:
    """Return the map of the texts that are not null, by column; null for none."""
    if not found:
        return F.lit(None).cast("map<string,string>")
    entries = [part for name, text in found.items() for part in (F.lit(name), text)]
    untyped = F.map_filter(F.create_map(*entries).cast("map<string,string>"), lambda _, text: text.isNotNull())
    return F.when(F.coalesce(*found.values()).isNotNull(), untyped)


def exact(value: Column, kind: T.DataType) -> Column:
    """Return what can be grouped and joined by: the value itself; a text where Spark takes -0.0 and 0.0 for one."""
    return value if is_exact(kind) else _written(value, kind)


def restored(value: Column, kind: T.DataType) -> Column:
    """Return the value of what ``exact`` made of it."""
    if is_exact(kind):
        return value
    if isinstance(kind, T.ArrayType):
        return F.transform(F.from_json(value, "array<string>"), lambda item: restored(item, kind.elementType))
    return value.cast(kind)


def is_exact(kind: T.DataType) -> bool:
    """Return whether Spark takes two values of a type for one only where they are."""
    inner = kind.elementType if isinstance(kind, T.ArrayType) else kind
    return not isinstance(inner, T.FloatType | T.DoubleType) if inner is kind else is_exact(inner)


def _written(value: Column, kind: T.DataType) -> Column:
    """Return a text that tells any two values of a type apart."""
    if isinstance(kind, T.ArrayType):
        return F.to_json(F.transform(value, lambda item: _written(item, kind.elementType)))
    return _TEXTS.get(type(kind), _cast)(value)


def _cast(value: Column) -> Column:
    return value.cast("string")


_TEXTS: Final[dict[type[T.DataType], Callable[[Column], Column]]] = {
    T.BinaryType: F.hex,
    # As a number: the session's time zone may write two moments of an autumn night alike.
    T.TimestampType: lambda value: _cast(F.unix_micros(value)),
}
"""Texts that tell any two values apart, where a cast to string would not."""
