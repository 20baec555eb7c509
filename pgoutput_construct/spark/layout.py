"""How the rows of a table with a key are told apart and put together in Spark, whatever its columns are called."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.spark.change_frames import NEW, Survey, texts, untyped_of
from pgoutput_construct.spark.equality import exact_key, restored

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """A table with a key. In frames its columns have numbers: ``k0``, ``k1`` are the key, ``c0``, ``c1`` all columns.

    ``kt``, part of the key, has texts of what the key's columns cannot hold; it is there only where it is needed.
    """

    names: tuple[str, ...]
    """The columns."""
    keys: tuple[str, ...]
    """Those that tell rows apart."""
    kinds: Mapping[str, T.DataType]
    """Types, by column."""
    unsent: tuple[str, ...]
    """The columns that some update left out; none of the key."""
    has_texts: bool
    """Whether ``_untyped`` has anything."""
    has_unsent_keys: bool
    """Whether some update left out a column of the key, which ``_before`` has then."""

    @classmethod
    def of(cls, changes: DataFrame, keys: Sequence[str], names: Sequence[str], found: Survey) -> "Layout":
        """Return that of a table which now has the columns ``names``."""
        kinds = {field.name: field.dataType for field in changes.schema}
        unsent = tuple(name for name in names if name in found.unsent and name not in keys)
        return cls(tuple(names), tuple(keys), kinds, unsent, found.untyped, not found.unsent.isdisjoint(keys))

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The columns of frames that are the key."""
        return (*(f"k{number}" for number in range(len(self.keys))), *(["kt"] if self.has_texts else []))

    @property
    def key_kinds(self) -> dict[str, T.DataType]:
        """The types of the key's columns."""
        return {name: self.kinds[name] for name in self.keys}

    @cached_property
    def sent(self) -> tuple[str, ...]:
        """The columns that all changes have sent, but the key."""
        return tuple(name for name in self.names if name not in self.keys and name not in self.unsent)

    def place(self, name: str) -> str:
        """Return what a column is called in frames."""
        return f"c{self.names.index(name)}"

    def key_of(self, value: Callable[[str], Column], text: Callable[[str], Column]) -> list[Column]:
        """Return the key of a row, given its values and texts, by column."""
        parts = exact_key(value, self.key_kinds)
        if self.has_texts:
            parts.append(self._texts(text, self.keys))
        return [part.alias(name) for part, name in zip(parts, self.key, strict=True)]

    @staticmethod
    def _texts(text: Callable[[str], Column], names: Sequence[str]) -> Column:
        return F.when(F.col("_untyped").isNotNull(), texts([text(name) for name in names]))

    def key_struct(self) -> Column:
        """Return the key of a frame as a struct."""
        return F.struct(*self.key)

    def key_values(self, prefix: str = "") -> dict[str, Column]:
        """Return the values of the key of a frame, or of a struct in it, by the names of their columns."""
        found = zip(self.keys, self.key, strict=False)
        return {name: restored(F.col(prefix + place), self.kinds[name]) for name, place in found}

    def row_of(self) -> Column:
        """Return the values of the columns ``sent``, and their texts where ``_untyped`` has anything."""
        values = [NEW.value(name).alias(self.place(name)) for name in self.sent]
        # Not as a map: Spark says of no two maps which is the greater one.
        said = [self._texts(NEW.text, self.sent).alias("_texts")] if self.has_texts else []
        return F.struct(*values, *said, F.lit(True).alias("_is"))

    def pair_of(self, name: str) -> list[Column]:
        """Return a value and its text, for what is carried from one row to another."""
        text = NEW.text(name) if self.has_texts else F.lit(None).cast("string")
        return [NEW.value(name).alias("v"), text.alias("t")]

    def values(self) -> list[Column]:
        """Return the columns of rows, by their own names, out of key, ``_row`` and the pairs of ``unsent``."""
        return [self._value(name).alias(name) for name in self.names]

    def _value(self, name: str) -> Column:
        if name in self.keys:
            return self.key_values()[name]
        return F.col(f"{self.place(name)}.v" if name in self.unsent else f"_row.{self.place(name)}")

    def untyped(self) -> Column:
        """Return ``_untyped`` of these rows."""
        return untyped_of({name: self._kept_text(name) for name in self.names} if self.has_texts else {})

    def _kept_text(self, name: str) -> Column:
        if name in self.keys:
            return F.col("kt")[self.keys.index(name)]
        return F.col(f"{self.place(name)}.t") if name in self.unsent else F.col("_row._texts")[self.sent.index(name)]
