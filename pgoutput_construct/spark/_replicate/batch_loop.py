"""``replicate``: bring the tables of a warehouse up to a change log, batch after batch, once or following the log."""

import logging
import sys
import time
import warnings
from collections.abc import Callable, Collection
from typing import Final

from pyspark.sql import SparkSession

from pgoutput_construct._keywords import takes_fields
from pgoutput_construct.changelog._facts.completeness import IncompleteTableWarning, Lack, lacks_of
from pgoutput_construct.changelog._index.log_index import LogPoint
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.timeline import point_at
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.spark._open_log import open_log
from pgoutput_construct.spark._own_session import active_session, own_session
from pgoutput_construct.spark._replicate.batch_plan import Reporter
from pgoutput_construct.spark._replicate.maintenance import MOST_BETWEEN, Maintenance, TableMaintenance
from pgoutput_construct.spark._replicate.replicate_options import ReplicateOptions, has_begun
from pgoutput_construct.spark._replicate.table_batches import Batch, WarehouseTables
from pgoutput_construct.spark._replicate.troubles import combined_error
from pgoutput_construct.spark._source.micro_batches import Limits, latest_seq, next_seq
from pgoutput_construct.spark.formats import check_format
from pgoutput_construct.wire import Lsn, Timestamp

_TICK: Final = 0.2
"""Seconds between two looks for a log, and at ``stop``."""
_LOG: Final = logging.getLogger("pgoutput_construct")
_LEAST_INTERVAL: Final = 0.01


@takes_fields(ReplicateOptions)
def replicate(spark: SparkSession, options: ReplicateOptions) -> Batch | None:
    """Bring the tables of a warehouse up to a change log, and keep them up to date unless ``once``.

    Each table is a dataset ``schema.table`` (``directory_name``) of the columns that it has, ``_untyped``,
    ``_commit_lsn`` and ``_seq``. Every batch brings all tables to one seq of the log; readers see a table before or
    after a batch, never between. A table that fails stays as it was (see ``Batch.troubled``), while the others are
    brought up to date; later batches retry it, after pauses that grow; with ``once`` the last batch retries each. The
    seq is written with the data, so that the next call completes an interrupted batch, and nothing is applied twice.
    The dataset of a renamed table moves, that of a dropped one is removed. Warns (IncompleteTableWarning) of tables
    that the log does not have completely.

    Args:
        spark: The session; for Delta Lake and Iceberg as ``spark_session(into=...)`` makes it. What runs in it has
            settings of its own: of this one's count catalogs, resources, and those of Hadoop and Delta Lake.
        options: The log, the warehouse, and all else, as positional or keyword arguments: see ``ReplicateOptions``.

    Returns:
        The last batch; None if it stopped before the log had begun.

    Raises:
        ChangeLogError: The log is damaged, or not that of the tables; ``tables`` or ``resync`` has a name that it
            lacks; with ``once``, a table failed (``Batch.troubled``), such as one that the log does not have
            completely, or of which a row that does not exist is changed. Tables that it does not name are up to date.
        PgoutputError: The warehouse is of another format or prefix, another process writes into it, the session lacks
            jars or is one of Spark Connect, or the tables are later than ``as_of``.
    """
    own = own_session(spark, "replicate")
    check_format(own, options.into)
    warehouse = options.check()
    if not _await_log(options):
        return None
    warehouse.store.prepare()
    with active_session(own), warehouse.store.lock("replicate") as lock:
        return _Run(own, options, warehouse, lock.check).run()


