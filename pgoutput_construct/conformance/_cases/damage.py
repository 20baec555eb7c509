"""Cases of bytes that no server sends, and of what a client does not know."""

from collections.abc import Callable, Mapping
from typing import Final

from pgoutput_construct.conformance.case_group import STREAMED, TWO_PHASE, CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.conformance.conformance_case import Level, Needs, Outcome
from pgoutput_construct.conformance.steps import ExpectReported, SendBytes, SendCopyData
from pgoutput_construct.testing.fake_tables import FakeTable
from pgoutput_construct.wire import PrimaryKeepalive, PrimaryStatusUpdate, XLogData
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.engine import build
from pgoutput_construct.wire.protocol import UpdateOldKind
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["DAMAGE", "VERSIONS"]

DAMAGE = CaseGroup("damage", "Damaged and hostile bytes")
VERSIONS = CaseGroup("versions", "What a client does not know")
_SHORT: Final = "pqformat.c pq_getmsgint(), pq_copymsgbytes(): insufficient data left in message"
_MEBIBYTES: Final = 256 << 20
"""What a client may need of memory for a message of a few bytes: a lot, but not what a length in it claims."""


def _begun(w: CaseWriter) -> FakeTable:
    """Write a first transaction, which must be reported before what is damaged comes; return its table."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}), orders.insert({"id": 2, "note": "two"}))
    w.add(ExpectReported(1))
    return orders


_Damage = Callable[[FakeTable], bytes]


def _built(message: m.PgoutputMessage) -> bytes:
    return build(message, proto_version=1)


def _insert(table: FakeTable) -> bytes:
    return _built(table.insert({"id": 3, "note": "three"}).message)


def _update(table: FakeTable) -> bytes:
    return _built(table.update({"id": 3, "note": "drei"}, {"id": 1}).message)


def _delete(table: FakeTable) -> bytes:
    return _built(table.delete({"id": 1}).message)


def _relation(table: FakeTable) -> bytes:
    return _built(table.relation)


def _tuple(table: FakeTable, rest: bytes) -> bytes:
    """Return an Insert whose tuple is what is given, instead of one without columns."""
    return _built(m.Insert(None, table.oid, ()))[: -len(_COUNT)] + rest


def _truncate(table: FakeTable, count: bytes) -> bytes:
    """Return a Truncate of one table, with another number of tables."""
    message = _built(m.Truncate(None, 0, (table.oid,)))
    return message[:1] + count + message[1 + len(count) :]


def _flagged(message: bytes) -> bytes:
    """Return a message with another value of its flags, which are its first field."""
    return message[:1] + b"\1" + message[2:]


def _value(length: int) -> bytes:
    """Return a column whose text has another length than it says."""
    return _ONE[:1] + length.to_bytes(4, "big", signed=True) + b"short"


_COUNT: Final = _built(m.Insert(None, 0, (b"3", b"3")))[6:8]
"""The number of columns of the table."""
_ONE: Final = _built(m.Insert(None, 0, (b"3",)))[8:]
"""A column with the text 3."""
_NEW: Final = _built(m.Insert(None, 0, ()))[5:6]
"""What announces a new row, after the tag and the OID."""
_KEY: Final = UpdateOldKind.KEY.encode()

_DAMAGED: Final[Mapping[str, tuple[_Damage, str, str]]] = {
    "insert-cut-in-value": (lambda table: _insert(table)[:-2], _SHORT, "an Insert that ends within a value"),
    "insert-cut-in-length": (lambda table: _insert(table)[:12], _SHORT, "an Insert that ends within a length"),
    "insert-cut-in-oid": (lambda table: _insert(table)[:3], _SHORT, "an Insert that ends within its OID"),
    "insert-cut-before-column": (
        lambda table: _tuple(table, _COUNT + _ONE),
        _SHORT,
        "an Insert that has fewer columns than it says",
    ),
    "update-cut": (lambda table: _update(table)[:-3], _SHORT, "an Update that ends within its new row"),
    "update-without-new": (lambda table: _update(table)[:20], _SHORT, "an Update that ends after its old key"),
    "delete-cut": (lambda table: _delete(table)[:-1], _SHORT, "a Delete that ends within its key"),
    "truncate-cut": (
        lambda table: _truncate(table, b"\0\0\0\2"),
        _SHORT,
        "a Truncate that has fewer tables than it says",
    ),
    "relation-cut": (lambda table: _relation(table)[:-4], _SHORT, "a Relation that ends within its last column"),
    "relation-cut-in-name": (
        lambda table: _relation(table)[:10],
        "pqformat.c pq_getmsgstring(): invalid string in message",
        "a Relation that ends within a name, which has no end",
    ),
    "type-cut": (
        lambda table: _built(m.Type(type_oid=16500, namespace="public", name="mood"))[:8],
        "pqformat.c pq_getmsgstring(): invalid string in message",
        "a Type that ends within a name",
    ),
    "origin-cut": (lambda table: _built(m.Origin(Lsn(0), ""))[:5], _SHORT, "an Origin that ends within its LSN"),
    "value-of-unknown-kind": (
        lambda table: _tuple(table, _COUNT + _ONE + b"x"),
        "proto.c logicalrep_read_tuple(): unrecognized data representation type",
        "a value of an unknown kind",
    ),
    "length-beyond-the-message": (
        lambda table: _tuple(table, _COUNT + _ONE + _value(1000)),
        _SHORT,
        "a value whose length goes beyond the message",
    ),
    "negative-length": (
        lambda table: _tuple(table, _COUNT + _ONE + _value(-5)),
        "proto.c logicalrep_read_tuple(): palloc() refuses a negative size",
        "a value with a negative length",
    ),
    "huge-length": (
        lambda table: _tuple(table, _COUNT + _ONE + _value(0x7FFFFFF0)),
        "mcxt.c: invalid memory alloc request size",
        "a value of 2 GiB in a message of a few bytes, without allocating that",
    ),
    "huge-column-count": (
        lambda table: _tuple(table, b"\xff\xff" + _ONE + _ONE),
        _SHORT,
        "an Insert of 65,535 columns in a message of a few bytes",
    ),
    "huge-table-count": (
        lambda table: _truncate(table, b"\x7f\xff\xff\xf0"),
        _SHORT,
        "a Truncate of 2 billion tables in a message of a few bytes, without allocating for them",
    ),
    "relation-huge-column-count": (
        lambda table: _relation(table)[:20] + b"\xff\xff" + _relation(table)[22:],
        _SHORT,
        "a Relation of 65,535 columns in a message of a few bytes",
    ),
    "insert-without-new": (
        lambda table: _insert(table).replace(_NEW, _KEY, 1),
        "proto.c logicalrep_read_insert(): expected new tuple",
        "an Insert with an old key instead of a new row",
    ),
    "update-of-unknown-part": (
        lambda table: _update(table)[:5] + b"Q" + _update(table)[6:],
        "proto.c logicalrep_read_update(): expected action 'N', 'O' or 'K'",
        "an Update with an unknown part",
    ),
    "update-with-two-keys": (
        lambda table: _update(table).replace(_NEW, _KEY, 1),
        "proto.c logicalrep_read_update(): expected action 'N'",
        "an Update with an old key instead of its new row",
    ),
    "delete-of-unknown-part": (
        lambda table: _delete(table)[:5] + _NEW + _delete(table)[6:],
        "proto.c logicalrep_read_delete(): expected action 'O' or 'K'",
        "a Delete with a new row instead of an old one",
    ),
    "unknown-table": (
        lambda table: _built(m.Insert(None, 99_999, (b"3", b"3"))),
        "relation.c logicalrep_rel_open(): no relation map entry for remote relation ID",
        "a change of a table that was not described",
    ),
    "commit-of-another": (
        lambda table: _built(m.Commit(Lsn(0x5000000), Lsn(0x5000040), Timestamp(0))),
        "worker.c apply_handle_commit(): incorrect commit LSN",
        "a Commit whose LSN is not that of its Begin",
    ),
    "commit-with-flags": (
        lambda table: _flagged(_built(m.Commit(Lsn(0), Lsn(0), Timestamp(0)))),
        "proto.c logicalrep_read_commit(): unrecognized flags in commit message",
        "a Commit with unknown flags",
    ),
    "commit-cut": (
        lambda table: _built(m.Commit(Lsn(0), Lsn(0), Timestamp(0)))[:-4],
        _SHORT,
        "a Commit that ends within its LSNs",
    ),
    "begin-cut": (
        lambda table: _built(m.Begin(Lsn(0x2000000), Timestamp(0), 0))[:-3],
        _SHORT,
        "a Begin that ends within its xid",
    ),
    "begin-without-lsn": (
        lambda table: _built(m.Begin(Lsn(0), Timestamp(0), 900)),
        "proto.c logicalrep_read_begin(): final_lsn not set in begin message",
        "a Begin without an LSN",
    ),
    "stop-outside-of-streams": (
        lambda table: m.StreamStop.TAG,
        "worker.c apply_handle_stream_stop(): STREAM STOP message without STREAM START",
        "a Stream Stop without a Stream Start",
    ),
    "garbage": (
        lambda table: bytes.fromhex("ff00c3a97ffffffe80000000de"),
        "worker.c apply_dispatch(): invalid logical replication message type",
        "bytes that are no message at all",
    ),
}
"""The cases of one damaged message within a transaction: the message, the reason, and what it is."""


def _add_damaged(name: str, damage: _Damage, reason: str, what: str) -> None:
    def write(w: CaseWriter) -> None:
        table = _begun(w)
        w.memory = _MEBIBYTES
        w.refuse(table.insert({"id": 5, "note": "of the same transaction"}), damaged=damage(table))

    DAMAGE.add(name, reason, f"Refuse {what}; report nothing of its transaction, and nothing after it.", write)


for _name, _each in _DAMAGED.items():
    _add_damaged(_name, *_each)


def _streams(name: str, reason: str, what: str, needs: Needs, write: Callable[[CaseWriter, FakeTable], None]) -> None:
    def play(w: CaseWriter) -> None:
        table = _begun(w)
        write(w, table)
        w.outcome = Outcome.REFUSED

    DAMAGE.add(name, reason, f"Refuse {what}; report nothing of it, and nothing after it.", play, needs=needs)


def _stream_start_twice(w: CaseWriter, table: FakeTable) -> None:
    stream = w.stream()
    stream.start()
    stream.changes(table.insert({"id": 5, "note": "five"}))
    w.refused = len(w.script)
    stream.start()
    stream.stop()
    stream.commit()
    w.unexpect()


def _commit_within_a_segment(w: CaseWriter, table: FakeTable) -> None:
    stream = w.stream()
    stream.start()
    stream.changes(table.insert({"id": 5, "note": "five"}))
    w.refused = len(w.script)
    stream.commit()
    w.unexpect()


def _abort_within_a_segment(w: CaseWriter, table: FakeTable) -> None:
    stream = w.stream()
    stream.start()
    stream.changes(table.insert({"id": 5, "note": "five"}))
    w.refused = len(w.script)
    stream.abort()
    stream.stop()


def _stream_without_an_xid(w: CaseWriter, table: FakeTable) -> None:
    w.refused = len(w.script)
    w.stream(0).segment(table.insert({"id": 5, "note": "five"})).commit()
    w.unexpect()


def _change_without_an_xid(w: CaseWriter, table: FakeTable) -> None:
    stream = w.stream()
    stream.segment(table.insert({"id": 4, "note": "four"}))
    stream.start()
    w.refused = len(w.script)
    stream.changes(table.insert({"id": 5, "note": "five"}), sub=0)
    stream.stop()
    stream.commit()
    w.unexpect()


_streams(
    "start-within-a-segment",
    "worker.c apply_handle_stream_start(): duplicate STREAM START message",
    "a Stream Start within a segment",
    STREAMED,
    _stream_start_twice,
)
_streams(
    "commit-within-a-segment",
    "worker.c apply_handle_stream_commit(): STREAM COMMIT message without STREAM STOP",
    "a Stream Commit within a segment",
    STREAMED,
    _commit_within_a_segment,
)
_streams(
    "abort-within-a-segment",
    "worker.c apply_handle_stream_abort(): STREAM ABORT message without STREAM STOP",
    "a Stream Abort within a segment",
    STREAMED,
    _abort_within_a_segment,
)
_streams(
    "stream-without-an-xid",
    "worker.c apply_handle_stream_start(): invalid transaction ID in streamed replication transaction",
    "a stream of the xid 0",
    STREAMED,
    _stream_without_an_xid,
)
_streams(
    "change-without-an-xid",
    "worker.c handle_streamed_transaction(): invalid transaction ID in streamed replication transaction",
    "a change of the xid 0 in a stream",
    STREAMED,
    _change_without_an_xid,
)


def _prepare_of_another(w: CaseWriter, table: FakeTable) -> None:
    unit, xid, start = w.unit(), w.xid(), Lsn(w.lsn + 0x40)
    w.send(m.BeginPrepare(start, Lsn(start + 0x40), w.now, xid, "gid"), unit=unit)
    w.changes([table.insert({"id": 5, "note": "five"})], unit)
    w.refused = len(w.script)
    _, end = w.end_unit(unit)
    w.send(m.Prepare(Lsn(0x5000000), end, w.now, xid, "gid"), end, unit)


_streams(
    "prepare-of-another",
    "worker.c apply_handle_prepare(): incorrect prepare LSN",
    "a Prepare whose LSN is not that of its Begin Prepare",
    TWO_PHASE,
    _prepare_of_another,
)


def _refused_bytes(name: str, reason: str, what: str, step: SendCopyData | SendBytes) -> None:
    def write(w: CaseWriter) -> None:
        table = _begun(w)
        w.memory = _MEBIBYTES
        w.add(step)
        w.outcome = Outcome.REFUSED
        w.commit(table.insert({"id": 5, "note": "after it"}))
        w.unexpect()

    DAMAGE.add(name, reason, f"Refuse {what}, and report nothing after it.", write)


_refused_bytes(
    "frame-cut",
    _SHORT,
    "an XLogData frame that ends within its header",
    SendCopyData(XLogData.TAG + bytes(10), again=True),
)
_refused_bytes(
    "keepalive-cut",
    _SHORT,
    "a keepalive that ends within its LSN",
    SendCopyData(PrimaryKeepalive.TAG + bytes(5), again=True),
)
_refused_bytes(
    "copy-data-without-length",
    "fe-protocol3.c getCopyDataMessage(): lost synchronization with server",
    "a CopyData message whose length is shorter than itself",
    SendBytes(b"d\0\0\0\x02", again=True),
)
_refused_bytes(
    "copy-data-of-negative-length",
    "fe-protocol3.c getCopyDataMessage(): lost synchronization with server",
    "a CopyData message with a negative length",
    SendBytes(b"d\xff\xff\xff\xf0", again=True),
)


@VERSIONS.case(
    "other-frame", "worker.c LogicalRepApplyLoop(): other message types are purposefully ignored", level=Level.SHOULD
)
def other_frame(w: CaseWriter) -> None:
    """Ignore a frame that is neither XLogData nor a keepalive: the status of the primary, which PostgreSQL 19 has."""
    orders = w.orders()
    status = SendCopyData(PrimaryStatusUpdate.TAG + bytes(32))
    w.add(status)
    w.commit(orders.insert({"id": 1, "note": "one"}), status, orders.insert({"id": 2, "note": "two"}))


_UNKNOWN: Final = "worker.c apply_dispatch(): invalid logical replication message type"


@VERSIONS.case("unknown-message", _UNKNOWN)
def unknown_message(w: CaseWriter) -> None:
    """Refuse a message of a type that one does not know: it may mean a change; report nothing after it."""
    table = _begun(w)
    w.refuse(table.insert({"id": 5, "note": "five"}), damaged=b"Z" + _insert(table)[1:])


@VERSIONS.case("unknown-message-between-transactions", _UNKNOWN)
def unknown_message_between_transactions(w: CaseWriter) -> None:
    """Refuse a message of an unknown type between two transactions, and report nothing after it."""
    table = _begun(w)
    w.refused = len(w.script)
    w.send(b"X\0\0\0\1")
    w.commit(table.insert({"id": 5, "note": "five"}))
    w.unexpect()
    w.outcome = Outcome.REFUSED


@VERSIONS.case("unknown-message-in-a-stream", _UNKNOWN, needs=STREAMED)
def unknown_message_in_a_stream(w: CaseWriter) -> None:
    """Refuse a message of an unknown type in a streamed transaction, and report nothing of that."""
    table = _begun(w)
    stream = w.stream()
    stream.start()
    stream.changes(table.insert({"id": 5, "note": "five"}))
    w.refused = len(w.script)
    w.send(b"Z\0\0\2\x8f", w.lsn, stream.unit)
    stream.stop()
    stream.commit()
    w.unexpect()
    w.outcome = Outcome.REFUSED
