"""Writes a test's transactions into a publisher's script, with increasing LSNs, as a server writes its WAL."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher._feed.message_feed import Script
from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.testing.fake_tables import Change
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import StreamStartFirstSegment
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["ScriptWriter", "check_changes"]

_START: Final = 0x1000000
_RECORD: Final = 0x40
"""Bytes of WAL of a record."""
_FIRST: Final = int(StreamStartFirstSegment.FIRST_SEGMENT)
_LATER: Final = int(StreamStartFirstSegment.LATER_SEGMENT)


def check_changes(changes: Sequence[Change | Fault]) -> None:
    """Raise PgoutputError for what is no sequence of changes, before any of them is served."""
    if isinstance(changes, Change | Fault) or not isinstance(changes, Sequence):
        raise PgoutputError(f"changes are a sequence, such as [table.insert(...)], not {changes!r:.80}")
    for change in changes:
        if not isinstance(change, Change | Fault):
            raise PgoutputError(f"a change is what table.insert(...) and the like return, not {change!r:.80}")


class ScriptWriter:
    """Writes transactions; keeps the next LSN and xid, and the tables whose Relation was sent."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lsn = _START
        self._xid = 700
        self._described = set[int]()
        self._in_stream: dict[int, set[int]] = {}

    def commit_prepared(self, gid: str, xid: int) -> Lsn:
        """Serve a COMMIT PREPARED; return the LSN after it."""
        start, end = self._record()
        self._add(end, m.CommitPrepared(start, end, Timestamp.now(), xid, gid))
        return end

    def _commit_plain(self, changes: Sequence[Change | Fault], xid: int, origin: str | None) -> Lsn:
        (start, end), now = self._record_behind(changes), Timestamp.now()
        self._add(Lsn(self._lsn), m.Begin(start, now, xid))
        if origin is not None:
            self._add(Lsn(0), m.Origin(Lsn(0), origin))
        self._changes(changes)
        self._add(end, m.Commit(start, end, now))
        self._record()
        return end

    def _commit_streamed(
        self, changes: Sequence[Change | Fault], gid: str | None, rolled_back: Sequence[Change]
    ) -> Lsn:
        xid = self._next_xid()
        self._segment(xid, changes[:1])
        if rolled_back:
            subxid = self._next_xid()
            self._segment(xid, rolled_back, subxid=subxid, is_first=False)
            self._add(Lsn(self._lsn), m.StreamAbort(xid, subxid))
            del self._in_stream[xid]  # PostgreSQL describes the tables again (cleanup_rel_sync_cache())
        if changes[1:]:
            self._segment(xid, changes[1:], is_first=False)
        if gid is None:
            return self._stream_commit(xid)
        start, end = self._record()
        self._add(end, m.StreamPrepare(start, end, Timestamp.now(), xid, gid))
        return self.commit_prepared(gid, xid)

    def _segment(
        self, xid: int, changes: Sequence[Change | Fault], is_first: bool = True, subxid: int | None = None
    ) -> None:
        self._add(Lsn(0), m.StreamStart(xid, _FIRST if is_first else _LATER))
        self._changes(changes, subxid or xid, self._in_stream.setdefault(xid, set()))
        self._add(Lsn(0), m.StreamStop())

    def _stream_commit(self, xid: int) -> Lsn:
        start, end = self._record()
        self._add(end, m.StreamCommit(xid, start, end, Timestamp.now()))
        self._described |= self._in_stream.pop(xid, set())
        return end

    def _changes(
        self, changes: Sequence[Change | Fault], xid: int | None = None, described: set[int] | None = None
    ) -> None:
        known = self._described if described is None else described
        for change in changes:
            if isinstance(change, Fault):
                self._script.fault(change)
                continue
            table, message = change
            if table.oid not in known:
                known.add(table.oid)
                self._add(Lsn(0), replace(table.relation, xid=xid))
            changed: Any = message
            self._add(self._record()[0], replace(changed, xid=xid))

    def _add(self, lsn: Lsn, message: m.PgoutputMessage) -> None:
        self._script.add(lsn, message)

    def _record_behind(self, changes: Sequence[Change | Fault]) -> tuple[Lsn, Lsn]:
        """Return the start and end LSN of a commit record that follows the records of its changes."""
        start = self._lsn + _RECORD * sum(not isinstance(change, Fault) for change in changes)
        return Lsn(start), Lsn(start + _RECORD)

    def _record(self) -> tuple[Lsn, Lsn]:
        start, self._lsn = self._lsn, self._lsn + _RECORD
        return Lsn(start), Lsn(self._lsn)

    def _next_xid(self) -> int:
        self._xid += 1
        return self._xid
