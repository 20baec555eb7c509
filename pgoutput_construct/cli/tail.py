"""``pgoutput tail``: committed transactions, as a person reads them or as JSON lines."""

from typing import Final

import click

from pgoutput_construct.cli.commands import COMMANDS
from pgoutput_construct.cli.params import LSN, TABLE
from pgoutput_construct.cli.readers import is_log
from pgoutput_construct.cli.tail_print import PRINTERS
from pgoutput_construct.cli.tail_wanted import Wanted
from pgoutput_construct.cli.values import Values
from pgoutput_construct.extras import require
from pgoutput_construct.wire import Lsn

__all__ = ["tail_command"]

_DSN_SCHEMES: Final = ("postgresql://", "postgres://")


@click.command("tail", short_help="Show committed transactions of a change log or a server.")
@click.argument("source", metavar="LOG|DSN")
@click.option("--publication", "publications", multiple=True, help="Of a server: a publication; can be repeated.")
@click.option("--follow", "-f", is_flag=True, help="Of a log: go on with what a capture adds; a server always does.")
@click.option("--from-lsn", type=LSN, help="Of a log: begin with the first commit at or after this.")
@click.option("--table", "tables", multiple=True, type=TABLE, help="Show only changes of this table; can be repeated.")
@click.option("--limit", "-n", type=click.IntRange(min=1), metavar="N", help="End after N transactions.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each change.")
@click.option("--all", "everything", is_flag=True, help="Show long values in full.")
def tail_command(
    source: str,
    *,
    publications: tuple[str, ...],
    follow: bool,
    from_lsn: Lsn | None,
    tables: tuple[str, ...],
    limit: int | None,
    as_json: bool,
    everything: bool,
) -> None:
    """Show committed transactions in the order of their commits, each with its changes, old values -> new.

    From a change log (its directory, or its address in an object store), with the events that the capture noted; or
    from a server, what commits from now on, through a temporary slot that holds WAL only while the command runs. What
    was rolled back, also only to a savepoint, is not shown.

    With --json each change is an object: commit_lsn, commit_time, xid, seq (the place in the transaction), op,
    table (schema and name, too, by themselves), new, old, and unchanged: the columns whose value was not sent.
    Values are PostgreSQL's text, of either format in which they were captured, but smallint, integer, bigint, oid,
    finite real and double precision, boolean and NULL are JSON's own. So integers of all other types are strings, such
    as of numeric, money, xid, xid8 and oid8, of arrays and ranges. A bigint may be beyond 2^53, which programs that
    read all numbers as floating-point do not keep exactly.

    \b
    Examples:
      pgoutput tail changelog/ --table public.orders --limit 10
      pgoutput tail changelog/ --follow --json | jq .
      pgoutput tail service=shop --publication shop
    """
    require(*COMMANDS["tail"].extras)
    live = is_dsn(source)
    if live and not publications:
        raise click.UsageError("a server needs --publication: the changes of which tables are to be shown")
    if live and from_lsn is not None:
        raise click.UsageError("--from-lsn is for change logs: a new slot begins now")
    if not live and publications:
        raise click.UsageError(f"--publication is for servers, and {source!r} is taken for a change log")
    printer = PRINTERS["json" if as_json else "text"](Values(), everything)
    wanted = Wanted(printer, tables, limit)
    if live:
        from pgoutput_construct.cli.tail_live import tail_server

        tail_server(source, publications, wanted)
    else:
        from pgoutput_construct.cli.tail_log import tail_log

        tail_log(source, wanted, from_lsn, follow)


def is_dsn(source: str) -> bool:
    """Tell a connection string from the address of a change log: ``service=shop``, a URI of PostgreSQL, or ''."""
    return not source or source.startswith(_DSN_SCHEMES) or ("=" in source and not is_log(source))
