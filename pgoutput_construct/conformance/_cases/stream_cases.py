"""Cases of transactions that are streamed before they end, in one layout of Stream Abort and in the other."""

from collections.abc import Callable

from pgoutput_construct.conformance.case_group import MESSAGES, PARALLEL, STREAMED, STREAMED_ON, CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.conformance.steps import ExpectHeld, ExpectReported, SendKeepalive
from pgoutput_construct.wire import messages as m

__all__ = ["PARALLEL_GROUP", "STREAMS"]

STREAMS = CaseGroup("streams", "Streamed transactions")
PARALLEL_GROUP = CaseGroup("parallel", "Streamed transactions with streaming = parallel")
_COMMIT = "worker.c apply_handle_stream_start(), apply_handle_stream_commit(), apply_spooled_messages()"
_ABORT = "worker.c apply_handle_stream_abort()"
_SUB_ABORT = "worker.c stream_abort_internal(): what a subtransaction and those after it wrote is cut off by its xid"
_XID = "protocol-logicalrep-message-formats-Insert: that of the subtransaction, if any"
_RELATION = "pgoutput.c maybe_send_schema(), cleanup_rel_sync_cache(): tables are described once a stream, with an xid"


@STREAMS.case("one-segment", _COMMIT, needs=STREAMED)
def one_segment(w: CaseWriter) -> None:
    """Report a transaction that came in one segment when its Stream Commit has come."""
    orders = w.orders()
    w.stream().segment(orders.insert({"id": 1, "note": "one"}), orders.insert({"id": 2, "note": "two"})).commit()


@STREAMS.case("several-segments", _COMMIT, needs=STREAMED)
def several_segments(w: CaseWriter) -> None:
    """Report the changes of all segments of a transaction as one transaction, in their order."""
    orders, stream = w.orders(), w.stream()
    for number in range(1, 5):
        stream.segment(orders.insert({"id": number, "note": "more"}))
    stream.segment(orders.update({"id": 1, "note": "first"}), orders.delete({"id": 2}))
    stream.commit()


@STREAMS.case("held-until-commit", _COMMIT, needs=STREAMED)
def held_until_commit(w: CaseWriter) -> None:
    """Report nothing of a streamed transaction before its Stream Commit has come."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    stream = w.stream().segment(orders.insert({"id": 2, "note": "two"}))
    w.add(ExpectReported(1), ExpectHeld(1))
    stream.segment(orders.insert({"id": 3, "note": "three"}))
    w.add(ExpectHeld(1, 0.1))
    stream.commit()


@STREAMS.case("interleaved", _COMMIT, needs=STREAMED)
def interleaved(w: CaseWriter) -> None:
    """Keep transactions apart whose segments alternate."""
    orders, left, right = w.orders(), w.stream(), w.stream()
    for number in range(3):
        left.segment(orders.insert({"id": number, "note": "left"}))
        right.segment(orders.insert({"id": 10 + number, "note": "right"}))
    left.commit()
    right.commit()


@STREAMS.case("committed-in-other-order", _COMMIT, needs=STREAMED)
def committed_in_other_order(w: CaseWriter) -> None:
    """Report interleaved transactions in the order of their Stream Commits, not of their beginnings."""
    orders = w.orders()
    streams = [w.stream() for _ in range(4)]
    for number, stream in enumerate(streams):
        stream.segment(orders.insert({"id": number, "note": "begun"}))
    for number in (2, 0):
        streams[number].segment(orders.insert({"id": 10 + number, "note": "more"}))
    for number in (3, 1, 2, 0):
        streams[number].commit()


@STREAMS.case("others-between", _COMMIT, needs=STREAMED)
def others_between(w: CaseWriter) -> None:
    """Report transactions that commit between the segments of another one before that one."""
    orders, pairs = w.orders(), w.table("pairs", {"a": "int4"}, key=["a"])
    stream = w.stream().segment(orders.insert({"id": 1, "note": "long"}))
    w.commit(pairs.insert({"a": 1}), orders.insert({"id": 5, "note": "short"}))
    stream.segment(orders.insert({"id": 2, "note": "long"}), pairs.insert({"a": 2}))
    w.commit(pairs.insert({"a": 3}))
    stream.commit()


@STREAMS.case("empty-segments", "reorderbuffer.c ReorderBufferStreamTXN(): pgoutput_stream_start()", needs=STREAMED)
def empty_segments(w: CaseWriter) -> None:
    """Take segments without changes, and a transaction of nothing else."""
    orders, nothing, stream = w.orders(), w.stream(), w.stream()
    nothing.segment()
    stream.segment().segment(orders.insert({"id": 1, "note": "one"})).segment()
    nothing.segment().commit()
    stream.commit()


@STREAMS.case("subtransaction-kept", _XID, needs=STREAMED)
def subtransaction_kept(w: CaseWriter) -> None:
    """Report changes of subtransactions, which have xids of their own, as those of their transaction."""
    orders, stream = w.orders(), w.stream()
    first, second = w.xid(), w.xid()
    stream.segment(orders.insert({"id": 1, "note": "top"}))
    stream.start()
    stream.changes(orders.insert({"id": 2, "note": "first"}), sub=first)
    stream.changes(orders.insert({"id": 3, "note": "second"}), sub=second)
    stream.changes(orders.insert({"id": 4, "note": "top"}))
    stream.stop()
    stream.commit()


@STREAMS.case("relation-in-each", _RELATION, needs=STREAMED)
def relation_in_each(w: CaseWriter) -> None:
    """Take the Relation that each stream has, with its xid, though the table is known."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    first, second = w.stream(), w.stream()
    first.segment(orders.insert({"id": 2, "note": "two"}))
    second.segment(orders.insert({"id": 3, "note": "three"}))
    second.commit()
    first.commit()
    w.commit(orders.update({"id": 1, "note": "uno"}))


