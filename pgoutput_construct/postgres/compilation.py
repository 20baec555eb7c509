"""All kernels that a capture calls, compiled before a server waits for it.

numba compiles a kernel when it is first called with arrays of some types, and has it from its cache from then on: the
first capture of a machine does so for half a minute, and for minutes where other programs want the processors, too.
Who reads a stream meanwhile answers no keepalive: the threads of a process compile one after the other.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from pgoutput_construct.changelog.block import Block
from pgoutput_construct.changelog.build import IndexBuilder
from pgoutput_construct.changelog.columns import segment_table
from pgoutput_construct.changelog.footer import Position
from pgoutput_construct.columnar.copied import CopiedRows, CopyFormat
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.compiled.memory import read_only
from pgoutput_construct.postgres.gathering import Gatherer
from pgoutput_construct.postgres.intake import Intake
from pgoutput_construct.stream.session import Session
from pgoutput_construct.wire import Lsn, Timestamp, XLogData, build_frame
from pgoutput_construct.wire import messages as m

__all__ = ["compile_kernels"]

_LAYOUT: Final[dict[str, Any]] = {"proto_version": 4, "streaming": "parallel"}
_OID: Final = 16384
_COLUMNS: Final = (m.RelationColumn(1, "a", 23, -1), m.RelationColumn(0, "b", 25, -1))
_ROW: Final = (b"1", None)
_COPIED: Final = (
    (None, b"1\tab\\\\c\n", b"2\t\\N\n"),
    (True, b"\0\2\0\0\0\1a\xff\xff\xff\xff"),
    (False, b"\0\2\0\0\0\1a\0\0\0\1b"),
)
"""Rows as COPY sends them: as text, or in binary format, where types have it or have it not."""
_COPIED_BYTES: Final = 4096


@cache
def compile_kernels() -> None:
    """Load the kernels from numba's cache, or compile them; it does nothing when it was done in this process.

    They are called with what a capture calls them with: a stream of all messages, and copied rows of both formats.
    """
    Gatherer()
    builder = IndexBuilder()
    _stream(builder)
    for binary, *rows in _COPIED:
        _copy(builder, None if binary is None else [binary] * len(_COLUMNS), rows)
    builder.finish(1)


def _stream(builder: IndexBuilder) -> None:
    intake, session = Intake(_LAYOUT, Position()), Session(**_LAYOUT)
    payloads = [session.build(message) for message in _messages()]
    frames = [build_frame(XLogData(Lsn(1), Lsn(1), Timestamp(0), payload), **_LAYOUT) for payload in payloads]
    for some in (frames[:1], frames[1:]):
        together = Frames.of(*some)
        block = intake.take(Frames(together.data, together.ends)).block
        builder.add(block)
        segment_table([block], 0)
        block.take(np.arange(len(block)))
        block.header(m.Relation)


def _copy(builder: IndexBuilder, binary: Sequence[bool] | None, rows: Sequence[bytes]) -> None:
    described = Session(**_LAYOUT).build(m.Relation(None, _OID, "public", "t", "d", _COLUMNS))
    copied = CopiedRows(CopyFormat(_OID, len(_COLUMNS), _LAYOUT, binary), [described], _COPIED_BYTES)
    content, ends = b"".join(rows), np.cumsum([*map(len, rows)], dtype=np.int64)
    for padding in (0, _COPIED_BYTES):
        copied.add(read_only(np.frombuffer(content + bytes(padding), np.uint8)), ends)
    builder.add(Block.copied(copied.payloads(), 0, 1, 0, _LAYOUT))


def _messages() -> Iterator[m.PgoutputMessage]:
    lsn, time = Lsn(1), Timestamp(0)
    for xid in (None, 9):
        if xid is None:
            yield m.Begin(lsn, time, 3)
            yield m.Origin(lsn, "o")
        else:
            yield m.StreamStart(xid, 1)
        yield m.Type(xid, 70000, "public", "e")
        yield m.Relation(xid, _OID, "public", "t", "d", _COLUMNS)
        for row in (_ROW, (b"1", b"x" * 100)):
            yield m.Insert(xid, _OID, row)
        yield m.Update(xid, _OID, None, None, _ROW)
        yield m.Delete(xid, _OID, "K", _ROW)
        yield m.Truncate(xid, 0, (_OID,))
        yield m.Message(xid, 1, lsn, "", b"")
        if xid is None:
            yield m.Commit(lsn, lsn, time)
        else:
            yield m.StreamStop()
            yield m.StreamAbort(xid, 10, lsn, time)
            yield m.StreamCommit(xid, lsn, lsn, time)
    yield m.BeginPrepare(lsn, lsn, time, 11, "g")
    yield m.Insert(None, _OID, _ROW)
    yield m.Prepare(lsn, lsn, time, 11, "g")
    yield m.CommitPrepared(lsn, lsn, time, 11, "g")
    yield m.StreamStart(12, 1)
    yield m.StreamStop()
    yield m.StreamPrepare(lsn, lsn, time, 12, "h")
    yield m.RollbackPrepared(lsn, lsn, time, time, 12, "h")
