"""The writing end of the change log: one writer a directory, rows in memory until a segment is durable."""

import json
import time
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from pgoutput_construct.changelog.address import open_store
from pgoutput_construct.changelog.block import NO_XID, Block
from pgoutput_construct.changelog.columns import segment_table
from pgoutput_construct.changelog.listing import list_segments
from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.changelog.segments import (
    Position,
    Segment,
    write_segment,
)
from pgoutput_construct.changelog.store import Address, LogStore, MissingFileError
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn, XLogData
from pgoutput_construct.wire.options import STATE_PARAMETERS

__all__ = ["LogWriter", "SegmentLimits"]

_POSITION = ".confirmed.json"
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class SegmentLimits:
    """When a segment is cut: at the first limit that is reached, also inside a transaction."""

    rows: int = 100_000
    """Most payloads in a segment."""
    payload_bytes: int = 64 * 2**20
    """Bytes of payload after which no more is added; one payload may be up to 1 GB by itself."""
    seconds: float = 2.0
    """How long a payload may wait in memory: the delay of confirmations and of readers."""

    def __post_init__(self) -> None:
        if self.rows < 1 or self.payload_bytes < 1 or self.seconds < 0:
            raise ChangeLogError("the limits of a segment are at least one row, one byte and zero seconds")


class LogWriter:
    """Appends payloads and publishes them as segments; a context manager that holds the log's lock.

    What is appended is lost in a crash until ``publish`` returns. ``position`` is what
    the last durable segment says: the position to resume from.
    """

    def __init__(self, address: Address | LogStore, limits: SegmentLimits | None = None) -> None:
        """Lock the log at an address, remove unfinished files, and find where its log ends; raises ChangeLogError.

        ``limits`` say when a segment is cut, SegmentLimits() where they are left out.
        """
        self.store = open_store(address)
        self.limits = limits or SegmentLimits()
        self.options: LogOptions | None = None
        self.position = Position()
        self.next_seq = 0
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0
        self._oldest = 0.0
        self._open_xid = NO_XID
        self.store.prepare()
        self._lock = self.store.lock("capture")
        try:
            self._recover()
        except BaseException:
            self.close()
            raise

    @property
    def pending(self) -> int:
        """How many rows are in memory only."""
        return len(self._rows)

    @property
    def noted_lsn(self) -> Lsn:
        """The highest position that was confirmed; a slot beyond it was moved by somebody else."""
        return max(self.position.complete_lsn, self._noted)

    def use(self, options: LogOptions) -> None:
        """Set the ``options``; raise ChangeLogError when the log was written with others."""
        if self.options is not None and (differences := self.options.differences(options)):
            raise ChangeLogError(
                f"{self.store}: the change log there was captured with other options "
                f"({'; '.join(differences)}); use these, or another directory and another slot"
            )
        self.options = options

    def append(self, frame: XLogData, in_stream: bool, stream_xid: int | None, **others: bool) -> int:
        """Add the payload of ``frame`` with the state in which it is to be parsed; return its seq.

        ``in_stream``, ``stream_xid`` (None outside a stream) and ``others``, the states of later versions, are
        those of the Session before the payload.
        """
        if frame.wal_start > _INT64_MAX:
            raise _beyond(frame.wal_start)
        if not self._rows:
            self._oldest = time.monotonic()
        given = {"in_stream": in_stream, **others}
        states = [given.get(name, False) for name in STATE_PARAMETERS]
        scope = OUTSIDE if stream_xid is None else stream_xid
        self._rows.append((frame.data, int(frame.wal_start), int(frame.send_time), scope, *states))
        self._bytes += len(frame.data)
        self.next_seq += 1
        return self.next_seq - 1

    def is_due(self) -> bool:
        """Tell whether a limit is reached and ``publish`` should be called."""
        if not self._rows:
            return False
        limits = self.limits
        full = len(self._rows) >= limits.rows or self._bytes >= limits.payload_bytes
        return full or time.monotonic() - self._oldest >= limits.seconds

    def publish(self, position: Position) -> Segment | None:
        """Make all appended rows durable as one segment; None when there are none.

        ``position``: how far the log is complete with these rows. Only after this may it be confirmed to the
        server.
        """
        if not self._rows:
            return None
        if self.options is None:
            raise ChangeLogError("set the options of the log before its first segment")
        if position.complete_lsn > _INT64_MAX:
            raise _beyond(position.complete_lsn)
        self._lock.check()
        segment = write_segment(self.store, self._table(), self.options, position)
        self._lock.check()  # else it went elsewhere, and may not be confirmed
        self.position = position
        self._rows, self._bytes = [], 0
        return segment

    def note(self, lsn: Lsn) -> None:
        """Write down, durably, that ``lsn`` is about to be confirmed although no segment says so (an idle
        server).
        """
        if lsn > self.noted_lsn:
            self._lock.check()
            self.store.write(_POSITION, json.dumps({"confirmed_lsn": int(lsn)}).encode())
            self._noted = lsn

    def close(self) -> None:
        """Release the directory; rows that were not published are gone."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recover(self) -> None:
        self.store.sweep()
        self._noted = _read_position(self.store)
        if segments := list_segments(self.store):
            last = segments[-1]
            self.options, self.position = last.options, last.position
            self.next_seq = last.last_seq + 1

    def _table(self) -> pa.Table:
        assert self.options is not None
        payloads, wal_start, send_time, scopes, *states = zip(*self._rows, strict=True)
        said = dict(zip(STATE_PARAMETERS, states, strict=True))
        block = Block.of(payloads, wal_start, send_time, self.options.layout(), said, scopes, self._open_xid)
        self._open_xid = block.open_xid
        return segment_table([block], self.next_seq - len(block))


def _beyond(lsn: Lsn) -> ChangeLogError:
    return ChangeLogError(f"WAL position {lsn} is beyond 7FFFFFFF/FFFFFFFF: the log cannot hold it")


def _read_position(store: LogStore) -> Lsn:
    try:
        return Lsn(json.loads(store.read(_POSITION))["confirmed_lsn"])
    except MissingFileError:
        return Lsn(0)
    except (ValueError, KeyError, TypeError) as error:
        place = store.place(_POSITION)
        raise ChangeLogError(f"{place}: damaged; it only guards against a moved slot: remove it to go on") from error