@STREAMS.case("relation-of-a-subtransaction", _RELATION, needs=STREAMED)
def relation_of_a_subtransaction(w: CaseWriter) -> None:
    """Read a table that was described by a subtransaction in the segments after it."""
    orders, stream = w.orders(), w.stream()
    stream.segment(orders.insert({"id": 1, "note": "sub"}), sub=w.xid())
    stream.segment(orders.insert({"id": 2, "note": "top"}))
    stream.commit()


@STREAMS.case("relation-stays-known", "pgoutput.c cleanup_rel_sync_cache(): schema_sent once committed", needs=STREAMED)
def relation_stays_known(w: CaseWriter) -> None:
    """Read a table outside of streams by the Relation of a stream that has committed: it is not sent again."""
    orders = w.orders()
    w.stream().segment(orders.insert({"id": 1, "note": "streamed"})).commit()
    w.known(orders)
    w.commit(orders.insert({"id": 2, "note": "plain"}))


@STREAMS.case("altered-in-stream", f"{_RELATION}; relation.c logicalrep_relmap_update()", needs=STREAMED)
def altered_in_stream(w: CaseWriter) -> None:
    """Read changes of a streamed transaction by the Relation before them, where it alters its table."""
    orders, stream = w.orders(), w.stream()
    stream.segment(orders.insert({"id": 1, "note": "one"}))
    wider = w.alter(orders, columns={"extra": "text", "id": "int4", "note": "text"})
    stream.segment(wider.insert({"id": 2, "note": "two", "extra": "more"}))
    stream.commit()
    w.commit(wider.insert({"id": 3, "note": "three", "extra": "plain"}))