class _Run:
    """A call of ``replicate``, which holds the lock of the warehouse."""

    def __init__(
        self, spark: SparkSession, options: ReplicateOptions, warehouse: Warehouse, check: Callable[[], None]
    ) -> None:
        """Read the notes of the warehouse; ``check`` raises PgoutputError if another process has its lock now."""
        self._spark, self._options, self._check = spark, options, check
        self._types = options.layout_in(warehouse).types
        sink = options.sink_of(warehouse)
        self._reporter = Reporter(options.on_progress, options.batch_bytes)
        self._tables = WarehouseTables(spark, sink, options, self._reporter)
        sink.prepare(spark)
        every = 1 if options.once else options.maintain_every
        step = Maintenance(spark, sink, options.retention, check, MOST_BETWEEN, self._tables.known.take)
        self._maintenance = TableMaintenance(step, options.on_maintenance, every)
        # What was replaced before is removed in its time.
        self._maintenance.count(() if options.once else self._tables.known.datasets, 0)
        self._log = ChangeLog(options.log)
        self._tables.attach(self._log, options.adopt)
        self._warned = set[Lack]()
        self._last: Batch | None = None

    def run(self) -> Batch | None:
        """Bring the tables to where they are to be, and follow the log unless ``once``; return the last batch."""
        options = self._options
        last = self._advance_to(*_target(self._log, options.as_of, self._tables, options.once))
        if not options.once:
            self._follow(last.seq)
        while options.is_maintained and not options.stop() and self._maintenance.maintain_one():
            self._check()
        if options.once and last.troubled:
            raise combined_error(last.troubled)
        return self._last

    def _advance_to(self, target: int, point: LogPoint | None = None) -> Batch:
        """Bring the tables up to a seq of the log, or to a point, in batches within the limits."""
        options, limits = self._options, Limits(self._options.batch_transactions, self._options.batch_bytes)
        while True:
            self._check()
            self._log, self._reporter.target = ChangeLog(options.log, self._log), target
            after, least = self._last.seq if self._last else self._tables.applied, self._tables.least_seq
            end = _batch_end(self._log, after, least, target, limits)
            lacking = {lack.relation_oid for lack in lacks_of(self._log.index)} if end < target else None
            at = point if point and end >= target else LogPoint(end)
            opened = open_log(self._spark, options.log, at, self._types, self._log)
            self._last = batch = self._tables.apply(opened, lacking, tries_all=options.once and end >= target)
            self._maintenance.count(self._tables.known.written)
            self._warn(batch.lacks)
            options.on_batch(batch)
            if end >= target or options.stop():
                return batch

    def _follow(self, after: int) -> None:
        """Bring the tables up to the last commit or event of the log whenever that is a later one, until ``stop``."""
        options = self._options
        store, files, known, due = open_store(options.log), dict[str, int](), None, time.monotonic()
        while not options.stop():
            if time.monotonic() >= due:
                if (there := store.files()) != files:  # else the log has not changed
                    files, known = there, ChangeLog(store, known)
                    if (latest := latest_seq(known.index, after)) > after:
                        self._advance_to(latest)
                        after = latest
                due = time.monotonic() + max(options.interval, _LEAST_INTERVAL)
            self._between()
            time.sleep(min(_TICK, max(due - time.monotonic(), 0.0)))

    def _between(self) -> None:
        """Retry tables in trouble, or maintain one, while the log has nothing new."""
        if self._tables.troubles.has_due and self._last is not None:
            self._advance_to(self._last.seq)
        elif self._options.is_maintained:
            self._check()
            self._maintenance.maintain_one()

    def _warn(self, lacks: Collection[Lack]) -> None:
        for lack in set(lacks) - self._warned:
            warnings.warn(str(lack), IncompleteTableWarning, stacklevel=_level_of_caller())
        self._warned.update(lacks)


def _level_of_caller() -> int:
    """Return the ``stacklevel``, for the function that calls this one, of the first line outside of the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("pgoutput_construct."):
        frame, level = frame.f_back, level + 1
    return level


def _target(
    log: ChangeLog, as_of: Lsn | Timestamp | LogPoint | None, tables: WarehouseTables, once: bool
) -> tuple[int, LogPoint | None]:
    """Return the seq and point of the tables as of an LSN or time; raise PgoutputError for one that is not possible.

    What is added to the log meanwhile does not count for it.
    """
    if as_of is None:
        return log.index.last_seq, None
    if not once:
        raise PgoutputError("tables that follow a log are at its end: give once=True with as_of")
    if isinstance(as_of, LogPoint):
        point, as_of = as_of, as_of.lsn
    else:
        point = point_at(log.index, as_of)._replace(known=log.index.last_seq)
    if point.seq < log.index.first_seq:
        raise PgoutputError(f"{log.store}: the log begins after {as_of}: choose a later LSN or time")
    if max(tables.applied, tables.least_seq) > point.seq:
        raise PgoutputError(
            f"the tables of the warehouse are later than {as_of} already, and do not go back: choose another "
            "warehouse, or a later LSN or time"
        )
    return point.seq, point


def _batch_end(log: ChangeLog, after: int, least: int, target: int, limits: Limits) -> int:
    """Return the last seq of the batch that begins after one.

    It is within the limits, at least ``least``, at most ``target``; and it is one of a commit or an event: the rows of
    a copy count where the log says that it is complete, so that no copy is split.
    """
    end = next_seq(log, max(after, log.index.first_seq - 1), limits)
    is_last = end <= after or end >= latest_seq(log.index)
    return target if is_last else min(max(end, least), target)


def _await_log(options: ReplicateOptions) -> bool:
    """Wait until the log has a segment, such as while its capture begins; return False if it is time to stop.

    After a wait the options are checked again: what the log has could not be checked before.
    """
    is_said = False
    while not has_begun(options.log):
        if options.stop():
            return False
        if not is_said:
            _LOG.info("%s: waiting for the capture's first segment", open_store(options.log))
            is_said = True
        time.sleep(_TICK)
    if is_said:
        options.check()
    return True
