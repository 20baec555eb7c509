"""What a table of a warehouse must hold under a snapshot: its present rows, with the changes that the snapshot sees."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog._index.log_index import LogIndex, apart
from pgoutput_construct.changelog._index.planning import commit_stats, committed_transactions, xid_distances
from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar.column_masks import Mask
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.spark._log_view.added_columns import escaped, escaped_table
from pgoutput_construct.spark._log_view.change_columns import column, position, position_at
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._replicate.batch_plan import shape_of
from pgoutput_construct.spark._replicate.column_rules import without_columns
from pgoutput_construct.spark._replicate.staging import masked_changes
from pgoutput_construct.spark._replicate.warehouse_log import check_own
from pgoutput_construct.spark._state.table_state import advance
from pgoutput_construct.spark._table_formats.dataset_columns import unescape_references
from pgoutput_construct.spark._table_formats.sink import Sink
from pgoutput_construct.spark._table_formats.sinks import existing_sink
from pgoutput_construct.spark._verify.part_checksums import TEXTS
from pgoutput_construct.spark.formats import check_format
from pgoutput_construct.stream.identifiers import normal_name
from pgoutput_construct.stream.rows import SNAPSHOT

_XIDS = 2**32


class OutdatedTableError(Exception):
    """A table of the warehouse cannot be compared before it is brought up to date. Never leaves this room."""


def table_of_dataset(log: OpenLog, dataset: Dataset) -> Table:
    """Return the table of a dataset in the log.

    Raises OutdatedTableError if it was altered, copied, rewritten or dropped since, because then changes do not lead to
    its rows; and if it was renamed, because another table may have its name now. Raises another PgoutputError if the
    log's table cannot be read.
    """
    version = dataset.version
    for table in log.opened.tables.values():
        if table.relation_oid == version.oid and not table.dropped:
            if table.qualified != version.table:
                raise OutdatedTableError(
                    f"{version.table} was renamed to {table.qualified} after the warehouse read it"
                )
            was, shape = version.shape, shape_of(table)
            shape = replace(shape, added=was.added, copied=was.copied)
            if was.obstacle_to(shape) or was.widened_in(shape):
                raise OutdatedTableError(f"{version.table} was altered or copied again after the warehouse read it")
            for lack in log.lacks:
                if lack.relation_oid == version.oid and lack.stale_since is not None:
                    raise OutdatedTableError(str(lack))
            return table
    for refused in log.opened.refused.values():
        if refused.relation_oid == version.oid and not refused.dropped:
            raise refused.error
    raise OutdatedTableError(f"{version.table} was dropped after the warehouse read it")


@dataclass(frozen=True)
class WarehouseTable:
    """A table as a warehouse has it."""

    dataset: Dataset
    """The dataset, with the version of the rows."""
    rows: DataFrame
    """Its rows, under the names of replays (``added_columns``); persisted, so that later writes do not change them."""


class ComparedTable(NamedTuple):
    """What of a table can be compared."""

    table: Table
    """The table without other columns."""
    masks: Mapping[str, Mask]
    """The masks of its columns."""
    others: Mapping[str, str]
    """The columns that cannot be compared, and why."""


def compared_table(table: Table, masks: Mapping[str, Mask]) -> ComparedTable:
    """Return what of a table can be compared: columns whose mask has an unknown salt cannot.

    Raises PgoutputError if one of these is in the key, without which changes do not find their rows.

    Args:
        table: The table, as the warehouse has it.
        masks: The masks of columns.
    """
    unknown = {name for name in table.columns.names if name in masks and not masks[name].is_known}
    if in_key := sorted(unknown.intersection(table.key_columns)):
        raise PgoutputError(
            f"{table.qualified}: {', '.join(in_key)} is in its key, and {UNKNOWN_SALT}: give it with --mask (masks=)"
        )
    others = {name: EXCLUDED for name, rule in table.rules.items() if name not in table.columns.names and rule}
    others |= dict.fromkeys(sorted(unknown.intersection(table.current)), UNKNOWN_SALT)
    known = {name: mask for name, mask in masks.items() if name not in unknown}
    return ComparedTable(without_columns(table, {*unknown, *table.copied}), known, others)


EXCLUDED: Final = "excluded"
UNKNOWN_SALT: Final = "masked with a salt that is not known here"


def expected_rows(log: OpenLog, compared: ComparedTable, stored: WarehouseTable, snapshot: Snapshot) -> DataFrame:
    """Return the rows that a table has under a snapshot: its present columns, and TEXTS.

    The log must have everything that the snapshot sees, and the snapshot must see everything that the dataset has
    (``is_ahead``).

    Args:
        log: The log.
        compared: The table.
        stored: Its rows in the warehouse.
        snapshot: The snapshot.
    """
    table, version = compared.table, stored.dataset.version
    inner = escaped_table(table)
    changes = masked_changes(log, inner, version.seq, {table.qualified: compared.masks})
    before = stored.rows.drop(*(escaped(name) for name in (*compared.others, *version.shape.copied)))
    since = changes.where((F.col("_op") != SNAPSHOT) & (position() > position_at(version.last)))
    since = since.where(~_invisible(snapshot))
    rows = advance(before, since, inner, "report")  # missing rows show as differences
    texts = unescape_references(rows, "_untyped")
    own = (column(name).alias(given) for name, given in zip(inner.current, table.current, strict=True))
    return texts.select(*own, F.col("_untyped").alias(TEXTS))


def is_ahead(log: OpenLog, seq: int, snapshot: Snapshot) -> bool:
    """Return whether a snapshot does not see some transaction that ended in the log up to ``seq``.

    Such a transaction waits for a synchronous standby: it is in the WAL, but not visible yet.
    """
    index = log.opened.index
    ended = committed_transactions(index.slice(_first_unseen(index, seq, snapshot)).transactions)
    xids = ended.filter(pc.less_equal(ended["seq"], seq))["xid"].to_numpy()
    return bool((snapshot.invisible(xids) & near_the_end(xids, snapshot.xmax)).any())


def _first_unseen(index: LogIndex, seq: int, snapshot: Snapshot) -> int:
    """Return the index of the first segment that may have transactions, up to a seq, which a snapshot does not see.

    All before the oldest transaction that was in progress are visible.
    """
    numbers = commit_stats(index)
    segments = np.flatnonzero((numbers["commits"] > 0) & (numbers["first_commit"] <= seq))
    if not len(segments):
        return len(index)
    commits = {name: column[segments] for name, column in numbers.items()}
    begins, last = xid_distances(commits), committed_transactions(index.one(int(segments[-1])).transactions)
    xids = last.filter(pc.less_equal(last["seq"], seq))["xid"].to_numpy()
    end = begins[-1] + apart(np.diff(np.append(xids, snapshot.xmax % _XIDS))).sum() - (snapshot.xmax - snapshot.xmin)
    return int(next(iter(segments[begins + commits["most_walk"] >= end].tolist()), len(index)))


def near_the_end(xids: Numbers, xmax: int) -> Flags:
    """Return which xids are fewer than 2**31 before ``xmax``: others only seem to come after it.

    Consecutive transactions of a log are never that far apart.
    """
    steps = apart(np.diff(np.append(xids, xmax % _XIDS)))
    earlier: Flags = np.cumsum(steps[::-1])[::-1] < _XIDS // 2
    return earlier


def _invisible(snapshot: Snapshot) -> Column:
    found = F.pmod(F.col("_xid") - snapshot.xmax % _XIDS, F.lit(_XIDS)) < _XIDS // 2
    return found | F.col("_xid").isin([xid % _XIDS for xid in snapshot.xip]) if snapshot.xip else found


def format_of(warehouse: Address) -> str:
    """Return the format of the tables of a warehouse; raises PgoutputError where there is none."""
    return Warehouse(warehouse).existing_progress().format


def chosen_tables(warehouse: Address, tables: Collection[str] | None = None) -> list[str]:
    """Return tables of a warehouse by name, sorted, None for all; raises PgoutputError for an unknown one.

    Tables with damaged notes are included: ``read_warehouse_table`` raises the error of each.
    """
    format_of(warehouse)
    opened = Warehouse(warehouse)
    datasets, damaged = opened.readable_datasets()
    known = {each.version.table for each in datasets.values() if not each.is_history}
    known |= {each.table for each in map(opened.note_owner, damaged) if not each.is_history}
    if not known:
        raise PgoutputError(f"{opened.store}: the warehouse has no table yet: run pgoutput replicate first")
    chosen = known if tables is None else {each if each in known else normal_name(each) for each in tables}
    if unknown := chosen - known:
        raise PgoutputError(f"{opened.store}: no table {min(unknown)}: it has {', '.join(sorted(known))}")
    return sorted(chosen)


def read_warehouse_table(spark: SparkSession, address: Address, name: str, log: ChangeLog) -> WarehouseTable:
    """Read a table of a warehouse as it is now.

    Raises PgoutputError if it was removed, if its note is damaged, or if its rows are of another log than this one.
    """
    warehouse = Warehouse(address)
    progress = warehouse.existing_progress()
    check_own(log, progress, warehouse.find(name).version)
    check_format(spark, progress.format)
    sink = existing_sink(warehouse, progress)
    sink.prepare(spark)
    while True:
        dataset = warehouse.find(name)
        known = _with_stored_version(spark, sink, dataset)
        rows = sink.read_for_replay(spark, known).persist()
        rows.count()
        if _with_stored_version(spark, sink, dataset) == known:
            return WarehouseTable(known, rows)
        rows.unpersist()


def _with_stored_version(spark: SparkSession, sink: Sink, dataset: Dataset) -> Dataset:
    """Return a dataset with the version that its data have."""
    version = sink.version(spark, dataset)
    return dataset if version is None else replace(dataset, version=replace(version, table=dataset.version.table))
