"""``pgoutput log compact`` and ``pgoutput log prune``: what keeps a change log small."""

import sys
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli.params import LOG, LSN_OR_TIME
from pgoutput_construct.cli.progress import progress_line
from pgoutput_construct.cli.words import counted, printable, say, sized
from pgoutput_construct.wire import Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.changelog.compact import Compaction
    from pgoutput_construct.changelog.prune import Prune

__all__ = ["compact_command", "prune_command"]


@click.command("compact", short_help="Merge small segments into large ones.")
@click.argument("log", type=LOG)
@click.option("--rows", type=click.IntRange(min=1), help="Most rows in a segment.  [default: 1,000,000]")
@click.option("--least", type=click.IntRange(min=2), help="Leave fewer small segments than this alone.  [default: 8]")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long the small segments stay next to the large ones, for readers that have them open.  [default: 10]",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
def compact_command(log: str, dry_run: bool, **given: Any) -> None:
    """Merge the small segments of a change log into large ones, while a capture and readers run.

    Nothing is lost: a large segment is durable before the small ones go, and a crash leaves a log that is read as
    before. One compaction or prune works at a time. The newest segment stays as it is.

    \b
    Examples:
      pgoutput log compact changelog/
      pgoutput log compact s3://bucket/shop --grace 600
    """
    from pgoutput_construct.changelog.compact import CompactionLimits, compact, plan_compaction

    limits = CompactionLimits(**{name: value for name, value in given.items() if value is not None})
    if dry_run:
        say(f"would be done: {_compacted(plan_compaction(log, limits))}")
        return
    with progress_line() as show:
        done = compact(log, limits, lambda done: show(_compacted(done)))
    say(_compacted(done))


@click.command("prune", short_help="Remove what is old and nobody needs.")
@click.argument("log", type=LOG)
@click.option(
    "--before",
    type=LSN_OR_TIME,
    required=True,
    help="Remove what ended before this; UTC if no zone.",
)
@click.option(
    "--without-states",
    "states",
    flag_value=False,
    default=True,
    help="Also remove what the state of tables is built from: their copies, and what came after these. "
    "pgoutput capture --snapshot does not copy these tables again; pgoutput snapshot does.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed, and what keeps the rest.")
@click.option("--yes", is_flag=True, help="Do not ask. Only on a terminal there is somebody to ask.")
def prune_command(log: str, before: Lsn | Timestamp, states: bool, dry_run: bool, yes: bool) -> None:
    """Remove the segments of a change log that hold only what ended before a time or a position.

    A segment stays, and all after it, when an open or prepared transaction, a transaction that ended later, or a
    registered reader needs it, or the state of a table is built from it: that needs the table's latest copy, and what
    came after it (pgoutput snapshot makes a later one). What retains the first segment that stays is always
    printed. The newest segment always stays.

    \b
    Examples:
      pgoutput log prune changelog/ --before 2026-01-01T00:00+00:00 --dry-run
      pgoutput log prune changelog/ --before 16/B374D848 --yes
    """
    from pgoutput_construct.changelog.prune import prune

    asks = not yes and sys.stdin is not None and sys.stdin.isatty()
    if dry_run or asks:
        planned = prune(log, before, states=states, dry_run=True)
        click.echo(f"would be removed: {_pruned(planned)}")
        if dry_run or not planned.size:
            return
        click.confirm("Remove them?", abort=True)
    with progress_line() as show:
        done = prune(log, before, states=states, on_progress=lambda done: show(f"{done.removed:,} files removed"))
    click.echo(f"removed: {_pruned(done)}")


def _pruned(done: "Prune") -> str:
    what = f"{done.segments:,} of {counted(done.segments + done.kept, 'segment')}, {counted(done.rows, 'row')}"
    kept = f"{what}, {sized(done.size)}; the log is kept from seq {done.first_seq} on"
    return "\n".join([kept, *(printable(f"  {hold}") for hold in done.holds)])


def _compacted(done: "Compaction") -> str:
    merged = f"{done.merged:,} of {counted(done.before, 'segment')} merged into {done.written:,}"
    return f"{merged}; {counted(done.removed, 'file')} of {sized(done.freed_bytes)} removed"