@STREAMS.case("all-kinds-of-changes", f"{_COMMIT}; worker.c handle_streamed_transaction()", needs=STREAMED)
def all_kinds_of_changes(w: CaseWriter) -> None:
    """Report inserts, updates, deletes and truncates of streamed transactions, values that were not sent included."""
    mood = m.Type(type_oid=16500, namespace="public", name="mood")
    columns = {"id": "int4", "note": "mood", "big": "text"}
    orders = w.table("orders", columns, key=["id"], types={"mood": mood})
    pairs = w.table("pairs", {"a": "int4", "b": "text"})
    w.commit(pairs.insert({"a": 0, "b": "gone"}))
    stream = w.stream()
    stream.segment(orders.insert({"id": 1, "note": "ok", "big": "x" * 50}), pairs.truncate())
    stream.segment(orders.update({"id": 1, "note": "sad", "big": m.UNCHANGED}), pairs.insert({"a": 1, "b": "one"}))
    stream.segment(orders.update({"id": 2, "note": None, "big": m.UNCHANGED}, {"id": 1}))
    stream.segment(pairs.update({"a": 1, "b": None}, {"a": 1, "b": "one"}), orders.delete({"id": 2}))
    stream.segment(pairs.delete({"a": 1, "b": None}))
    stream.commit()


@STREAMS.case("origin", "worker.c apply_handle_origin(); pgoutput.c pgoutput_stream_start()", needs=STREAMED)
def origin(w: CaseWriter) -> None:
    """Take the Origin after the first Stream Start."""
    orders, stream = w.orders(), w.stream()
    stream.start()
    stream.origin("pg_16391")
    stream.changes(orders.insert({"id": 1, "note": "far"}))
    stream.stop()
    stream.segment(orders.insert({"id": 2, "note": "far"}))
    stream.commit()


@STREAMS.case("keepalives", "worker.c LogicalRepApplyLoop(): 'k' at any time", needs=STREAMED)
def keepalives(w: CaseWriter) -> None:
    """Take keepalives between segments and inside of one."""
    orders, stream = w.orders(), w.stream()
    stream.segment(orders.insert({"id": 1, "note": "one"}))
    w.keepalive()
    alive = SendKeepalive(w.lsn)
    stream.segment(alive, orders.insert({"id": 2, "note": "two"}), alive, orders.insert({"id": 3, "note": "three"}))
    w.keepalive()
    stream.commit()


@STREAMS.case("many-segments", _COMMIT, needs=STREAMED)
def many_segments(w: CaseWriter) -> None:
    """Take a transaction of 300 segments, among which others commit."""
    orders, stream = w.orders(), w.stream()
    for number in range(300):
        stream.segment(orders.insert({"id": number, "note": "of many"}))
        if number % 50 == 49:
            w.commit(orders.insert({"id": 1000 + number, "note": "short"}))
    stream.commit()


@STREAMS.case("many-at-a-time", _COMMIT, needs=STREAMED)
def many_at_a_time(w: CaseWriter) -> None:
    """Keep 40 transactions apart that are streamed at a time."""
    orders = w.orders()
    streams = [w.stream() for _ in range(40)]
    for part in range(3):
        for number, stream in enumerate(streams):
            stream.segment(orders.insert({"id": 1000 * part + number, "note": f"part {part}"}))
    for stream in reversed(streams):
        stream.commit()


@STREAMS.case("xid-again", "transam.h: xids wrap around; worker.c subxact_info_write() by xid", needs=STREAMED)
def xid_again(w: CaseWriter) -> None:
    """Take a streamed transaction with the xid of one that has committed."""
    orders = w.orders()
    w.stream(900).segment(orders.insert({"id": 1, "note": "one"})).commit()
    w.stream(900).segment(orders.insert({"id": 2, "note": "two"})).commit()


@STREAMS.case("xid-unsigned", "TransactionId in c.h is unsigned", needs=STREAMED)
def xid_unsigned(w: CaseWriter) -> None:
    """Take xids above 2^31 in streams."""
    orders, stream = w.orders(), w.stream(0xFFFFFFF0)
    stream.segment(orders.insert({"id": 1, "note": "top"})).segment(
        orders.insert({"id": 2, "note": "sub"}), sub=0x90000000
    )
    stream.commit()


