"""What a capture tells Prometheus: read from the latest report whenever somebody asks."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pgoutput_construct.cli.meter import Meter

__all__ = ["CaptureCollector"]

_PREFIX: Final = "pgoutput_capture_"

_TOTALS: Final = {
    "messages": ("rows", "Messages that are durable in the log."),
    "payload_bytes": ("payload_bytes", "Bytes of messages received into the log."),
    "transactions": ("transactions", "Committed transactions received completely."),
    "segments": ("segments", "Segments published."),
    "reconnects": ("reconnects", "Attempts to connect again."),
    "dropped_transactions": ("dropped", "Transactions that the server sent again and the log had."),
}
"""Counters: the field of CaptureProgress that each is, and what it says."""

_GAUGES: Final = {
    "complete_lsn": ("complete_lsn", "Everything that the server sends before this WAL position was received."),
    "confirmed_lsn": ("confirmed_lsn", "Everything before this WAL position is durable and confirmed to the server."),
    "open_transactions": ("open_transactions", "Transactions in the log that have not ended."),
}

_WAL_STATUS: Final = ("reserved", "extended", "unreserved", "lost")
"""pg_replication_slots.wal_status (PostgreSQL documentation, section "pg_replication_slots")."""


class CaptureCollector(Collector):
    """The metrics of the capture of a slot."""

    def __init__(self, slot: str, meter: Meter) -> None:
        """``meter`` is fed by the capture."""
        self.slot = slot
        self.meter = meter

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        progress, speed = self.meter.progress, self.meter.speed()
        for name, (field, text) in _TOTALS.items():
            yield self._counter(name, text, getattr(progress, field))
        for name, (field, text) in _GAUGES.items():
            yield self._gauge(name, text, getattr(progress, field))
        yield self._gauge("server_lsn", "The end of the server's WAL when it was last asked.", self.meter.server_lsn)
        yield self._gauge("lag_bytes", "WAL that is not yet durable in the log.", speed.lag_bytes)
        yield self._gauge("lag_seconds", "How long the oldest of that WAL has been missing.", speed.lag_seconds)
        yield from self._slot()

    def _slot(self) -> Iterator[Metric]:
        health = self.meter.progress.health
        yield self._gauge("up", "1 while the slot is being read, else 0.", self.meter.progress.connected)
        if health is None:
            return
        if health.retained_bytes is not None:
            yield self._gauge("slot_retained_bytes", "WAL that the server keeps for the slot.", health.retained_bytes)
        if health.safe_wal_size is not None:
            text = "WAL that may still be written before the slot can be lost (max_slot_wal_keep_size)."
            yield self._gauge("slot_safe_wal_bytes", text, health.safe_wal_size)
        status = GaugeMetricFamily(
            _PREFIX + "slot_wal_status", "1 for the slot's wal_status.", labels=["slot", "status"]
        )
        for known in _WAL_STATUS:
            status.add_metric([self.slot, known], known == health.wal_status)
        yield status

    def _counter(self, name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(_PREFIX + name, text, labels=["slot"])
        family.add_metric([self.slot], value)
        return family

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(_PREFIX + name, text, labels=["slot"])
        family.add_metric([self.slot], value)
        return family
