"""Cases of connections that are lost, at every point."""

from pgoutput_construct.conformance.case_group import STREAMED, CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.conformance.conformance_case import CaseServer, Level
from pgoutput_construct.conformance.steps import DropConnection, ExpectConfirmed, ExpectReported, SendBytes
from pgoutput_construct.publisher.refusals import Refusal, error_response
from pgoutput_construct.wire.connection_engine import build_connection
from pgoutput_construct.wire.types import Lsn

__all__ = ["GROUP"]

GROUP = CaseGroup("reconnects", "Connections that are lost")
_AGAIN = "logicaldecoding-explanation: what is not confirmed is sent again; snapbuild.c SnapBuildXactNeedsSkip()"
_WHOLE = "worker.c: a transaction that has not come to its Commit is rolled back with the connection"
_EMPTY = "relation.c logicalrep_relmap_init(): descriptions are those of a connection"
_ONCE = "logicaldecoding-explanation: clients are responsible; origin.c replorigin_session_advance()"
_STREAM = "worker.c apply_handle_stream_start(): files of a stream are those of a worker; first_segment begins anew"


@GROUP.case("before-anything", _AGAIN)
def before_anything(w: CaseWriter) -> None:
    """Connect again when the connection is lost before anything has come."""
    w.add(DropConnection())
    w.commit(w.orders().insert({"id": 1, "note": "one"}))


@GROUP.case("between-transactions", _AGAIN)
def between_transactions(w: CaseWriter) -> None:
    """Report what comes after a connection that was lost between two transactions."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.add(ExpectReported(1), DropConnection())
    w.commit(orders.insert({"id": 2, "note": "two"}))


@GROUP.case("within-a-transaction", _WHOLE)
def within_a_transaction(w: CaseWriter) -> None:
    """Report a transaction once as a whole when the connection was lost within it, and it has come again."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.commit(
        orders.insert({"id": 2, "note": "two"}),
        ExpectReported(1),
        DropConnection(),
        orders.insert({"id": 3, "note": "3"}),
    )


@GROUP.case("before-the-commit", _WHOLE)
def before_the_commit(w: CaseWriter) -> None:
    """Report a transaction once when the connection was lost after its last change, before its Commit."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}), DropConnection("close"))


@GROUP.case("inside-a-message", "pqcomm.c: a message is as long as its length says")
def inside_a_message(w: CaseWriter) -> None:
    """Use nothing of a message of which a part has come when the connection is lost."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    half, _ = w.halves(orders.insert({"id": 2, "note": "x" * 500}))
    w.commit(ExpectReported(1), half, DropConnection("close"), orders.insert({"id": 2, "note": "two"}))


@GROUP.case("closed-in-order", _AGAIN)
def closed_in_order(w: CaseWriter) -> None:
    """Connect again when the server has closed the connection in order."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.add(ExpectReported(1), DropConnection("close"))
    w.commit(orders.insert({"id": 2, "note": "two"}))


@GROUP.case("server-shuts-down", "walsender.c WalSndDone(): CommandComplete once everything is confirmed")
def server_shuts_down(w: CaseWriter) -> None:
    """Connect again when the server has ended the stream, as it does when it is shut down."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.add(ExpectReported(1), DropConnection("copy_done"))
    w.commit(orders.insert({"id": 2, "note": "two"}))


@GROUP.case("server-reports-an-error", "postgres.c ProcessInterrupts(): 57P01; errcodes-appendix")
def server_reports_an_error(w: CaseWriter) -> None:
    """Connect again, or end with the error, when an administrator has terminated the connection."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    said = Refusal("57P01", "terminating connection due to administrator command", fatal=True)
    w.add(ExpectReported(1), SendBytes(build_connection(error_response(said))), DropConnection("close"))
    w.commit(orders.insert({"id": 2, "note": "two"}))


@GROUP.case("several-times", _AGAIN)
def several_times(w: CaseWriter) -> None:
    """Lose nothing over several connections, each of which is lost in another transaction."""
    orders = w.orders()
    for number in range(5):
        w.commit(orders.insert({"id": number, "note": "whole"}))
        cut = ExpectReported(w.reported), DropConnection()
        w.commit(orders.insert({"id": 10 + number, "note": "a"}), *cut, orders.insert({"id": 20 + number}))


@GROUP.case("confirmed-is-not-sent-again", _AGAIN)
def confirmed_is_not_sent_again(w: CaseWriter) -> None:
    """Report what comes after a lost connection when everything before was confirmed, and does not come again."""
    orders = w.orders()
    for number in range(3):
        w.commit(orders.insert({"id": number, "note": "confirmed"}))
    end = w.lsn
    w.add(ExpectReported(3))
    w.keepalive(reply_requested=True)
    w.add(ExpectConfirmed(end), DropConnection())
    w.commit(orders.insert({"id": 5, "note": "after"}), orders.update({"id": 1, "note": "later"}))


@GROUP.case("asks-for-nothing-unread", "protocol-replication START_REPLICATION: the LSN to start from")
def asks_for_nothing_unread(w: CaseWriter) -> None:
    """Ask for no LSN beyond what is stored: a server skips what ends before it."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.add(ExpectReported(1))
    for _ in range(50):
        w.record()
    w.keepalive()
    w.commit(
        *(orders.insert({"id": number, "note": "x" * 100}) for number in range(2, 50)),
        DropConnection(),
        orders.insert({"id": 50, "note": "last"}),
    )
    w.add(DropConnection())
    w.commit(orders.insert({"id": 51, "note": "after"}))


