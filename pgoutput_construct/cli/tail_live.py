"""A server's committed transactions as they come, through a temporary slot that ends with the connection."""

import secrets
from typing import TYPE_CHECKING

from pgoutput_construct.cli.tail_print import Header
from pgoutput_construct.cli.tail_wanted import Wanted
from pgoutput_construct.stream import RelationCache, RowReader, Session
from pgoutput_construct.stream.bounds import effect_of, said
from pgoutput_construct.wire import PrimaryKeepalive, XLogData
from pgoutput_construct.wire.protocol import OPTIONS

if TYPE_CHECKING:
    from pgoutput_construct.postgres import ReplicationStream

__all__ = ["tail_server"]

_WAIT = 1.0  # seconds


def tail_server(dsn: str, publications: tuple[str, ...], wanted: Wanted) -> None:
    """Show what commits from now on, until ``wanted`` has enough; raise ReplicationError.

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
        _show(stream, wanted)


def _show(stream: "ReplicationStream", wanted: Wanted) -> None:
    session, relations, seq, between = Session(), RelationCache(), 0, True
    relations.types = wanted.printer.values.types
    reader = RowReader(relations, "raw")
    while not wanted.enough:
        frame = stream.read(_WAIT)
        if isinstance(frame, PrimaryKeepalive) and between:
            # What other tables write never comes as a Commit, and the slot would keep its WAL.
            stream.confirm(frame.wal_end)
        if not isinstance(frame, XLogData) or not frame.data:
            continue
        message = session.parse(frame.data)
        if effect_of(message) == "begin":
            wanted.begin(Header(*(said(message, role) for role in ("lsn", "time", "xid"))))
            seq, between = 0, False
        wanted.take(seq, message, reader.read(message))
        seq += 1
        if effect_of(message) == "commit":
            wanted.end()
            between = True
            stream.confirm(said(message, "end_lsn"))
