"""``pgoutput log compact``: what keeps a change log small."""

from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli.params import LOG
from pgoutput_construct.cli.progress import progress_line
from pgoutput_construct.cli.words import counted, sized

if TYPE_CHECKING:
    from pgoutput_construct.changelog.compact import Compaction

__all__ = ["compact_command"]


@click.command("compact", short_help="Merge small segments into large ones.")
@click.argument("log", type=LOG)
@click.option("--rows", type=click.IntRange(min=1), help="Most rows in a segment.  [default: 1,000,000]")
@click.option("--least", type=click.IntRange(min=2), help="Leave fewer small segments than this alone.  [default: 8]")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long the small segments stay beside the large ones, for readers that have them open.  [default: 10]",
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
        click.echo(f"would be done: {_compacted(plan_compaction(log, limits))}")
        return
    with progress_line() as show:
        done = compact(log, limits, lambda done: show(_compacted(done)))
    click.echo(_compacted(done))


def _compacted(done: "Compaction") -> str:
    merged = f"{done.merged:,} of {counted(done.before, 'segment')} merged into {done.written:,}"
    return f"{merged}; {counted(done.removed, 'file')} of {sized(done.freed_bytes)} removed"
