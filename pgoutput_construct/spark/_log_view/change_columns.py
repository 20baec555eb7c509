"""What a change of a table looks like in Spark: its columns, its position, its rows.

Next to the table's columns stand those of CHANGE. While changes are replayed there are also those of WORK_COLUMNS.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.columnar import rows_schema
from pgoutput_construct.spark._log_view.replicated_tables import ChangePosition
from pgoutput_construct.stream.rows import OPERATIONS
from pgoutput_construct.wire.messages import Delete, Insert, Truncate

CHANGE: Final = (
    *("_op", "_commit_lsn", "_seq", "_commit_time", "_xid", "_before", "_unchanged", "_untyped", "_relation_oid"),
)
"""The columns that a change has besides the table's own."""
SHAPE: Final = "__shape"
"""The column that says with which columns a change was described: an index in ``shapes_of``."""

TURN, SIDE, EPOCH, COMPONENT = "__turn", "__side", "__epoch", "__component"
"""Columns of replayed changes: their turn (STORED, CARRIED, CHANGED); which rows of the change the event has; how many
truncates come before it; and its component (``replay_tasks``)."""

LINK, ORIGIN, ROOT = "__link", "__origin", "__root"
"""Columns of links (``moved_values``): the link that a change is; the one by which its row came; and the key under
which the row with its values stood before all changes."""

TAKEN, SENT = "__taken", "__sent"
"""What a link takes from the row that it finds, and which of its columns get their values from there."""

STORED, CARRIED, CHANGED = 0, 1, 2
"""Turns: rows before all changes, rows that an earlier part of these changes made, and changes."""

WORK_COLUMNS: Final = (SHAPE, TURN, SIDE, EPOCH, COMPONENT, LINK, ORIGIN, ROOT, TAKEN, SENT, "__left", "__given")
"""Columns that stand next to the table's own while a state is rebuilt."""

INSERT, DELETE, TRUNCATE = (OPERATIONS[cls] for cls in (Insert, Delete, Truncate))

POSITION: Final = ("_commit_lsn", "_seq")
"""The columns that order changes."""
BEFORE_ALL: Final = -1
"""The ``_commit_lsn`` of copied rows while changes are replayed: they come before all changes that count."""


def quoted(name: str) -> str:
    """Return a name as Spark's SQL has it, with dots and backticks taken literally."""
    return "`" + name.replace("`", "``") + "`"


def column(*path: str) -> Column:
    """Return a column (or a field of a struct) by its literal name."""
    return F.col(".".join(map(quoted, path)))


def changes_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of a table's changes: its columns, then those of ``CHANGE``.

    ``_op`` is one of OPS, such as insert; ``_commit_lsn``, ``_seq`` and ``_xid`` are bigint; ``_commit_time``
    is null outside the years 1 to 9999; ``_untyped`` is what the columns' types cannot hold (pgtypes/arrow_types.py);
    ``_relation_oid`` (bigint) is the table of the change, among those that had its name.
    """
    rows = {field.name: field for field in rows_schema(columns)}
    metadata = {name: pa.field(name, pa.int64()) for name in ("_commit_lsn", "_seq", "_xid", "_relation_oid")}
    metadata["_commit_time"] = pa.field("_commit_time", pa.timestamp("us", tz="UTC"))
    return pa.schema([*columns, *((rows | metadata)[name] for name in CHANGE if name in rows | metadata)])


def position() -> Column:
    """Return the position of a change, for comparisons."""
    return F.struct(*POSITION)


def position_at(found: ChangePosition) -> Column:
    """Return a position that ``position()`` can be compared with."""
    commit_lsn, seq = (F.lit(number).cast("bigint") for number in found)
    return F.struct(commit_lsn.alias("_commit_lsn"), seq.alias("_seq"))


@dataclass(frozen=True)
class RowSide:
    """The new row of a change, or the one in ``_before``."""

    prefix: tuple[str, ...] = ()

    def value(self, name: str) -> Column:
        """Return a column of the row, in its type."""
        return column(*self.prefix, name)

    def text(self, name: str) -> Column:
        """Return the text of what the column's type cannot hold; null where it can."""
        return F.col("_untyped")[F.lit(".".join((*self.prefix, name)))]


NEW: Final = RowSide()
BEFORE: Final = RowSide(("_before",))


def is_unsent(name: str) -> Column:
    """Return whether an update did not send a column."""
    return F.coalesce(F.array_contains("_unchanged", name), F.lit(False))


def text_array(parts: Sequence[Column]) -> Column:
    """Return texts as an array; null where all of them are."""
    found = F.array(*parts).cast("array<string>")
    return F.when(F.exists(found, lambda text: text.isNotNull()), found)


def untyped_map(found: Mapping[str, Column]) -> Column:
    """Return the map of the texts that are not null, by column; null for none."""
    if not found:
        return F.lit(None).cast("map<string,string>")
    entries = [part for name, text in found.items() for part in (F.lit(name), text)]
    untyped = F.map_filter(F.create_map(*entries).cast("map<string,string>"), lambda _, text: text.isNotNull())
    return F.when(F.coalesce(*found.values()).isNotNull(), untyped)


def merge_untyped(*maps: Column) -> Column:
    """Return maps such as ``_untyped``, any of which may be null, as one; null for none."""
    nothing = F.create_map().cast("map<string,string>")
    both = F.map_concat(*(F.coalesce(each, nothing) for each in maps))
    return F.when(F.size(both) > 0, both)
