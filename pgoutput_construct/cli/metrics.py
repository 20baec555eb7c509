"""What commands tell Prometheus: collected from their latest report whenever somebody asks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from pgoutput_construct.cli.logs import LOGGER
from pgoutput_construct.cli.params import LISTEN, Listen

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["metrics_option", "serving_metrics"]

metrics_option = click.option(
    "--metrics",
    type=LISTEN,
    help="Answer Prometheus there, under /metrics, whoever asks.  [default HOST: 127.0.0.1]",
)
"""The option of the commands that do so; those need the extra ``metrics`` where it is given."""


@contextmanager
def serving_metrics(listen: Listen | None, collector: "Callable[[], Collector]") -> Iterator[None]:
    """Answer Prometheus under ``/metrics`` until the block ends, and log where; do nothing where nobody is to ask.

    Args:
        listen: Where to listen; port 0 is one that is free.
        collector: Makes what collects the metrics. Whatever it imports of prometheus_client is not needed elsewhere.

    Raises OSError where the address cannot be listened at.
    """
    if listen is None:
        yield
        return
    from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

    registry = CollectorRegistry()
    registry.register(collector())
    ProcessCollector(registry=registry)
    server, thread = start_http_server(listen.port, listen.host, registry)
    try:
        LOGGER.info("metrics at http://%s:%d/metrics", listen.host, server.server_port)
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
