"""In which way changes come into a table: what must be true for each, and the limits between them.

From the cheapest way on, with what it reads and writes:

- **New rows** (``new_rows``): all changes are inserts, or copied rows, of rows that cannot be there. The tasks that
  decode them write the files of the table; nothing is staged, nothing read twice.
- **In Arrow** (``arrow_writes``): small tables, and few changes of larger ones, whose definition stayed the same. What
  files are read and written is decided there, by the limits that a format has (``Sink.few_rows`` and those after it).
- **Appended**: as new rows, but the changes were staged; no row is read.
- **Overwritten** with what the driver makes of it: a table of few rows whose files Spark alone can read or write. To
  plan a merge takes longer.
- **Merged**: the rows before are found by the key that all changes have, and the columns are the same, or the format
  alters them. What is written is about what has changed.
- **As a whole**: everything else. The rows before are replayed with the changes.

The first two are chosen for all tables of a batch together, before and after their changes are staged; the others,
which are jobs of Spark, for each (``staged_ways``). A way may turn out to be none once it has read the changes, or the
rows before: it has written nothing then that counts, and the next one is taken.
"""

from enum import Enum, auto
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._log_view.added_columns import MARK, escaped
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._replicate.batch_plan import TableStep, UpdateMode
from pgoutput_construct.spark._state.change_survey import ChangeSummary
from pgoutput_construct.spark._table_formats.dataset_columns import is_soft
from pgoutput_construct.spark._table_formats.sink import Sink, most_rows
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

NEW_ROWS: Final = 10_000
"""The fewest new rows of a table that are not staged where the small tables of a format are written together
(``Sink.note_commits``), or where a batch has more tables than"""
NEW_TABLES: Final = 32
"""these: each would read the segments of the log again. Twenty loaded tables of Delta Lake, each of ten rows, took 30 s
with jobs of Spark, and take 1.7."""
ARROW_CHANGES: Final = 50_000
"""The most changes of a table that a task takes in Arrow; more are worth a job of their own."""
FEW_ROWS: Final = 2_000
"""The most rows of a table that Spark overwrites, besides those that changes may add, and"""
FEW_BYTES: Final = 1 << 18
"""the most bytes of them in memory: what a commit of Spark writes about itself is as much."""


class SparkNeededError(PgoutputError):
    """A table, or its history, is not written in Arrow; the text says why."""


class Way(Enum):
    """A way in which staged changes come into a table, other than as a whole."""

    APPENDED = auto()
    OVERWRITTEN = auto()
    MERGED = auto()


class Ways(NamedTuple):
    """How staged changes can come into a table."""

    ways: tuple[Way, ...]
    """The ways to try, the cheapest first; where none is one, the table is written as a whole."""
    reason: str
    """Why that is, once all ways were tried; "" where there were no rows before."""


def staged_ways(log: OpenLog, spark: SparkSession, sink: Sink, step: TableStep, summary: ChangeSummary) -> Ways:
    """Return how staged changes can come into the dataset of a step; a history has its own ways."""
    before, found = step.continued, list[Way]()
    if before is None:
        return Ways((), "")
    reason, stay = obstacle(log, spark, sink, step, before), is_soft(step.dataset)
    if sink.naming_of(step.dataset) == sink.naming_of(before) and sink.can_merge(step.dataset):
        # A key that is inserted may be that of a deleted row, which stays.
        if can_append(log, step, before.version, summary) and not (stay and log.table(step.table).key_columns):
            found.append(Way.APPENDED)
        most = most_rows(before, summary.changes)
        if not stay and most is not None and most <= min(FEW_ROWS, sink.few_rows or 0) + summary.changes:
            found.append(Way.OVERWRITTEN)
        if not reason and not (stay and summary.truncates):
            found.append(Way.MERGED)
    return Ways(tuple(found), reason or "it was truncated")


def least_new_rows(sink: Sink, tables: int) -> int:
    """Return how many new rows of a table at least are written by the tasks that decode them.

    Args:
        sink: What writes the format.
        tables: The number of tables in the batch.
    """
    return NEW_ROWS if sink.note_commits or tables > NEW_TABLES else 1


def appends_new_rows(log: OpenLog, sink: Sink, step: TableStep, summary: ChangeSummary) -> bool:
    """Return whether changes are read once and nothing else: their rows are appended, or are the table."""
    if step.dataset.is_history or is_soft(step.dataset):
        return False
    before = step.continued
    if before is None:
        return begins_with_inserts(log, step, summary)
    is_same = sink.can_merge(step.dataset) and sink.naming_of(step.dataset) == sink.naming_of(before)
    return is_same and can_append(log, step, before.version, summary)


def can_append(log: OpenLog, step: TableStep, before: Version, summary: ChangeSummary) -> bool:
    """Return whether the rows of changes are new rows of a version, which so need not be read.

    A key that is inserted may be there already in a table of which the log does not have everything, or whose deletes
    or truncates were not sent: such changes are merged.
    """
    was, shape = before.shape, step.dataset.version.shape
    has_same = was.current == shape.current and not was.widened_in(shape)
    return has_same and _are_new_rows(log, log.table(step.table), summary)


