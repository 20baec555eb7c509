"""``verify``: the tables of a warehouse against their source while both change; exact, without locks, resumable.

The comparison is under one snapshot of the server, several tables each. The log must have everything that the snapshot
sees (``wait_for_log``); the table of the warehouse, with the changes after its version that the snapshot sees, must
then equal the server's. That is not so, and is tried again, if the warehouse has a transaction that the snapshot does
not see (``is_ahead``), or the table was altered, copied or dropped in between (``OutdatedTableError``).
"""

import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pyspark.sql import SparkSession

from pgoutput_construct.changelog._facts.completeness import IncompleteTableWarning
from pgoutput_construct.changelog._notes.confirmation_note import reached_lsn
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.spark._execution import plain_errors, reason_of
from pgoutput_construct.spark._open_log import open_log
from pgoutput_construct.spark._own_session import active_session, own_session
from pgoutput_construct.spark._replicate.column_layout import ColumnLayout
from pgoutput_construct.spark._replicate.column_rules import ColumnRules, RuledLog
from pgoutput_construct.spark._replicate.warehouse_log import check_same_log
from pgoutput_construct.spark._verify.expected_rows import (
    OutdatedTableError,
    WarehouseTable,
    chosen_tables,
    compared_table,
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

_PAUSE: Final = 0.5
"""Seconds between two polls of what is waited for."""
_SNAPSHOT_SECONDS: Final = 60.0
"""For how long tables are begun under one snapshot: while it is held, VACUUM removes no dead rows."""


def verify(
    spark: SparkSession,
    log: Address,
    warehouse: Address,
    source: SnapshotSource,
    tables: Collection[str] | None = None,
    options: VerifyOptions | None = None,
    record: VerificationRecord | None = None,
    masks: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[TableVerdict]:
    """Compare the tables of a warehouse with the server whose changes are in a log, and yield a verdict for each.

    Both may be written to meanwhile: each table is compared under a snapshot of the server, with the rows of the
    warehouse and those changes in the log that the snapshot sees. Nothing is locked. Only parts whose checksums differ
    are read row by row.

    Args:
        spark: The session; for Delta Lake and Iceberg as ``spark_session(into=...)`` makes it.
        log: The change log's address; a capture must be writing it.
        warehouse: The address that ``replicate`` wrote to.
        source: The server: ``postgres.checksums.SourceServer(dsn, publications of the log)``, with its ``binary``.
        tables: Their names (``schema.table``, as SQL writes them), None for all of the warehouse.
        options: How long to wait, and how large parts are.
        record: Where progress is recorded; what it has of an interrupted verification is not compared again.
        masks: Masks of columns, as ``replicate`` takes them, for their salts: those of which the warehouse notes a
            variable or a file are read there. Columns whose salt is not known are not compared
            (``TableVerdict.not_compared``).

    Raises:
        PgoutputError: There is no such warehouse or table; it is of another log; its masks differ; the log does not
            reach the server's position in time. What is wrong with one table is the ``problem`` of its verdict.
    """
    opened = Warehouse(warehouse)
    record = record or VerificationRecord(opened.store)
    progress = opened.existing_progress()
    check_same_log(ChangeLog(log), progress, opened)
    noted, layout, prefix = (
        ColumnRules.from_notes(progress.rules),
        ColumnLayout.from_notes(progress.layout),
        progress.prefix,
    )
    rules = ColumnRules.parse((), masks.items()).known_of(noted, str(opened.store))
    own = own_session(spark, "verify")
    with ExitStack() as stack, plain_errors():
        run = _VerificationRun(
            own, log, warehouse, source, options or VerifyOptions(), record, stack, rules, layout, prefix
        )
        for name in chosen_tables(warehouse, tables):
            with active_session(own):
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
    rules: ColumnRules
    layout: ColumnLayout
    prefix: str
    held: SourceSnapshot | None = None
    log: RuledLog | None = None
    taken: float = 0.0

    def table(self, name: str) -> TableVerdict:
        """Compare one table; retry with a later version, or snapshot, if these do not fit together.

        An error of the table alone is its problem.
        """
        deadline, found = time.monotonic() + self.options.wait, ""
        while True:
            try:
                stored = read_warehouse_table(self.spark, self.warehouse, name, ChangeLog(self.address))
            except Exception as error:
                return TableVerdict(name, problem=reason_of(error))
            try:
                held, log = self._snapshot()  # an error of the server, or the log, is no table's
                return self._under_snapshot(stored, held, log)
            except OutdatedTableError as error:
                found = str(error)
            finally:
                stored.rows.unpersist()
            self._release()
            if time.monotonic() >= deadline:
                remedy = "run pgoutput replicate, then verify again"
                return TableVerdict(name, problem=f"{found} (waited for {self.options.wait:g} seconds): {remedy}")
            self.options.on_wait(f"{name}: {found}; waiting")
            time.sleep(_PAUSE)

    def _under_snapshot(self, stored: WarehouseTable, held: SourceSnapshot, log: RuledLog) -> TableVerdict:
        try:
            return self._compared(stored, held, log)
        except OutdatedTableError:
            raise
        except Exception as error:
            self._release()  # the snapshot may be invalid now
            return TableVerdict(stored.dataset.version.table, problem=reason_of(error))

    def _compared(self, stored: WarehouseTable, held: SourceSnapshot, ruled: RuledLog) -> TableVerdict:
        version, log = stored.dataset.version, ruled.log
        if is_ahead(log, version.seq, held.snapshot):
            # The snapshot is older than the version, or a transaction waits for a synchronous standby.
            raise OutdatedTableError("transactions in the warehouse are not visible on the server yet")
        whole = table_of_dataset(log, stored.dataset)
        compared_columns = compared_table(whole, ruled.masks.get(whole.qualified, {}))
        table = compared_columns.table
        sources = ruled.sources.get(whole.qualified, {})
        found = held.table(table.relation_oid, table.current_columns, compared_columns.masks, sources)
        if isinstance(found, str):
            raise OutdatedTableError(found)
        rows = expected_rows(log, compared_columns, stored, held.snapshot).persist()
        try:
            verdict = TableVerdict(version.table, version.seq, held.snapshot.lsn, not_compared=compared_columns.others)
            compared = TableComparison(found, rows, table.key_columns, self.options, self.record, verdict).run()
            if not compared.equal:
                self._check_present(stored.dataset)
            return compared
        finally:
            rows.unpersist()

    def _check_present(self, dataset: Dataset) -> None:
        """Raise OutdatedTableError if a table was rewritten, which the log may say only after the snapshot."""
        try:
            table_of_dataset(self._opened().log, dataset)
        except OutdatedTableError:
            self.record.discard(dataset.version.table)
            raise

    def _snapshot(self) -> tuple[SourceSnapshot, RuledLog]:
        """Return a snapshot, and the log once it has everything that this sees; the last one unless it is too old."""
        if self.held is None or self.log is None or time.monotonic() - self.taken > _SNAPSHOT_SECONDS:
            self._release()
            self.held, self.taken = self.stack.enter_context(self.source.held(self.rules.salts)), time.monotonic()
            wait_for_log(self.address, self.held.snapshot.lsn, self.options)
            self.log = self._opened()
        return self.held, self.log

    def _opened(self) -> RuledLog:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IncompleteTableWarning)
            ruled = self.rules.applied_to(open_log(self.spark, self.address, types=self.layout.types))
            return ruled._replace(log=self.layout.applied_to(ruled.log, self.prefix))

    def _release(self) -> None:
        self.stack.close()
        self.held = self.log = None


def wait_for_log(address: Address, lsn: Lsn, options: VerifyOptions) -> None:
    """Wait until the log has everything that the server committed before an LSN."""
    deadline = time.monotonic() + options.wait
    while (reached := _reached(ChangeLog(address))) < lsn:
        if time.monotonic() >= deadline:
            raise PgoutputError(
                f"the log is at {reached}, and did not reach the server's snapshot at {lsn} within {options.wait:g} "
                "seconds: is its capture running? Allow more time with --wait"
            )
        options.on_wait(f"the log is at {reached}, waiting for {lsn}")
        time.sleep(_PAUSE)


def _reached(log: ChangeLog) -> Lsn:
    return reached_lsn(log.store, log.segments)
