"""Logging, warnings and metrics of long-running commands."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from pgoutput_construct.cli._options import LISTEN, Listen
from pgoutput_construct.cli._printing import printable, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prometheus_client.registry import Collector

    from pgoutput_construct.changelog._facts.completeness import Lack, UnpublishedColumns

__all__ = [
    "FORMATS",
    "LOGGER",
    "EchoHandler",
    "logging_to_stderr",
    "metrics_option",
    "print_notes",
    "serving_metrics",
]

LOGGER: Final = logging.getLogger("pgoutput_construct")
"""The logger of the whole package."""

_USUAL: Final = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime"})


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{_time(record)} {record.levelname:<7} {printable(record.getMessage())}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        extra = {key: value for key, value in record.__dict__.items() if key not in _USUAL}
        line = {"time": _time(record), "level": record.levelname.lower(), "message": record.getMessage(), **extra}
        return json.dumps(line, default=str)


FORMATS: Final = {"text": _TextFormatter, "json": _JsonFormatter}


class EchoHandler(logging.Handler):
    """Writes to standard error; ``last`` is the last message, without the time."""

    last = ""

    # click.echo resolves sys.stderr at each call: while a progress line is shown, rich replaces it.
    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        self.last = record.getMessage()
        with suppress(OSError):  # a closed pipe must not end a capture
            click.echo(self.format(record), err=True)


@contextmanager
def logging_to_stderr(form: str) -> Iterator[EchoHandler]:
    """Write the package's log records from INFO on, in one of FORMATS, until the block ends."""
    handler = EchoHandler()
    handler.setFormatter(FORMATS[form]())
    before = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(before)


def _time(record: logging.LogRecord) -> Any:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


_SHOWN: Final = 10


def print_notes(kind: str, about: "Sequence[Lack | UnpublishedColumns]") -> None:
    """Print lines about tables on standard error, at most ten.

    Args:
        kind: How each begins: ``warning`` for incomplete tables, ``note`` for columns that are not published.
        about: What is said.
    """
    for each in about[:_SHOWN]:
        say(f"{kind}: {each}", err=True)
    if len(about) > _SHOWN:
        say(f"{kind}: and {len(about) - _SHOWN:,} more tables, as pgoutput log LOG shows", err=True)


metrics_option = click.option(
    "--metrics",
    type=LISTEN,
    help="Expose Prometheus metrics at /metrics, without authentication.  [default HOST: 127.0.0.1]",
)
"""The option of commands with metrics; with it they need the extra ``metrics``."""


@contextmanager
def serving_metrics(listen: Listen | None, collector: "Collector | None") -> Iterator[None]:
    """Serve Prometheus metrics at ``/metrics`` until the block ends, and log the URL.

    Args:
        listen: The address; port 0 selects a free one. None serves nothing.
        collector: The collector; None without an address, since prometheus_client is installed only with ``metrics``.

    Raises:
        OSError: The address is not available.
    """
    if listen is None or collector is None:
        yield
        return
    from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)
    server, thread = start_http_server(listen.port, listen.host, registry)
    try:
        LOGGER.info("metrics at http://%s:%d/metrics", listen.host, server.server_port)
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
