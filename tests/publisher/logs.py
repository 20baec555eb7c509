"""Change logs that are written message by message, with copies of tables where a test wants them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import pgoutput_construct as pgo
from pgoutput_construct.changelog import Block, LogWriter, Position
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.changelog._facts.void_rows import VoidRows
from pgoutput_construct.changelog._segment.events import COPIED_TABLE, PUBLICATION_FACTS
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.publisher._feed.cursor import Cursor
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.wire.engine import parse_frame
from pgoutput_construct.wire.protocol import ReplicationOptions
from tests.changelog.blocks import block_of
from tests.spark.logs import log_options

__all__ = ["OPTIONS", "WrittenLog", "frames_of", "insert", "relation", "served"]

OPTIONS = ReplicationOptions(proto_version=4, messages=True)
_LAID_OUT = log_options(proto_version=4, streaming="parallel", two_phase=True)


def relation(oid: int, name: str = "") -> pgo.Relation:
    """Return what describes a table of one column."""
    return pgo.Relation(None, oid, "public", name or f"t{oid}", "d", (pgo.RelationColumn(1, "id", 25, -1),))


def insert(oid: int, value: str) -> pgo.Insert:
    """Return the insert of a row."""
    return pgo.Insert(None, oid, (value.encode(),))


class WrittenLog:
    """A log to which a test appends."""

    def __init__(self, directory: Path, options: LogOptions = _LAID_OUT) -> None:
        self.directory = directory / "log"
        self.writer = LogWriter(LocalStore(self.directory, durable=False))
        self.writer.use(options)
        self._session = pgo.Session(options.proto_version, options.streaming)
        self._chunk = 0
        self._commits = list[tuple[int, int]]()
        self._end = 1

    def put(self, *messages: pgo.PgoutputMessage) -> None:
        """Append messages."""
        for message in messages:
            payload = pgo.build(message, **self._session.options, in_stream=self._session.in_stream)
            self.writer.append(block_of(self._session, self.writer.next_seq, payload))
            self._session.parse(payload)

    def commit(self, xid: int, lsn: int, end: int, *changes: pgo.PgoutputMessage) -> None:
        """Append a transaction, committed at as many microseconds as its position has."""
        time = pgo.Timestamp(lsn)
        self.put(pgo.Begin(pgo.Lsn(lsn), time, xid), *changes, pgo.Commit(pgo.Lsn(lsn), pgo.Lsn(end), time))
        self._end = end
        self._commits.append((lsn, xid))

    def copy(
        self,
        oid: int,
        xmax: int,
        rows: list[str],
        lsn: int,
        name: str = "",
        visibility: Visibility | None = None,
        void: Sequence[int] = (),
    ) -> None:
        """Append a copy of a table, made at an LSN, with nothing of the transactions from ``xmax`` on.

        Of its rows those with the indexes ``void`` do not count.
        """
        seqs = VoidRows.from_seqs(np.array([self.writer.next_seq + 1 + index for index in void], np.int64))
        told = [relation(oid, name), *(insert(oid, row) for row in rows)]
        payloads = pa.array([pgo.build(message) for message in told], pa.binary())
        self.writer.append(Block.copied(payloads, self._chunk, lsn, 0, _LAID_OUT.layout()))
        snapshot = Snapshot(xmax, xmax, (), pgo.Lsn(lsn))
        numbers = self._chunk, self._chunk, len(rows) - len(void)
        lsns, xids = np.array(self._commits, np.int64).reshape(-1, 2).T
        until = pgo.Lsn(max(lsn, int(lsns.max(initial=0)) + 1))
        contains = visibility or Visibility.of_commits(snapshot, until, lsns, xids)
        copy = TableCopy(-1, oid, "public", name or f"t{oid}", snapshot, *numbers, contains, void=seqs)
        self.writer.append_event(COPIED_TABLE, pgo.Lsn(lsn), **copy.said())
        self._chunk += 1

    def published(self, operations: str, *oids: int) -> None:
        """Append what the catalog says of the publication: operations, separated by spaces, of tables."""
        tables = [{"oid": oid, "schema": "public", "name": f"t{oid}", "member": oid} for oid in oids]
        details = {"publication": "pub", "operations": operations.split(), "tables": tables, "snapshot": [1, 1, []]}
        self.writer.append_fact(PUBLICATION_FACTS, pgo.Lsn(1), **details, since=0, unchanged=0)

    def publish(self, complete: int | None = None) -> None:
        """Make a segment; the log is complete up to a position, or to where the last transaction ended."""
        self.writer.publish(Position(pgo.Lsn(self._end if complete is None else complete)))

    def feed(self) -> LogFeed:
        """Return it as a publisher serves it."""
        return LogFeed(self.directory)


def served(cursor: Cursor) -> list[str]:
    """Return what a client is sent, in short: where transactions end, inserted values, emptied tables, messages."""
    return [told for message in _messages(cursor) for told in _told(message)]


def _messages(cursor: Cursor) -> Iterator[pgo.PgoutputMessage]:
    session = pgo.Session(4)
    while (chunk := cursor.next_chunk()) is not None:
        yield from (session.parse(frame.data) for frame in frames_of(chunk.data))


def frames_of(data: bytes) -> Iterator[Any]:
    """Yield the frames of CopyData messages."""
    at = 0
    while at < len(data):
        end = at + 1 + int.from_bytes(data[at + 1 : at + 5], "big")
        yield parse_frame(data[at + 5 : end])
        at = end


def _told(message: pgo.PgoutputMessage) -> list[str]:
    match message:
        case pgo.Insert():
            return [str(message.new[0], "ascii")]  # type: ignore[arg-type]
        case pgo.Truncate():
            return [f"truncate {oid}" for oid in message.relation_oids]
        case pgo.Message():
            return [f"message {int(message.lsn)}"]
        case pgo.Commit() | pgo.CommitPrepared():
            return [f"@{int(message.end_lsn)}"]
    return []
