"""The Prometheus metrics of a capture and of a replication, collected from their latest report."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pgoutput_construct.cli._printing import printable, unix_seconds
from pgoutput_construct.cli._progress import Meter
from pgoutput_construct.wire.types import Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.spark._replicate import Batch, MaintenanceReport

__all__ = ["CaptureCollector", "ReplicateCollector"]

_CAPTURE: Final = "pgoutput_capture_"

_TOTALS: Final = {
    "messages": ("rows", "Messages, and copied rows, that are durable in the log."),
    "payload_bytes": ("payload_bytes", "Bytes of messages received into the log, without copied rows."),
    "transactions": ("transactions", "Committed transactions received completely."),
    "segments": ("segments", "Segments written."),
    "reconnects": ("reconnects", "Attempts to reconnect."),
    "dropped_transactions": ("dropped", "Transactions that the server sent again although the log had them."),
}
"""Counters: for each its field of CaptureProgress, and its help text."""

_GAUGES: Final = {
    "complete_lsn": ("complete_lsn", "Everything that the server sends before this LSN was received."),
    "confirmed_lsn": ("confirmed_lsn", "Everything before this LSN is durable and confirmed to the server."),
    "open_transactions": ("open_transactions", "Transactions in the log that have not ended."),
}

_WAL_STATUS: Final = ("reserved", "extended", "unreserved", "lost")
"""pg_replication_slots.wal_status (PostgreSQL documentation, section "pg_replication_slots")."""


class CaptureCollector(Collector):
    """The metrics of the capture of a slot."""

    def __init__(self, slot: str, meter: Meter) -> None:
        """Collect from ``meter``, to which the capture of ``slot`` reports."""
        self.slot = slot
        self.meter = meter

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        progress, speed = self.meter.progress, self.meter.speed()
        for name, (field, text) in _TOTALS.items():
            yield self._counter(name, text, getattr(progress, field))
        for name, (field, text) in _GAUGES.items():
            yield self._gauge(name, text, getattr(progress, field))
        yield self._gauge("server_lsn", "The end of the server's WAL when it was last polled.", self.meter.server_lsn)
        yield self._gauge("lag_bytes", "Bytes of WAL that are not durable in the log yet.", speed.lag_bytes)
        yield self._gauge("lag_seconds", "Seconds since the oldest of that WAL was first seen.", speed.lag_seconds)
        yield from self._slot()

    def _slot(self) -> Iterator[Metric]:
        health = self.meter.progress.health
        yield self._gauge("up", "1 while the slot is being read, else 0.", self.meter.progress.connected)
        if health is None:
            return
        if health.retained_bytes is not None:
            text = "Bytes of WAL that the server retains for the slot."
            yield self._gauge("slot_retained_bytes", text, health.retained_bytes)
        if health.safe_wal_size is not None:
            text = "Bytes of WAL that may be written before the slot may become lost (max_slot_wal_keep_size)."
            yield self._gauge("slot_safe_wal_bytes", text, health.safe_wal_size)
        status = GaugeMetricFamily(
            _CAPTURE + "slot_wal_status", "1 for the slot's wal_status.", labels=["slot", "status"]
        )
        for known in _WAL_STATUS:
            status.add_metric([self.slot, known], known == health.wal_status)
        yield status

    def _counter(self, name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(_CAPTURE + name, text, labels=["slot"])
        family.add_metric([self.slot], value)
        return family

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(_CAPTURE + name, text, labels=["slot"])
        family.add_metric([self.slot], value)
        return family


_REPLICATE: Final = "pgoutput_replicate_"


class ReplicateCollector(Collector):
    """The metrics of the batches of a warehouse; ``report`` may be called during ``collect``."""

    def __init__(self) -> None:
        """Begin before the first batch."""
        self._batches = 0
        self._rows = 0
        self._last: Batch | None = None
        self._maintained: dict[bool, int] = {True: 0, False: 0}
        self._maintenance_seconds = 0.0
        self._step_seconds: dict[str, float] = {}
        self._fresh_tables: dict[str, Timestamp] = {}

    def report_maintenance(self, report: "MaintenanceReport") -> None:
        """Count the maintenance of a table."""
        self._maintained[not report.error] += 1
        self._maintenance_seconds += report.seconds

    def report(self, batch: "Batch") -> None:
        """Count a batch."""
        self._rows += batch.rows
        self._batches += 1
        self._last = batch
        self._step_seconds |= {
            step: self._step_seconds.get(step, 0.0) + seconds for step, seconds in batch.step_seconds.items()
        }
        for table in batch.removed:
            self._fresh_tables.pop(table, None)
        if batch.commit_time is not None:  # tables without changes are as fresh as the others
            known = {*self._fresh_tables, *batch.tables}
            self._fresh_tables |= dict.fromkeys(known - batch.troubled.keys(), batch.commit_time)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        yield CounterMetricFamily(_REPLICATE + "batches", "Batches that were applied to the tables.", self._batches)
        yield CounterMetricFamily(
            _REPLICATE + "rows", "Approximate number of changes and copied rows in these batches.", self._rows
        )
        maintained = CounterMetricFamily(
            _REPLICATE + "maintained_tables", "Tables, and histories, that were maintained.", labels=["succeeded"]
        )
        for succeeded, number in self._maintained.items():
            maintained.add_metric([str(succeeded).lower()], number)
        yield maintained
        yield CounterMetricFamily(
            _REPLICATE + "maintenance_seconds", "Duration of their maintenance in seconds.", self._maintenance_seconds
        )
        steps = CounterMetricFamily(_REPLICATE + "step_seconds", "Duration of the steps of batches.", labels=["step"])
        for step, seconds in self._step_seconds.items():
            steps.add_metric([step], seconds)
        yield steps
        batch = self._last
        if batch is None:
            return
        yield GaugeMetricFamily(
            _REPLICATE + "applied_seq",
            "All tables without an error include every transaction that ended up to this seq.",
            batch.seq,
        )
        yield GaugeMetricFamily(
            _REPLICATE + "applied_lsn", "The LSN of the last commit that was applied.", batch.commit_lsn or 0
        )
        if batch.commit_time is not None:
            yield from _stage_lags(batch, batch.commit_time)
            yield GaugeMetricFamily(
                _REPLICATE + "applied_commit_timestamp_seconds",
                "When that commit was made, by the server's clock, in seconds since 1970.",
                unix_seconds(batch.commit_time),
            )
        fresh = GaugeMetricFamily(
            _REPLICATE + "table_applied_commit_timestamp_seconds",
            "When the last commit was made up to which the table has everything.",
            labels=["table"],
        )
        for table, time in self._fresh_tables.items():
            fresh.add_metric([printable(table)], unix_seconds(time))
        yield fresh
        yield GaugeMetricFamily(_REPLICATE + "batch_seconds", "Duration of the last batch in seconds.", batch.seconds)
        troubled = GaugeMetricFamily(
            _REPLICATE + "table_troubled",
            "1 for a table that could not be updated, with the class of the error.",
            labels=["table", "reason"],
        )
        for table, kind in batch.trouble_kinds.items():
            troubled.add_metric([printable(table), kind], 1)
        yield troubled
        yield GaugeMetricFamily(
            _REPLICATE + "troubled_tables", "Tables that could not be updated.", len(batch.trouble_kinds)
        )


def _stage_lags(batch: "Batch", commit_time: Timestamp) -> Iterator[Metric]:
    """Yield how long after its commit the last transaction of a batch had reached each stage."""
    seen, steps = batch.began - unix_seconds(commit_time), batch.step_seconds
    lags = {"seen": seen, "staged": seen + steps.get("stage", 0.0), "visible": seen + batch.seconds}
    found = GaugeMetricFamily(
        _REPLICATE + "lag_seconds", "Time from the last applied commit until it reached a stage.", labels=["stage"]
    )
    for stage, lag in lags.items():
        found.add_metric([stage], max(0.0, lag))
    yield found
