"""``pgoutput undo``: the SQL that takes transactions of a change log back."""

import click

from pgoutput_construct.cli._options import LOG, LSN, LSN_OR_TIME, TABLE, command
from pgoutput_construct.cli._printing import counted, say
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["undo_command"]


@command("undo", short_help="Print the SQL that takes transactions back.")
@click.argument("log", type=LOG)
@click.option("--xid", type=click.IntRange(min=1), help="The transaction ID of one transaction.")
@click.option("--lsn", type=LSN, help="The LSN of its commit, as pgoutput tail shows it.")
@click.option("--since", type=LSN_OR_TIME, help="All that committed at this LSN or time, or later.")
@click.option("--until", type=LSN_OR_TIME, help="With --since: up to this LSN or time.")
@click.option("--table", "tables", multiple=True, type=TABLE, help="Only changes of this table; can be repeated.")
@click.option("--partial", is_flag=True, help="Take back what can be taken back, and name the rest in comments.")
@click.option(
    "--with-triggers",
    is_flag=True,
    help="Let triggers fire and foreign keys cascade, which needs no right of a superuser.",
)
def undo_command(
    log: str,
    *,
    xid: int | None,
    lsn: Lsn | None,
    since: Lsn | Timestamp | None,
    until: Lsn | Timestamp | None,
    tables: tuple[str, ...],
    partial: bool,
    with_triggers: bool,
) -> None:
    """Print the SQL that takes transactions of the change log LOG back.

    The SQL is one transaction, which takes each change back in the reverse order. Each row must still be as the
    transaction left it: if one is not, or a foreign key would be violated, nothing is changed. Nothing is executed
    here; psql executes it. Old values that were not sent come from earlier changes and copies of the row in the log.

    What cannot be taken back is named in comments and on standard error: values and truncated rows that the log does
    not have, sequences that were restarted, tables that were altered or dropped. Then no SQL is printed, unless
    --partial is given, and the exit status is 1.

    \b
    Examples:
      pgoutput undo changelog/ --xid 742
      pgoutput undo changelog/ --lsn 16/B374D848 --table public.orders
      pgoutput undo changelog/ --since 2026-01-31T12:00+00:00 --until 2026-01-31T12:05+00:00 --table orders > undo.sql
      pgoutput undo changelog/ --xid 742 | psql -d shop -v ON_ERROR_STOP=1
    """
    if [xid, lsn, since].count(None) != 2:
        raise click.UsageError("give one of --xid, --lsn and --since")
    if until is not None and since is None:
        raise click.UsageError("--until needs --since")
    from pgoutput_construct.forensics import undo

    script = undo(log, xid=xid, lsn=lsn, since=since, until=until, tables=tables, with_triggers=with_triggers)
    click.echo(script.text(partial), nl=False)
    for note in script.notes:
        say(f"note: {note}", err=True)
    for obstacle in script.obstacles:
        say(f"not taken back: {obstacle}", err=True)
    if script.obstacles and not partial:
        raise PgoutputError(f"{counted(len(script.obstacles), 'change')} cannot be taken back: see --partial")