@STREAMS.case("message", "reorderbuffer.c ReorderBufferApplyMessage()", needs={**STREAMED, **MESSAGES})
def message(w: CaseWriter) -> None:
    """Report a transactional message of a stream with its transaction, and one that is not transactional at once."""
    orders, stream = w.orders(), w.stream()
    stream.segment(orders.insert({"id": 1, "note": "one"}))
    w.message("heartbeat", b"at once")
    stream.start()
    stream.message("audit", b"in the stream")
    stream.changes(orders.insert({"id": 2, "note": "two"}))
    stream.stop()
    w.message("heartbeat", b"again")
    stream.commit()


def _aborts(name: str, reason: str = _SUB_ABORT) -> Callable[[Callable[[CaseWriter], None]], None]:
    """Return a decorator of a case that both groups have, as ``CaseGroup.case`` is one of a single group."""

    def decorate(write: Callable[[CaseWriter], None]) -> None:
        for group, needs in ((STREAMS, STREAMED_ON), (PARALLEL_GROUP, PARALLEL)):
            group.case(name, reason, needs=needs)(write)

    return decorate


@_aborts("aborted", _ABORT)
def aborted(w: CaseWriter) -> None:
    """Report nothing of a streamed transaction that is rolled back."""
    orders, lost = w.orders(), w.stream()
    lost.segment(orders.insert({"id": 1, "note": "lost"})).segment(orders.insert({"id": 2, "note": "lost"}))
    lost.abort()
    w.commit(orders.insert({"id": 1, "note": "kept"}))


@_aborts("one-of-two-aborted", _ABORT)
def one_of_two_aborted(w: CaseWriter) -> None:
    """Discard a transaction that is rolled back, and nothing of one that is streamed at the same time."""
    orders, lost, kept = w.orders(), w.stream(), w.stream()
    for number in range(3):
        lost.segment(orders.insert({"id": number, "note": "lost"}))
        kept.segment(orders.insert({"id": 10 + number, "note": "kept"}))
    lost.abort()
    kept.segment(orders.insert({"id": 20, "note": "kept"}))
    kept.commit()


@_aborts("subtransaction-aborted")
def subtransaction_aborted(w: CaseWriter) -> None:
    """Discard the changes of a subtransaction that is rolled back, and report the rest of its transaction."""
    orders, stream, sub = w.orders(), w.stream(), w.xid()
    stream.segment(orders.insert({"id": 1, "note": "kept"}))
    stream.segment(orders.insert({"id": 2, "note": "lost"}), sub=sub)
    stream.abort(sub)
    stream.segment(orders.insert({"id": 2, "note": "instead"}))
    stream.commit()


@_aborts("subtransaction-aborted-last")
def subtransaction_aborted_last(w: CaseWriter) -> None:
    """Discard the changes of a subtransaction that is rolled back, where they share a segment with others."""
    orders, stream, sub = w.orders(), w.stream(), w.xid()
    stream.start()
    stream.changes(orders.insert({"id": 1, "note": "kept"}))
    stream.changes(orders.insert({"id": 2, "note": "lost"}), orders.insert({"id": 3, "note": "lost"}), sub=sub)
    stream.stop()
    stream.abort(sub)
    stream.commit()


@_aborts("every-other-aborted")
def one_of_several_aborted(w: CaseWriter) -> None:
    """Discard exactly the changes of those subtransactions that are rolled back."""
    orders, stream = w.orders(), w.stream()
    subs = [w.xid() for _ in range(6)]
    for number, sub in enumerate(subs):
        stream.segment(orders.insert({"id": number, "note": "of a subtransaction"}), sub=sub)
        if number % 2:
            stream.abort(sub)
    stream.commit()


@_aborts(
    "nested-aborted", "reorderbuffer.c: aborts of subtransactions come one by one, inner ones first; " + _SUB_ABORT
)
def nested_aborted(w: CaseWriter) -> None:
    """Discard a subtransaction and those in it, whose aborts come one by one, the inner ones first."""
    orders, stream, outer, inner = w.orders(), w.stream(), w.xid(), w.xid()
    stream.segment(orders.insert({"id": 1, "note": "kept"}))
    stream.segment(orders.insert({"id": 2, "note": "outer"}), sub=outer)
    stream.segment(orders.insert({"id": 3, "note": "inner"}), sub=inner)
    stream.abort(inner, outer)
    stream.segment(orders.insert({"id": 4, "note": "kept"}))
    stream.commit()


