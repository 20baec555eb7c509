"""What a publisher serves of a log whose begins and ends have fields that nobody can make up: what was received.

Called by unread.py, in a copy of the project that has the changes ``received`` and ``unread``.
"""

from pathlib import Path
from typing import Any, Final

import pgoutput_construct as pgo
from pgoutput_construct.changelog import LogOptions, LogWriter, Position
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.publisher._feed.cursor import Cursor
from pgoutput_construct.publisher._server.replication_commands import StartReplication
from pgoutput_construct.publisher._server.stream_request import requested_options, unmade
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.wire.connection_engine import parse_connection
from pgoutput_construct.wire.protocol import ReplicationOptions

OPTIONS: Final[dict[str, Any]] = {"proto_version": 5, "streaming": "on"}
TIME: Final = pgo.Timestamp(800_000_000_000_000)
RELATION: Final[Any] = pgo.Relation(None, 7, "public", "t", "d", (pgo.RelationColumn(1, "id", 23, -1),))
GROWN: Final[Any] = pgo
"""The package with arguments that it does not have today."""
PLAIN: Final[list[Any]] = [
    GROWN.Begin(pgo.Lsn(16), TIME, 700, epoch=5),
    RELATION,
    pgo.Insert(None, 7, (b"1",)),
    GROWN.Digest(b"x"),
    GROWN.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME, row_count=1),
]
STREAMED: Final[list[Any]] = [
    GROWN.StreamStart(701, 1, epoch=6),
    GROWN.Relation(701, 7, "public", "t", "d", RELATION.columns),
    pgo.Insert(701, 7, (b"2",)),
    pgo.StreamStop(),
    pgo.StreamCommit(701, pgo.Lsn(48), pgo.Lsn(64), TIME),
]


def write_log(stream: list[Any]) -> None:
    """Write a log of a stream."""
    given = LogOptions(
        slot="s", publications=("p",), server_version=200000, system_identifier="1", database="d", **OPTIONS
    )
    session = pgo.Session(**OPTIONS)
    with LogWriter(Path("served")) as writer:
        writer.use(given)
        for message in stream:
            states = {name: [state] for name, state in session.state.parameters.items()}
            scope = -1 if session.stream_xid is None else session.stream_xid
            payload = session.build(message)
            writer.append(Block.from_payloads([payload], [16], [TIME], OPTIONS, states, [scope]))
        writer.publish(Position())


def served(**options: Any) -> list[Any]:
    """Return what a client gets."""
    session, found = pgo.Session(options["proto_version"], options.get("streaming", "off")), list[Any]()
    cursor = Cursor(LogFeed("served"), ReplicationOptions(**options), 0)
    while (chunk := cursor.next_chunk()) is not None:
        rest = chunk.data
        while rest:
            size = int.from_bytes(rest[1:5], "big") + 1
            copied = parse_connection(rest[:size], sender="server", state="copy_both")
            found.append(session.parse(pgo.parse_frame(copied.data).data))
            rest = rest[size:]
    return found


def check_served() -> None:
    """A client with the options of the log gets all of it; others get what can be made for them, or a refusal."""
    write_log([*PLAIN, *STREAMED])
    assert served(**OPTIONS) == [*PLAIN, *STREAMED], served(**OPTIONS)
    plain = [pgo.Begin(pgo.Lsn(16), TIME, 700), *PLAIN[1:3], pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME)]
    assert served(proto_version=4, streaming="on")[:4] == plain
    try:
        served(proto_version=5)
    except Refusal as refusal:
        assert "cannot send Begin.epoch with these options" in refusal.message, refusal.message
    else:
        raise AssertionError("a Begin was made up")
    about = LogFeed("served").about
    assert unmade(about) == "Begin.epoch with proto_version=5, streaming='off' (spec/pgoutput.yaml)", unmade(about)
    given = {name: str(value) for name, value in OPTIONS.items()} | {"publication_names": "p"}
    command = StartReplication("s", pgo.Lsn(0), given)
    assert requested_options(command, about).streaming == "on"
    try:
        requested_options(command, about, gets_copies=True)
    except Refusal as refusal:
        assert "Begin.epoch" in refusal.message, refusal.message
    else:
        raise AssertionError("a Begin around copied rows would be made up")
