"""The columns that each change has, and names of columns as Spark reads them."""

from typing import Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.columnar import rows_schema

__all__ = [
    "CARRIED",
    "CHANGE",
    "CHANGED",
    "COMPONENT",
    "EPOCH",
    "SHAPE",
    "SIDE",
    "STORED",
    "TURN",
    "WORK",
    "changes_schema",
    "column",
]

CHANGE: Final = (
    *("_op", "_commit_lsn", "_seq", "_commit_time", "_xid", "_before", "_unchanged", "_untyped", "_relation_oid"),
)
"""The columns that a change has besides the table's own."""
SHAPE: Final = "__shape"
"""The column that says which columns a change was described with."""
TURN, SIDE, EPOCH, COMPONENT = "__turn", "__side", "__epoch", "__component"
"""Columns of changes that are replayed: when, one of STORED and so on; which of a change's rows; how many truncates
come before; and what all changes of rows that may be the same have in common."""
STORED, CARRIED, CHANGED = 0, 1, 2
"""Rows before all changes, rows that an earlier part of these changes made, and changes."""
WORK: Final = (SHAPE, TURN, SIDE, EPOCH, COMPONENT, "__left", "__given")
"""Columns that stand next to the table's own while a state is rebuilt."""


def column(*path: str) -> Column:
    """Return a column (or a field of a struct) by its name as it is: dots and backticks mean themselves."""
    return F.col(".".join("`" + name.replace("`", "``") + "`" for name in path))


def changes_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of a table's changes: its columns, then those of ``CHANGE``.

    ``_op`` is one of OPS, such as insert; ``_commit_lsn``, ``_seq`` and ``_xid`` are bigint; ``_commit_time``
    is null outside the years 1 to 9999; ``_untyped`` is what the columns' types cannot hold (pgtypes/arrow_types.py);
    ``_relation_oid`` (bigint) is the table of the change, among those that had its name.
    """
    rows = {field.name: field for field in rows_schema(columns)}
    places = {name: pa.field(name, pa.int64()) for name in ("_commit_lsn", "_seq", "_xid", "_relation_oid")}
    places["_commit_time"] = pa.field("_commit_time", pa.timestamp("us", tz="UTC"))
    return pa.schema([*columns, *((rows | places)[name] for name in CHANGE if name in rows | places)])