@GROUP.case("descriptions-are-forgotten", _EMPTY)
def descriptions_are_forgotten(w: CaseWriter) -> None:
    """Read tables by the Relations of the present connection: an OID may be another table's now."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.add(ExpectReported(1), DropConnection())
    other = w.table("numbers", {"number": "int8", "text": "text"}, key=["number"], oid=orders.oid)
    w.commit(other.insert({"number": 5, "text": "five"}))


@GROUP.case("once", _ONCE, level=Level.SHOULD)
def once(w: CaseWriter) -> None:
    """Report a transaction once that was stored, and comes again since its confirmation was lost."""
    orders = w.orders()
    w.once = True
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.commit(orders.insert({"id": 2, "note": "two"}))
    w.add(ExpectReported(2), DropConnection("reset", forgets=True))
    w.commit(orders.insert({"id": 3, "note": "three"}))


@GROUP.case("server-crashes", "logicaldecoding-explanation: in a crash a slot may return to an earlier LSN")
def server_crashes(w: CaseWriter) -> None:
    """Lose nothing when a slot has returned to an earlier LSN in a crash of the server: what was confirmed may come
    again, in its order."""
    orders = w.orders()
    for number in range(3):
        w.commit(orders.insert({"id": number, "note": "confirmed"}))
    end = w.lsn
    w.add(ExpectReported(3))
    w.keepalive(reply_requested=True)
    w.add(ExpectConfirmed(end), DropConnection("reset", forgets=True))
    w.commit(orders.insert({"id": 5, "note": "after"}))


@GROUP.case("within-a-segment", _STREAM, needs=STREAMED)
def within_a_segment(w: CaseWriter) -> None:
    """Discard what had come of a streamed transaction when the connection is lost within a segment: it comes again."""
    orders, stream = w.orders(), w.stream()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    stream.segment(orders.insert({"id": 2, "note": "two"}))
    stream.segment(orders.insert({"id": 3, "note": "three"}), ExpectReported(1), DropConnection())
    stream.segment(orders.insert({"id": 4, "note": "four"}))
    stream.commit()


@GROUP.case("between-segments", _STREAM, needs=STREAMED)
def between_segments(w: CaseWriter) -> None:
    """Discard what had come of a streamed transaction when the connection is lost between two segments."""
    orders, stream = w.orders(), w.stream()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    stream.segment(orders.insert({"id": 2, "note": "two"}))
    w.add(ExpectReported(1), DropConnection())
    stream.segment(orders.insert({"id": 3, "note": "three"}))
    stream.commit()


@GROUP.case("before-a-stream-commit", _STREAM, needs=STREAMED)
def before_a_stream_commit(w: CaseWriter) -> None:
    """Report a streamed transaction once when the connection is lost before its Stream Commit, and others had
    committed meanwhile."""
    orders, stream = w.orders(), w.stream()
    stream.segment(orders.insert({"id": 1, "note": "long"}))
    w.commit(orders.insert({"id": 2, "note": "short"}))
    stream.segment(orders.insert({"id": 3, "note": "long"}))
    w.add(ExpectReported(1), DropConnection())
    stream.commit()


@GROUP.case("streams-in-another-order", f"reorderbuffer.c ReorderBufferLargestTXN(); {_STREAM}", needs=STREAMED)
def streams_in_another_order(w: CaseWriter) -> None:
    """Take other segments, and subtransactions that are rolled back or not sent, when streams come again."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.only("first")
    first, second, sub = w.stream(), w.stream(), w.xid()
    first.segment(orders.insert({"id": 2, "note": "two"}))
    second.segment(orders.insert({"id": 3, "note": "three"}), sub=sub)
    second.segment(orders.insert({"id": 4, "note": "four"}))
    w.add(ExpectReported(1), DropConnection())
    w.only("later")
    first, second = w.stream(first.xid), w.stream(second.xid)
    second.segment(orders.insert({"id": 4, "note": "four"}))
    first.segment(orders.insert({"id": 2, "note": "two"}))
    second.commit()
    first.commit()
    w.only("")


@GROUP.case("streamed-then-whole", "reorderbuffer.c ReorderBufferCanStartStreaming()", needs=STREAMED)
def streamed_then_whole(w: CaseWriter) -> None:
    """Take a transaction between Begin and Commit after the lost connection that had been streamed before it."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.only("first")
    w.stream(900).segment(orders.insert({"id": 2, "note": "two"}))
    w.add(ExpectReported(1), DropConnection())
    w.only("later")
    w.commit(orders.insert({"id": 2, "note": "two"}), orders.insert({"id": 3, "note": "three"}), xid=900)
    w.only("")


@GROUP.case(
    "server-starts-up",
    "errcodes-appendix 57P03: cannot_connect_now",
    level=Level.SHOULD,
    server=CaseServer(refusals=(("57P03", "the database system is starting up"),) * 2),
)
def server_starts_up(w: CaseWriter) -> None:
    """Try again while the server starts up."""
    w.commit(w.orders().insert({"id": 1, "note": "one"}))


@GROUP.case(
    "slot-is-active",
    "slot.c ReplicationSlotAcquire(): the server may not have noticed yet that the connection before was lost",
    level=Level.SHOULD,
    server=CaseServer(start_refusals=(("55006", 'replication slot "suite" is active for PID 4711'),) * 2),
)
def slot_is_active(w: CaseWriter) -> None:
    """Try again while the slot is active for a process of the connection before."""
    w.commit(w.orders().insert({"id": 1, "note": "one"}))


@GROUP.case("origin-lsn", "protocol-logicalrep-message-formats-Origin: an LSN of another server")
def origin_lsn(w: CaseWriter) -> None:
    """Take LSNs to continue from out of Commits, not out of Origins, whose LSNs are of another server."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "far"}), origin="pg_16391")
    w.add(ExpectReported(1), DropConnection())
    w.commit(orders.insert({"id": 2, "note": "two"}))
    assert w.lsn < Lsn(0x2000000)
