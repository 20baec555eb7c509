"""Run in a copy of the project that has the changes ``unread`` and ``received``: no reader of tables skips rows.

python unread.py    makes logs in the folders digest, many, some, packed and served
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from received import PLAIN, check_served

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogOptions, LogWriter, Position
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.columnar import BatchDecoder
from pgoutput_construct.forensics import blame, fixture, undo
from pgoutput_construct.publisher._feed.cursor import Cursor
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.stream import RowReader
from pgoutput_construct.wire.protocol import UNREAD, ReplicationOptions

OPTIONS: Final[dict[str, Any]] = {"proto_version": 5}
TIME: Final = pgo.Timestamp(800_000_000_000_000)
UNKNOWN: Final[dict[str, Any]] = {
    "digest": pgo.Digest(b"x"),
    "many": pgo.InsertMany(7, ((b"2",), (b"3",))),
    "some": pgo.UpdateSome((pgo.Cell(1, b"2"),)),
    "packed": pgo.PackedRows(b"x"),
}
"""The log of each: its third message, after a Relation."""


def transaction(unknown: Any) -> list[Any]:
    """Return a transaction with an Insert, and another message after it."""
    return [*PLAIN[:3], unknown, PLAIN[4]]


def write_log(name: str, payloads: list[bytes]) -> ChangeLog:
    """Write a log of one transaction."""
    given = LogOptions(
        slot="s", publications=("p",), server_version=200000, system_identifier="1", database="d", **OPTIONS
    )
    with LogWriter(Path(name)) as writer:
        writer.use(given)
        count = len(payloads)
        writer.append(Block.from_payloads(payloads, [16] * count, [TIME] * count, OPTIONS, {}, [-1] * count))
        writer.publish(Position())
    return ChangeLog(name)


def problem_of(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Return the text of one of our errors; empty if it has none."""
    try:
        call(*arguments, **options)
    except pgo.PgoutputError as error:
        return str(error)
    return ""


def check(name: str, unknown: Any) -> None:
    """Every reader of tables refuses the log, and says where; nothing else does."""
    session = pgo.Session(**OPTIONS)
    messages = transaction(unknown)
    payloads = [session.build(message) for message in messages]
    log = write_log(name, payloads)
    assert [pgo.parse(entry.payload, **OPTIONS) for entry in log] == messages
    assert log.transactions().num_rows == 1
    found = [
        problem_of(LogTables.from_log, log),
        problem_of(blame, name, "public.t", {"id": "1"}),
        problem_of(undo, name, xid=700),
        problem_of(fixture, name),
        problem_of(lambda: Cursor(LogFeed(name), ReplicationOptions(**OPTIONS), 0).next_chunk()),
    ]
    decoded = BatchDecoder(**OPTIONS).decode(payloads)
    reader = RowReader(values="raw")
    read = [problem_of(lambda message=message: [*reader.read(message)]) for message in messages]
    if type(unknown) not in UNREAD:
        assert found == [""] * 5 and not decoded.errors and read == [""] * 5, (found, decoded.errors, read)
        return
    for text in found:
        assert "seq 3" in text and "may change rows" in text and "rows: ignored" in text, (name, found)
    assert [error.row for error in decoded.errors] == [3]
    assert [bool(text) for text in read] == [False] * 3 + [True, False]


if __name__ == "__main__":
    assert {type(message) for name, message in UNKNOWN.items() if name != "digest"} == UNREAD
    for each, message in UNKNOWN.items():
        check(each, message)
    check_served()
