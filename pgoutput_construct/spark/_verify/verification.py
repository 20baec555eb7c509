"""The tables of a warehouse against their source while it changes: exact, without locks, resumable."""

import time
import warnings
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from pgoutput_construct.changelog._facts.completeness import IncompleteTableWarning
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog._upkeep.note import read_note
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark._execution import plain_errors, reason_of
from pgoutput_construct.spark._open_log import OpenLog, open_log
from pgoutput_construct.spark._replicate.warehouse_log import check_same_log
from pgoutput_construct.spark._replicate.warehouse_notes import Dataset, Warehouse
from pgoutput_construct.spark._verify.expected_rows import (
    OutdatedTableError,
    WarehouseTable,
    chosen_tables,
    expected_rows,
    is_ahead,
    read_warehouse_table,
    table_of_dataset,
)
from pgoutput_construct.spark._verify.table_comparison import (
    SnapshotSource,
    SourceSnapshot,
    TableComparison,
    VerifyOptions,
)
from pgoutput_construct.spark._verify.verdicts import TableVerdict, VerificationRecord
from pgoutput_construct.wire import Lsn

__all__ = ["verify"]

_SNAPSHOT_SECONDS: Final = 60.0
"""For how long tables are begun under one snapshot: while it is held, the server removes no dead row."""


def verify(
    spark: SparkSession,
    log: Address,
    warehouse: Address,
    source: SnapshotSource,
    tables: Collection[str] | None = None,
    options: VerifyOptions | None = None,
    record: VerificationRecord | None = None,
) -> Iterator[TableVerdict]:
    """Compare the tables of a warehouse with the server whose changes are in a log, and yield what was found of each.

    The server may be written to meanwhile, and the warehouse be brought up to date: each table is compared under a
    snapshot of the server, with what the warehouse has of it and the changes in the log that this snapshot sees.
    Nothing is locked. Only parts whose checksums differ are read row by row.

    Args:
        spark: The session; for Delta Lake and Iceberg as ``spark_session(into=...)`` makes it.
        log: The change log's address; a capture must be writing it.
        warehouse: What ``replicate`` wrote.
        source: The server: ``postgres.checksums.SourceServer(dsn, publications of the log)``, with its ``binary``.
        tables: Their names (``schema.table``, as SQL writes them), None for all of the warehouse.
        options: How long to wait, and how large parts are.
        record: Where it is written down how far it has come; what it has of an interrupted one is not compared again.

    Raises:
        PgoutputError: There is no such warehouse or table; it is of another log; the log does not reach the server's
            position in time. What is wrong with one table is the ``problem`` of its verdict.
    """
    place = Warehouse(warehouse)
    record = record or VerificationRecord(place.store)
    check_same_log(ChangeLog(log), place.progress(), place)
    with ExitStack() as stack, plain_errors():
        run = _VerificationRun(spark, log, warehouse, source, options or VerifyOptions(), record, stack)
        for name in chosen_tables(warehouse, tables):
            verdict = record.done(name) or run.table(name)
            if not verdict.problem:
                record.record(verdict)
            yield verdict
    record.close()


@dataclass
class _VerificationRun:
    """One verification; its snapshot serves several tables."""

    spark: SparkSession
    address: Address
    warehouse: Address
    source: SnapshotSource
    options: VerifyOptions
    record: VerificationRecord
    stack: ExitStack
    held: SourceSnapshot | None = None
    log: OpenLog | None = None
    taken: float = 0.0

    def table(self, name: str) -> TableVerdict:
        """Compare one table; try again with a later version, or snapshot, where these do not fit together.

        What is wrong with it alone is its problem.
        """
        deadline, found = time.monotonic() + self.options.wait, ""
        while True:
            try:
                kept = read_warehouse_table(self.spark, self.warehouse, name)
            except Exception as error:
                return TableVerdict(name, problem=reason_of(error))
            try:
                held, log = self._snapshot()  # what is wrong with the server, or the log, is no table's
                return self._under_snapshot(kept, held, log)
            except OutdatedTableError as error:
                found = str(error)
            finally:
                kept.rows.unpersist()
            self._release()
            if time.monotonic() >= deadline:
                remedy = "run pgoutput replicate, then verify again"
                return TableVerdict(name, problem=f"{found} (waited for {self.options.wait:g} seconds): {remedy}")
            self.options.on_wait(f"{name}: {found}; waiting")
            time.sleep(PAUSE)

    def _under_snapshot(self, kept: WarehouseTable, held: SourceSnapshot, log: OpenLog) -> TableVerdict:
        try:
            return self._compared(kept, held, log)
        except OutdatedTableError:
            raise
        except Exception as error:
            self._release()  # the snapshot may be of no use any more
            return TableVerdict(kept.dataset.version.table, problem=reason_of(error))

    def _compared(self, kept: WarehouseTable, held: SourceSnapshot, log: OpenLog) -> TableVerdict:
        version = kept.dataset.version
        if is_ahead(log, version.seq, held.snapshot):
            # Taken before the version was written, or a transaction waits for a synchronous standby.
            raise OutdatedTableError("transactions in the warehouse are not visible on the server yet")
        table = table_of_dataset(log, kept.dataset)
        found = held.table(table.relation_oid, table.current_columns)
        if isinstance(found, str):
            raise OutdatedTableError(found)
        rows = expected_rows(log, table, kept, held.snapshot).persist()
        try:
            verdict = TableVerdict(version.table, version.seq, held.snapshot.lsn)
            compared = TableComparison(found, rows, table.key_columns, self.options, self.record, verdict).run()
            if not compared.equal:
                self._check_present(kept.dataset)
            return compared
        finally:
            rows.unpersist()

    def _check_present(self, dataset: Dataset) -> None:
        """Raise BehindError where a table was rewritten: that may be told after all that the snapshot sees."""
        try:
            table_of_dataset(self._opened(), dataset)
        except OutdatedTableError:
            self.record.discard(dataset.version.table)
            raise

    def _snapshot(self) -> tuple[SourceSnapshot, OpenLog]:
        """Return a snapshot, and the log once it has all that this sees; the last one, where that is not too old."""
        if self.held is None or self.log is None or time.monotonic() - self.taken > _SNAPSHOT_SECONDS:
            self._release()
            self.held, self.taken = self.stack.enter_context(self.source.held()), time.monotonic()
            wait_for_log(self.address, self.held.snapshot.lsn, self.options)
            self.log = self._opened()
        return self.held, self.log

    def _opened(self) -> OpenLog:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IncompleteTableWarning)
            return open_log(self.spark, self.address)

    def _release(self) -> None:
        self.stack.close()
        self.held = self.log = None


PAUSE: Final = 0.5
"""Seconds between two looks at what is waited for."""


def wait_for_log(address: Address, lsn: Lsn, options: VerifyOptions) -> None:
    """Wait until the log has all that the server committed before a position."""
    deadline = time.monotonic() + options.wait
    while (reached := _reached(address)) < lsn:
        if time.monotonic() >= deadline:
            raise PgoutputError(
                f"the log has all up to {reached}, the server's snapshot is at {lsn}, and that was not reached in "
                f"{options.wait:g} seconds: is its capture running? Give it more time with --wait"
            )
        options.on_wait(f"the log is at {reached}, waiting for {lsn}")
        time.sleep(PAUSE)


def _reached(address: Address) -> Lsn:
    # The note first: segments that come between both say more, not less.
    note, log = read_note(open_store(address)), ChangeLog(address)
    return note.reached(log.segments[-1])
