"""The values of a change's rows in Spark: a column, and its text where the column's type cannot hold the value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.schemas import column

__all__ = ["BEFORE", "NEW", "Side", "texts", "untyped_of"]


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
