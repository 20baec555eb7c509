"""Frames of a live stream as messages and changes, a batch at a time, in the order in which they were sent."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from itertools import repeat
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgoutput_construct.columnar.envelope import Frames, split_frames
from pgoutput_construct.columnar.index import BatchIndex, index_batch
from pgoutput_construct.columnar.kernels import ROW_TAGS
from pgoutput_construct.columnar.python_rows import load_rows
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.loader import ValueLoader
from pgoutput_construct.postgres._frames import Gatherer
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.rows import RowReader
from pgoutput_construct.stream.session import Session
from pgoutput_construct.wire import Lsn, Timestamp, XLogData, build_frame
from pgoutput_construct.wire.messages import Insert, PgoutputMessage, Relation, RelationColumn, Type
from pgoutput_construct.wire.protocol import CHANGES, UNREAD

__all__ = ["CommittedChange", "LiveBatch", "LiveBatches", "load_kernels"]

Numbers = NDArray[np.int64]

_DESCRIBING: Final = (Relation, Type)
_HAVE_ROWS: Final = CHANGES | UNREAD
_FEW: Final = 8
"""Fewer rows of a table than this are read one by one."""


class CommittedChange(NamedTuple):
    """One change of one row; of a whole table for a truncate."""

    table: str
    """Schema and name, as SQL writes them."""
    op: str
    """``insert``, ``update``, ``delete`` or ``truncate``."""
    new: dict[str, Any] | None
    """The new row by column name, without the columns in ``unchanged``."""
    old: dict[str, Any] | None
    """The old row, or only its key columns; None if it was not sent."""
    unchanged: tuple[str, ...]
    """The columns of the new row whose value was not sent: TOASTed ones that the UPDATE did not change."""
    lsn: Lsn
    """The LSN of the change."""


_committed_change: Final = partial(tuple.__new__, CommittedChange)
_lsn: Final = partial(int.__new__, Lsn)


class LiveBatch(NamedTuple):
    """What some frames contain."""

    items: list[Any]
    """In order: messages, lists of CommittedChange instead of those that change rows, frames that are no XLogData, and
    errors, each instead of what it is about."""
    size: int
    """Bytes of the messages."""


class LiveBatches:
    """Reads the batches of one connection, one after the other; streaming is off."""

    def __init__(self, layout: Mapping[str, Any], values: Literal["python", "raw"], *, as_messages: bool) -> None:
        """Begin at the beginning of a connection.

        Args:
            layout: The options of START_REPLICATION that determine layouts.
            values: As of ``RowReader``.
            as_messages: Whether rows stay messages.
        """
        self._layout = dict(layout)
        self._session = Session(**layout)
        self._rows = RowReader(values=values)
        self._loader = ValueLoader(self._rows.relations.types) if values == "python" else None
        self._as_messages = as_messages

    def read(self, frames: Frames) -> LiveBatch:
        """Read the next frames, at least one."""
        with _without_collection():
            return self._read(frames)

    def _read(self, frames: Frames) -> LiveBatch:
        batch = split_frames(frames, self._layout)
        index = index_batch(batch.payloads, **self._layout)
        found: list[Any] = [None] * len(index)
        are_rows = index.valid & np.isin(index.tags, ROW_TAGS) & (not self._as_messages)
        others = np.flatnonzero(~are_rows).tolist()
        lsns = list(map(_lsn, batch.wal_start.view(np.uint64).tolist()))
        self._read_all(index, np.flatnonzero(are_rows), others, found, lsns)
        # A frame that is no XLogData comes before the payload that has as many before it.
        stops = [(number, 0, frame) for number, frame in batch.others]
        stops += [(number, 1, found[number]) for number in others]
        items, begin = list[Any](), 0
        for number, is_payload, item in sorted(stops, key=itemgetter(0, 1)):
            items += _together(found[begin:number])
            items.append(item)
            begin = number + is_payload
        items += _together(found[begin:])
        if batch.error is not None:
            items.append(batch.error)
        return LiveBatch(items, int((index.ends - index.starts).sum()))

    def _read_all(self, index: BatchIndex, rows: Numbers, others: list[int], found: list[Any], lsns: list[Lsn]) -> None:
        """Set ``found`` to what each payload contains, or to an error, after which nothing counts."""
        begin = 0
        for number in others:
            try:
                message = self._session.parse(index.payload(number))
            except PgoutputError as error:
                found[number] = error
                break
            if isinstance(message, _DESCRIBING):
                # Rows before it are described by what came before.
                begin = self._read_rows(index, rows, begin, number, found, lsns)
                self._changes(message, lsns[number])
            is_change = type(message) in _HAVE_ROWS and not self._as_messages
            found[number] = self._changes(message, lsns[number]) if is_change else message
        self._read_rows(index, rows, begin, len(index), found, lsns)

    def _read_rows(
        self, index: BatchIndex, rows: Numbers, begin: int, end: int, found: list[Any], lsns: list[Lsn]
    ) -> int:
        """Read the rows from ``begin`` on whose payloads are before ``end``; return where the next ones begin."""
        stop = int(np.searchsorted(rows, end))
        chosen = rows[begin:stop]
        oids = index.rows["relation_oid"][chosen]
        for oid in np.unique(oids).tolist():
            self._read_table(index, chosen[oids == oid], oid, found, lsns)
        return stop

    def _read_table(self, index: BatchIndex, rows: Numbers, oid: int, found: list[Any], lsns: list[Lsn]) -> None:
        left = rows
        if len(rows) >= _FEW and (relation := self._described(oid)) is not None:
            loaded = load_rows(index, rows, relation, self._loader)
            left, numbers = rows[loaded.left], rows.tolist()
            known = repeat(full_name(relation)), loaded.ops, loaded.new, loaded.old, repeat(())
            changes = map(_committed_change, zip(*known, [lsns[number] for number in numbers], strict=False))
            for number, change in zip(numbers, changes, strict=True):
                found[number] = change
        for row in left.tolist():
            found[row] = self._changes(index.message(row), lsns[row])

    def _described(self, oid: int) -> Relation | None:
        try:
            return self._rows.relations.get(oid)
        except PgoutputError:
            return None  # which is the error of each of its rows

    def _changes(self, message: PgoutputMessage, lsn: Lsn) -> list[CommittedChange] | PgoutputError:
        try:
            return [
                CommittedChange(full_name(row.relation), row.op, row.new, row.old, row.unchanged, lsn)
                for row in self._rows.read(message)
            ]
        except PgoutputError as error:
            return error


@contextmanager
def _without_collection() -> Iterator[None]:
    """Have Python not look for cyclic garbage while the block runs.

    The rows of a batch are some ten thousand dicts and tuples without cycles. While they are made, Python would go
    through them a dozen times, and count that as reason to go through all objects of the process, again and again:
    which took half of the time of a batch.
    """
    was_enabled = gc.isenabled()
    try:
        if was_enabled:  # else another thread is in such a block, or the program wants none
            gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()


def _together(found: list[Any]) -> Iterator[list[CommittedChange] | PgoutputError]:
    """Yield the changes of consecutive rows as one list; an error stands alone."""
    if not found:
        return
    if {*map(type, found)} == {CommittedChange}:
        yield found
        return
    for item in found:
        if type(item) is CommittedChange:
            yield [item]
        elif item is not None:
            yield item


_LAYOUT: Final[Mapping[str, Any]] = {"proto_version": 1, "streaming": "off"}


@cache
def load_kernels() -> None:
    """Load the kernels from numba's cache, or compile them; once per process.

    They are called with the argument types of a stream: some rows of one table.
    """
    Gatherer()
    row = Insert(None, 1, (b"1", b"a"))
    described = Relation(None, 1, "public", "t", "d", (RelationColumn(1, "a", 23, -1), RelationColumn(0, "b", 25, -1)))
    session, messages = Session(**_LAYOUT), list[PgoutputMessage]([described, *[row] * _FEW])
    sent = (XLogData(Lsn(1), Lsn(1), Timestamp(0), session.build(each)) for each in messages)
    frames = Frames.of(*(build_frame(each, **_LAYOUT) for each in sent))
    LiveBatches(_LAYOUT, "python", as_messages=False).read(Frames(frames.data, frames.ends))
