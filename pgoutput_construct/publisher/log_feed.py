"""A change log as a feed: its transactions from its index, its messages a window of a segment at a time."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any, Final

from pgoutput_construct.changelog.planning import committed, lost_ends, relation_history
from pgoutput_construct.changelog.reader import ChangeLog, LogEntry, explain, table_entries
from pgoutput_construct.changelog.store import Address
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher.feed import About, Fed, Feed
from pgoutput_construct.stream.logged import EndedTransaction, LoggedTransaction
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.engine import engine
from pgoutput_construct.wire.types import Lsn

__all__ = ["LogFeed"]

_WINDOW: Final = 4096
"""Rows of a segment that are taken apart together."""


class LogFeed(Feed):
    """Serves a change log, and what a capture adds to it meanwhile."""

    def __init__(self, address: Address) -> None:
        """Open a log; raises ChangeLogError where there is none, or where it is damaged."""
        self._lock = Lock()
        self._address = address
        self._ended: list[EndedTransaction] = []
        self._open(ChangeLog(address))
        self._window = lru_cache(maxsize=16)(self._read_window)

    def _open(self, log: ChangeLog) -> None:
        options = log.options
        self.about = About(
            options.server_version,
            options.system_identifier,
            options.database,
            options.timeline or 1,
            tuple(options.publications),
            options.layout(),
            options.binary,
        )
        self._log = log
        self._history = relation_history(log.index)
        rows = committed(log.index.transactions, lost_ends(log.index))
        self._ended += (_ended(row) for row in rows.slice(len(self._ended)).to_pylist())

    @property
    def ended(self) -> Sequence[EndedTransaction]:
        return self._ended

    @property
    def position(self) -> Lsn:
        return self._log.complete_lsn

    def refresh(self) -> bool:
        with self._lock:
            log = ChangeLog(self._address, self._log)
            if log.segments[-1].last_seq != self._log.segments[-1].last_seq:
                self._open(log)
        return True

    def read(self, first: int, last: int) -> Iterator[Fed]:
        seq = first
        while seq <= last:
            segment = self._log.segment(seq)
            number = (seq - segment.first_seq) // _WINDOW
            start = segment.first_seq + number * _WINDOW
            yield from (fed for fed in self._window(segment.first_seq, number) if seq <= fed.seq <= last)
            seq = min(start + _WINDOW, segment.last_seq + 1)

    def _read_window(self, first_seq: int, number: int) -> list[Fed]:
        segment = self._log.segment(first_seq)
        table = self._log.table(segment).slice(number * _WINDOW, _WINDOW)
        layout = segment.options.layout()
        return [_fed(entry, layout) for entry in table_entries(table, segment.name) if entry.snapshot is None]

    def description(self, relation_oid: int, seq: int, stream_xid: int | None) -> Description:
        return self._history.descriptions[self._history.index(relation_oid, seq, stream_xid)]

    def tables(self) -> Sequence[tuple[str, str, Sequence[str]]]:
        latest = {each.relation.relation_oid: each.relation for each in self._history.descriptions}
        return [(r.namespace or "pg_catalog", r.name, [c.name for c in r.columns]) for r in latest.values()]


def _fed(entry: LogEntry, layout: Mapping[str, Any]) -> Fed:
    try:
        message = engine(**layout | entry.states).parse(entry.payload)
    except PgoutputError as error:
        raise explain(entry, error) from error
    return Fed(entry.seq, entry.wal_start, message, entry.in_stream)


def _ended(row: Mapping[str, Any]) -> EndedTransaction:
    spans = [(span["first"], span["last"]) for span in row["spans"]]
    transaction = LoggedTransaction(
        row["xid"], row["streamed"], gid=row["gid"], spans=spans, aborted=set(row["aborted"])
    )
    numbers = row["commit_lsn"], row["end_lsn"], row["commit_time"]
    return EndedTransaction(row["seq"], row["outcome"], transaction, *numbers)