@_aborts("inner-aborted")
def inner_aborted(w: CaseWriter) -> None:
    """Discard an inner subtransaction alone, and report those around it."""
    orders, stream, outer, inner = w.orders(), w.stream(), w.xid(), w.xid()
    stream.segment(orders.insert({"id": 1, "note": "outer"}), sub=outer)
    stream.segment(orders.insert({"id": 2, "note": "inner"}), sub=inner)
    stream.abort(inner)
    stream.segment(orders.insert({"id": 2, "note": "outer again"}), sub=outer)
    stream.commit()


@_aborts("everything-aborted")
def all_of_it_aborted(w: CaseWriter) -> None:
    """Take a transaction that commits after all its subtransactions were rolled back: nothing is left of it."""
    orders, stream, first, second = w.orders(), w.stream(), w.xid(), w.xid()
    stream.segment(orders.insert({"id": 1, "note": "lost"}), sub=first)
    stream.abort(first)
    stream.segment(orders.insert({"id": 2, "note": "lost"}), sub=second)
    stream.abort(second)
    stream.commit()


@_aborts(
    "unseen-subtransaction-aborted",
    "worker.c stream_abort_internal(): a subtransaction that has sent nothing is not found, and nothing is done",
)
def unseen_subtransaction_aborted(w: CaseWriter) -> None:
    """Ignore the abort of a subtransaction that has sent nothing."""
    orders, stream = w.orders(), w.stream()
    stream.segment(orders.insert({"id": 1, "note": "kept"}))
    stream.abort(w.xid())
    stream.segment(orders.insert({"id": 2, "note": "kept"}))
    stream.commit()


@_aborts("altered-and-aborted", _RELATION)
def altered_and_aborted(w: CaseWriter) -> None:
    """Read a table by its former Relation, which is sent again, after a transaction that altered it is rolled back."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    wider = w.alter(orders, columns={"extra": "text", "id": "int4", "note": "text"})
    lost = w.stream()
    lost.segment(wider.insert({"extra": "x", "id": 2, "note": "lost"}))
    lost.abort()
    w.describe(orders)
    w.commit(orders.insert({"id": 3, "note": "three"}))


@_aborts("of-two-streams")
def same_sub_xid_twice(w: CaseWriter) -> None:
    """Discard a subtransaction of one of two streamed transactions."""
    orders, one, two, sub = w.orders(), w.stream(), w.stream(), w.xid()
    one.segment(orders.insert({"id": 1, "note": "kept"}), sub=sub)
    two.segment(orders.insert({"id": 2, "note": "kept"}))
    one.commit()
    other = w.xid()
    two.segment(orders.insert({"id": 3, "note": "lost"}), sub=other)
    two.abort(other)
    two.commit()


@PARALLEL_GROUP.case("lost-in-a-crash", "reorderbuffer.c ReorderBufferAbortOld(): no LSN, no time", needs=PARALLEL)
def lost_in_a_crash(w: CaseWriter) -> None:
    """Discard a transaction whose Stream Abort has neither an LSN nor a time: the server crashed before it ended."""
    orders, lost = w.orders(), w.stream()
    lost.segment(orders.insert({"id": 1, "note": "lost"}))
    lost.abort(is_said=False)
    w.commit(orders.insert({"id": 1, "note": "kept"}))


@PARALLEL_GROUP.case("committed", _COMMIT + "; applyparallelworker.c", needs=PARALLEL)
def parallel_committed(w: CaseWriter) -> None:
    """Report interleaved transactions as with streaming = on, in the order of their commits."""
    orders, left, right = w.orders(), w.stream(), w.stream()
    for number in range(3):
        left.segment(orders.insert({"id": number, "note": "left"}))
        right.segment(orders.insert({"id": 10 + number, "note": "right"}))
    right.commit()
    left.commit()
