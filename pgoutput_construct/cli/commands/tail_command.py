"""``pgoutput tail``: committed transactions, as a person reads them or as JSON lines."""

import secrets
from typing import TYPE_CHECKING, Final

import click

from pgoutput_construct.cli._options import LSN, TABLE, command, is_log
from pgoutput_construct.cli._values import Values
from pgoutput_construct.cli.commands._tail_output import Header, JsonPrinter, TailSelection, TextPrinter
from pgoutput_construct.stream import RelationCache, RowReader, Session
from pgoutput_construct.stream.bounds import effect_of, said
from pgoutput_construct.wire import Lsn, PrimaryKeepalive, XLogData
from pgoutput_construct.wire.protocol import OPTIONS

if TYPE_CHECKING:
    from pgoutput_construct.postgres import ReplicationStream

__all__ = ["tail_command"]

_DSN_SCHEMES: Final = ("postgresql://", "postgres://")


@command("tail", short_help="Show committed transactions of a change log or a server.")
@click.argument("source", metavar="LOG|DSN")
@click.option("--publication", "publications", multiple=True, help="Of a server: a publication; can be repeated.")
@click.option("--follow", "-f", is_flag=True, help="Of a log: continue with what a capture adds; a server always does.")
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

    With --json each change is an object: commit_lsn, commit_time, xid, seq (the position in the transaction), op,
    table (schema and name, too, by themselves), new, old, and unchanged: the columns whose value was not sent.
    Values are PostgreSQL's text, whichever format was captured; but smallint, integer, bigint, oid, finite real and
    double precision are JSON numbers, boolean and NULL JSON's true, false and null. Values of all other types are
    strings: numeric, money, xid, xid8 and oid8, arrays and ranges. A bigint may exceed 2^53: parsers that read numbers
    as float64 lose its last digits.

    \b
    Examples:
      pgoutput tail changelog/ --table public.orders --limit 10
      pgoutput tail changelog/ --follow --json | jq .
      pgoutput tail service=shop --publication shop
    """
    live = is_dsn(source)
    if live and not publications:
        raise click.UsageError("--publication is required for a server")
    if live and from_lsn is not None:
        raise click.UsageError("--from-lsn is for change logs: a temporary slot starts at the current LSN")
    if not live and publications:
        raise click.UsageError(f"--publication is for servers, and {source!r} is taken for a change log")
    printer = (JsonPrinter if as_json else TextPrinter)(Values(), everything)
    selection = TailSelection(printer, tables, limit)
    if live:
        _tail_server(source, publications, selection)
    else:
        from pgoutput_construct.cli.commands._tail_log import tail_log

        tail_log(source, selection, from_lsn, follow)


def is_dsn(source: str) -> bool:
    """Return whether this is a connection string, and not the address of a change log.

    It is for ``service=shop``, a URI of PostgreSQL, or ''.
    """
    return not source or source.startswith(_DSN_SCHEMES) or ("=" in source and not is_log(source))


_WAIT = 1.0  # seconds


def _tail_server(dsn: str, publications: tuple[str, ...], selection: TailSelection) -> None:
    """Show what commits from now on, until the limit of ``selection`` is reached; raise ReplicationError.

    Without streaming and two-phase decoding, a server sends transactions when they have committed, one by one.
    """
    from pgoutput_construct.postgres import (
        ReplicationStream,
        StreamOptions,
        check_publications,
        check_tables,
        connect,
        create_slot,
        read_publications,
    )

    connection = connect(dsn)
    slot = f"pgoutput_tail_{secrets.token_hex(6)}"
    try:
        check_publications(connection, publications)
        check_tables(read_publications(connection, publications))
        start = create_slot(connection, slot, temporary=True)
        messages = connection.info.server_version // 10000 >= OPTIONS["messages"].server
        options = StreamOptions(slot=slot, publications=publications, messages=messages)
        stream = ReplicationStream(connection, options, start)
    except BaseException:
        connection.close()
        raise
    with stream:
        _show(stream, selection)


def _show(stream: "ReplicationStream", selection: TailSelection) -> None:
    session, relations, seq, between = Session(), RelationCache(), 0, True
    relations.types = selection.printer.values.types
    reader = RowReader(relations, "raw")
    while not selection.enough:
        frame = stream.read(_WAIT)
        if isinstance(frame, PrimaryKeepalive) and between:
            # What other tables write never comes as a Commit, and the slot would keep its WAL.
            stream.confirm(frame.wal_end)
        if not isinstance(frame, XLogData) or not frame.data:
            continue
        message = session.parse(frame.data)
        if effect_of(message) == "begin":
            selection.begin(Header(*(said(message, role) for role in ("lsn", "time", "xid"))))
            seq, between = 0, False
        selection.take(seq, message, reader.read(message))
        seq += 1
        if effect_of(message) == "commit":
            selection.end()
            between = True
            stream.confirm(said(message, "end_lsn"))
