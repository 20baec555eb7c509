"""``pgoutput capture``: captures a slot's changes into a change log."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli._logging import FORMATS, LOGGER, logging_to_stderr, metrics_option, serving_metrics
from pgoutput_construct.cli._options import FILE_MODE, LSN, OPERATIONS, SECONDS, TABLES, Listen, replication_options
from pgoutput_construct.cli._printing import counted
from pgoutput_construct.cli.command_table import COMMANDS
from pgoutput_construct.cli.group import reason
from pgoutput_construct.extras import require

if TYPE_CHECKING:
    from pgoutput_construct.postgres import CaptureProgress

__all__ = ["capture_command"]


@click.command("capture", short_help="Capture a server's changes into a change log.")
@click.argument("dsn")
@click.argument("log")
@click.option("--slot", required=True, help="The replication slot.")
@click.option(
    "--publication",
    "publications",
    required=True,
    multiple=True,
    help="A publication; can be repeated. Later captures may name other ones.",
)
@click.option("--create-slot", is_flag=True, help="Create the slot if it does not exist.")
@click.option(
    "--failover-slot",
    "failover",
    is_flag=True,
    help="Create the slot as a failover slot, which standbys synchronize (PostgreSQL 17).",
)
@click.option(
    "--slot-timeout",
    type=SECONDS,
    metavar="SECONDS",
    help="Seconds to wait for running transactions when the slot is created.  [default: no limit]",
)
@click.option("--new-log", is_flag=True, help="Start an empty log with a slot that exists already.")
@click.option(
    "--create-publication",
    type=TABLES,
    metavar="TABLE,...",
    help="Create the publication for these tables if it does not exist (SCHEMA.*: all tables of a schema).",
)
@click.option(
    "--publish",
    type=OPERATIONS,
    metavar="OPERATION,...",
    help="Operations of a publication that is created; use insert,truncate for tables without a key.  "
    "[default: insert,update,delete,truncate]",
)
@click.option(
    "--snapshot", is_flag=True, help="Copy each published table without a copy in LOG, now and when it is added later."
)
@click.option(
    "--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Number of connections per table copy."
)
@click.option(
    "--snapshot-rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MB",
    callback=lambda _context, _option, megabytes: megabytes and megabytes * 1e6,
    help="Megabytes (10^6 bytes) that table copies read a second at most.  [default: no limit]",
)
@click.option(
    "--file-mode",
    type=FILE_MODE,
    metavar="MODE",
    help="Mode of LOG's files, existing and future ones: 0640 lets a group read them.  [default: 0600]",
)
@click.option(
    "--segment-seconds",
    type=SECONDS,
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How long changes may wait before they are written, which confirmations and readers wait for, too.",
)
@click.option("--until-lsn", type=LSN, help="End when everything before this LSN is durable.")
@click.option("--until-idle", type=SECONDS, metavar="SECONDS", help="End after this time without changes.")
@click.option("--duration", type=SECONDS, metavar="SECONDS", help="End this time after the slot is read.")
@click.option(
    "--heartbeat",
    type=SECONDS,
    metavar="SECONDS",
    help="Interval of a small logical message, so that the slot of a quiet database advances.",
)
@click.option("--transactional-heartbeat", is_flag=True, help="Write each heartbeat in a transaction.")
@click.option(
    "--reconnect-seconds",
    type=SECONDS,
    metavar="SECONDS",
    help="How long to reconnect.  [default: no limit; with a condition to end, 60 for the first connection]",
)
@click.option(
    "--on-rewrite",
    type=click.Choice(["snapshot", "stop"]),
    default="snapshot",
    show_default=True,
    help="If rows change without messages (ALTER TABLE rewrites a table): copy the table again, or exit with an error.",
)
@click.option(
    "--on-lost-slot",
    type=click.Choice(["snapshot", "stop"]),
    default="stop",
    show_default=True,
    help="If the slot or the server's history is lost: copy all tables again and continue, or exit with an error.",
)
@metrics_option
@click.option(
    "--log-format",
    type=click.Choice([*FORMATS]),
    default="text",
    show_default=True,
    help="Format of log lines on standard error.",
)
@replication_options
def capture_command(
    dsn: str,
    log: str,
    *,
    slot: str,
    publications: tuple[str, ...],
    metrics: Listen | None,
    log_format: str,
    segment_seconds: float,
    given: Mapping[str, Any],
    **settings: Any,
) -> None:
    """Capture the changes of a slot into the change log LOG; resume where it ends.

    DSN is a connection string of libpq or a URL; "" takes everything from the environment (PGHOST, PGSERVICE, ...).
    Do not put a password into it, since other users of the machine can read it: use PGPASSFILE or PGPASSWORD. LOG is a
    directory, or the URL of an object store (s3://bucket/folder).

    An LSN is confirmed to the server only when everything before it is durable in LOG. Lost connections are
    re-established. Ctrl-C or SIGTERM finishes the segment, confirms it and ends; a second one ends at once, and loses
    nothing either, since the server sends again what was not confirmed.

    With --snapshot LOG has every published table from its first row: existing rows are copied alongside the stream, and
    so are tables that are published later; --until-lsn and --until-idle wait for these copies.

    \b
    Exit status:
      0    ended as asked: by --until-lsn, --until-idle, --duration, Ctrl-C or SIGTERM
      1    an error, named in the last line on standard error, also if the capture could not begin; what was received
           before is in LOG
      2    the command line is wrong
      130  ended at once by a second Ctrl-C (143 by a second SIGTERM)

    \b
    Examples:
      pgoutput capture service=shop changelog/ --slot warehouse --publication shop
          --create-slot --create-publication public.orders,public.customers --snapshot
      pgoutput capture "" s3://bucket/shop --slot warehouse --publication shop --metrics 9187 --log-format json
      pgoutput capture service=shop changelog/ --slot warehouse --publication shop --until-idle 5
    """
    if settings["publish"] and not settings["create_publication"]:
        raise click.UsageError("--publish needs --create-publication: it sets the operations of the new publication")
    require(*COMMANDS["capture"].extras, *(["metrics"] if metrics else []))
    from pgoutput_construct.changelog import SegmentLimits
    from pgoutput_construct.cli._progress import Meter, showing
    from pgoutput_construct.postgres import CaptureProgress, capture

    meter, collector = Meter(CaptureProgress()), None
    if metrics:
        from pgoutput_construct.cli._collectors import CaptureCollector

        collector = CaptureCollector(slot, meter)
    chosen = {name: value for name, value in settings.items() if value is not None}
    with logging_to_stderr(log_format) as logged, _errors(log_format):
        _begin(dsn, slot, log)
        with serving_metrics(metrics, collector), showing(meter, logged, log_format == "text") as report:
            limits = SegmentLimits(seconds=segment_seconds)
            progress = capture(dsn, slot, publications, log, limits=limits, on_progress=report, **chosen, **given)
        _conclude(progress)


@contextmanager
def _errors(log_format: str) -> Iterator[None]:
    """Log errors in the format of the log, unless that is text."""
    try:
        yield
    except Exception as error:
        text = reason(error)
        if text is None or log_format == "text":
            raise
        LOGGER.error("%s", text)
        raise click.exceptions.Exit(1) from None


def _begin(dsn: str, slot: str, log: str) -> None:
    from pgoutput_construct.changelog._store.address import open_store
    from pgoutput_construct.postgres import redact

    # Not as given: both may contain a password.
    LOGGER.info("capturing slot %r of %s into %s", slot, redact(dsn) or "the environment's server", open_store(log))


def _conclude(progress: "CaptureProgress") -> None:
    counts = (counted(progress.rows, "message"), counted(progress.transactions, "transaction"))
    lsn = progress.confirmed_lsn
    LOGGER.info(
        "ended by %s: %s in %s; %s",
        progress.ended_by,
        ", ".join(counts),
        counted(progress.segments, "segment"),
        f"everything before {lsn} is durable, and confirmed" if lsn else "nothing was confirmed",
        extra={"ended_by": progress.ended_by, "confirmed_lsn": str(lsn)},
    )