def begins_with_inserts(log: OpenLog, step: TableStep, summary: ChangeSummary) -> bool:
    """Return whether all that the log has of a table are its present rows, as a copy that has not changed since is.

    Rows of other columns than the present ones may lack values, which a replay knows.
    """
    table = log.table(step.table)
    described = {columns for _, columns in table.shapes} | {frozenset(table.base.columns if table.base else ())}
    current, all_columns = (frozenset(names).difference(table.copied) for names in (table.current, table.columns.names))
    is_same = described - {frozenset()} == {current} == {all_columns}
    return is_same and log.is_retained(table) and _are_new_rows(log, table, summary)


def _are_new_rows(log: OpenLog, table: Table, summary: ChangeSummary) -> bool:
    """Return whether changes are inserts of rows that cannot be there, with all of their values.

    An UPDATE of a row that enters a row filter is sent as an INSERT, without its unchanged TOASTed values.
    """
    is_new = not table.key_columns or log.publishes_all
    return summary.inserts_only and not summary.unsent and log.is_whole(table) and is_new


def arrow_obstacle(log: OpenLog, step: TableStep, summary: ChangeSummary) -> str:
    """Return why a dataset is not written in Arrow, as far as is known without reading it; "" if it may be.

    Then few rows have changed, all told apart by one identity, and nothing else.
    """
    table, is_written = log.table(step.table), step.mode is UpdateMode.WRITTEN
    is_marked = any(name.startswith(MARK) for name in table.columns.names if name not in table.copied)
    found = {
        "it is continued with another copy": step.dataset.is_history and is_written and step.before is not None,
        f"{summary.changes:,} changes, more than {ARROW_CHANGES:,}": summary.changes > ARROW_CHANGES,
        "its deleted rows stay, and it is written from scratch": _retains_deleted(step),
        "a column has the name of a metadata column": is_marked,
        "the log no longer has all of it": is_written and not log.is_retained(table),
    }
    if reason := next((reason for reason, is_so in found.items() if is_so), "") or _difference(step):
        return reason
    return "" if _has_one_identity(step, table) else "it has no key or replica identity that all changes have"


def _retains_deleted(step: TableStep) -> bool:
    """Return whether deleted rows of the dataset before stay in one that is written from scratch."""
    return step.continued is None and step.before is not None and is_soft(step.before) and is_soft(step.dataset)


def _has_one_identity(step: TableStep, table: Table) -> bool:
    """Return whether all changes since the rows before, or all in the log, tell rows apart by one identity.

    By the full row they do while the table has no other columns.
    """
    since = None if step.continued is None else step.continued.version.last
    mine = [each for each in table.identities if since is None or each.last > since]
    known = {(each.replica_identity, each.key_columns) for each in mine}
    named = table.columns.names if table.base is None else table.base.columns
    is_full = table.replica_identity == RelationReplicaIdentity.FULL
    own = {frozenset(named), *(columns for _, columns in table.shapes)}
    return (
        (bool(table.key_columns) or is_full)
        and known <= {(table.replica_identity, table.key_columns)}
        and {*table.key_columns} <= {*named}
        and (not is_full or own == {frozenset(table.current)})
    )


def _difference(step: TableStep) -> str:
    """Return what differs between the rows before, if they count, and those to come, as they are described."""
    if step.continued is None:
        return ""
    one, other = step.continued.version.shape, step.dataset.version.shape
    if (one.columns, one.current) != (other.columns, other.current):
        return "columns were added, dropped or altered"
    has_same = (one.key_columns, one.replica_identity) == (other.key_columns, other.replica_identity)
    return "" if has_same else "it has another key or replica identity than before"


def obstacle(log: OpenLog, spark: SparkSession, sink: Sink, step: TableStep, before: Dataset) -> str:
    """Return why changes cannot be merged into a dataset, as far as is known without reading it; "" if they can."""
    was, shape = before.version.shape, step.dataset.version.shape
    if sink.naming_of(step.dataset) != sink.naming_of(before):
        return "its metadata columns have other names"
    if not sink.can_merge(step.dataset):
        return "its format has no merge" if sink.is_replaced else "a former partition column was dropped"
    if not sink.alters and was.current != shape.current:
        return f"columns were added or dropped, which {sink.format} is not altered for"
    if (widened := was.widened_in(shape)) and not sink.can_widen(spark, before):
        return f"columns have wider types, which {sink.format} is not altered for: {', '.join(map(repr, widened))}"
    if step.has_defaults:
        return "columns were added with a default"
    return "" if _has_key(log.table(step.table), before.version) else "its rows have no key that all changes have"


def _has_key(table: Table, version: Version) -> bool:
    """Return whether the rows of a version can be found by the key with which all later changes are described."""
    keys = {tuple(each.key_columns) for each in table.identities if each.last > version.last}
    return (
        table.replica_identity != RelationReplicaIdentity.FULL
        and bool(table.key_columns)
        and set(table.key_columns) <= set(table.current)  # DROP COLUMN drops the key too, and sends no message
        and keys <= {table.key_columns}
        and tuple(map(escaped, version.shape.key_columns)) == table.key_columns
    )
