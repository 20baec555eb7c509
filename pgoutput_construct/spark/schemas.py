"""The columns that each change has, and names of columns as Spark reads them."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

__all__ = ["CHANGE", "SHAPE", "WORK", "column"]

CHANGE: Final = ("_op", "_commit_lsn", "_seq", "_commit_time", "_xid", "_before", "_unchanged", "_untyped")
"""The columns that a change has besides the table's own."""
SHAPE: Final = "__shape"
"""The column that says which columns a change was described with."""
WORK: Final = (SHAPE, "__left", "__came", "__hash", "__given")
"""Columns that stand beside the table's own while a state is rebuilt."""


def column(*path: str) -> Column:
    """Return a column (or a field of a struct) by its name as it is: dots and backticks mean themselves."""
    return F.col(".".join("`" + name.replace("`", "``") + "`" for name in path))
