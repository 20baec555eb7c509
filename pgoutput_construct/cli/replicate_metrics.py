"""What a replication tells Prometheus: of its batches, and of the tables in trouble."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pgoutput_construct.cli.words import printable

if TYPE_CHECKING:
    from pgoutput_construct.spark.warehouse import Batch

__all__ = ["ReplicateCollector"]

_PREFIX: Final = "pgoutput_replicate_"


class ReplicateCollector(Collector):
    """The metrics of the batches of a warehouse; ``report`` may be called while it is asked."""

    def __init__(self) -> None:
        """Begin before the first batch."""
        self._batches = 0
        self._rows = 0
        self._last: Batch | None = None

    def report(self, batch: "Batch") -> None:
        """Take in a batch."""
        self._rows += batch.rows
        self._batches += 1
        self._last = batch

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        yield CounterMetricFamily(_PREFIX + "batches", "Batches that were brought into the tables.", self._batches)
        yield CounterMetricFamily(
            _PREFIX + "rows", "About how many changes and copied rows they had for tables and histories.", self._rows
        )
        batch = self._last
        if batch is None:
            return
        yield GaugeMetricFamily(
            _PREFIX + "applied_seq", "The tables that are in no trouble have all that ended by this seq.", batch.seq
        )
        yield GaugeMetricFamily(
            _PREFIX + "applied_lsn", "The WAL position of the last commit by then.", batch.commit_lsn or 0
        )
        yield GaugeMetricFamily(_PREFIX + "batch_seconds", "How long the last batch took.", batch.seconds)
        troubled = GaugeMetricFamily(
            _PREFIX + "table_troubled",
            "1 for a table that could not be brought up to date, with the class of the error.",
            labels=["table", "reason"],
        )
        for table, kind in batch.trouble_kinds.items():
            troubled.add_metric([printable(table), kind], 1)
        yield troubled
        yield GaugeMetricFamily(
            _PREFIX + "troubled_tables", "Tables that could not be brought up to date.", len(batch.trouble_kinds)
        )
