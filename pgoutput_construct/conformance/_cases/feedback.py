"""Cases of keepalives and statuses: replies when asked, and nothing confirmed that is not stored."""

from pgoutput_construct.conformance.case_group import STREAMED, CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.conformance.conformance_case import Level
from pgoutput_construct.conformance.steps import (
    ExpectConfirmed,
    ExpectHeld,
    ExpectReply,
    ExpectReported,
    SendKeepalive,
    StaySilent,
)

__all__ = ["GROUP"]

GROUP = CaseGroup("feedback", "Keepalives and feedback")
_ASKED = "protocol-replication: 1 means to reply as soon as possible; worker.c LogicalRepApplyLoop()"
_STORED = "protocol-replication: the WAL up to the confirmed LSN may be removed; worker.c get_flush_position()"
_QUIET = "worker.c send_feedback(): with nothing left to flush, the keepalive's LSN is confirmed"


@GROUP.case("asked", _ASKED)
def asked(w: CaseWriter) -> None:
    """Send a status at once when a keepalive asks for one: a server disconnects a client that does not."""
    w.commit(w.orders().insert({"id": 1, "note": "one"}))
    w.add(ExpectReported(1))
    for _ in range(3):
        w.keepalive(reply_requested=True)
        w.add(ExpectReply())


@GROUP.case("asked-at-the-start", _ASKED)
def asked_at_the_start(w: CaseWriter) -> None:
    """Send a status when a keepalive asks for one before anything else has come."""
    w.keepalive(reply_requested=True)
    w.add(ExpectReply())
    w.commit(w.orders().insert({"id": 1, "note": "one"}))


@GROUP.case("asked-in-a-transaction", f"{_ASKED}; walsender.c WalSndUpdateProgress()")
def asked_in_a_transaction(w: CaseWriter) -> None:
    """Send a status when a keepalive asks for one between the changes of a transaction, which may take long."""
    orders = w.orders()
    alive = SendKeepalive(w.lsn, True)
    steps = (alive, ExpectReply(), orders.insert({"id": 2, "note": "two"}), alive, ExpectReply())
    w.commit(orders.insert({"id": 1, "note": "one"}), *steps)


@GROUP.case("asked-in-a-stream", _ASKED, needs=STREAMED)
def asked_in_a_stream(w: CaseWriter) -> None:
    """Send a status when a keepalive asks for one inside a streamed segment, and between two."""
    orders, stream = w.orders(), w.stream()
    alive = SendKeepalive(w.lsn, True)
    stream.segment(orders.insert({"id": 1, "note": "one"}), alive, ExpectReply(), orders.insert({"id": 2, "note": "x"}))
    w.add(alive, ExpectReply())
    stream.commit()


@GROUP.case("storm", "walsender.c WalSndKeepaliveIfNecessary(): as many as the server wants to send")
def storm(w: CaseWriter) -> None:
    """Take a thousand keepalives in a row, some within a transaction."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    for _ in range(1000):
        w.keepalive()
    alive = SendKeepalive(w.lsn)
    w.commit(orders.insert({"id": 2, "note": "two"}), *[alive] * 100, orders.insert({"id": 3, "note": "three"}))


@GROUP.case("confirms-what-is-stored", f"{_STORED}; protocol-replication: only flush moves a slot")
def confirms_what_is_stored(w: CaseWriter) -> None:
    """Confirm a transaction once it is stored, by the LSN of its end, in the status that a keepalive asks for at the
    latest: otherwise the server retains WAL without limit."""
    orders = w.orders()
    w.stores = True
    for number in range(3):
        w.commit(orders.insert({"id": number, "note": "stored"}))
    end = w.lsn
    w.add(ExpectReported(3))
    w.keepalive(reply_requested=True)
    w.add(ExpectConfirmed(end))


@GROUP.case("confirms-nothing-else", _STORED)
def confirms_nothing_else(w: CaseWriter) -> None:
    """Confirm no transaction before it is stored, whatever statuses are asked for while many come."""
    orders = w.orders()
    w.stores = True
    for number in range(40):
        w.commit(*(orders.insert({"id": 100 * number + n, "note": "y" * 200}) for n in range(20)))
        w.keepalive(reply_requested=True)
    w.add(ExpectReply())


@GROUP.case("open-transaction", f"{_STORED}; worker.c send_feedback()")
def open_transaction(w: CaseWriter) -> None:
    """Confirm nothing of a transaction that is still coming: if the connection is lost, it comes again as a whole."""
    orders = w.orders()
    w.stores = True
    w.commit(orders.insert({"id": 1, "note": "one"}))
    alive = SendKeepalive(w.lsn, True)
    changes = [orders.insert({"id": number, "note": "open"}) for number in range(2, 6)]
    w.commit(*changes[:2], alive, ExpectReply(), ExpectHeld(1, 0.1), *changes[2:], alive, ExpectReply())


@GROUP.case("open-stream", f"{_STORED}; SnapBuildXactNeedsSkip()", needs=STREAMED)
def open_stream(w: CaseWriter) -> None:
    """Confirm what others have committed meanwhile, and nothing beyond it, while a streamed transaction is open."""
    orders, stream = w.orders(), w.stream()
    w.stores = True
    stream.segment(orders.insert({"id": 1, "note": "open"}))
    w.commit(orders.insert({"id": 2, "note": "short"}))
    w.keepalive(reply_requested=True)
    w.add(ExpectReply())
    stream.segment(orders.insert({"id": 3, "note": "open"}))
    w.keepalive(reply_requested=True)
    w.add(ExpectReply())
    stream.commit()
    end = w.lsn
    w.add(ExpectReported(2))
    w.keepalive(reply_requested=True)
    w.add(ExpectConfirmed(end))


@GROUP.case("streams-are-confirmed", f"{_STORED}; worker.c store_flush_position()", needs=STREAMED)
def streams_are_confirmed(w: CaseWriter) -> None:
    """Confirm a streamed transaction by the LSN of the end of its Stream Commit, once it is stored."""
    orders = w.orders()
    w.stores = True
    for number in range(3):
        w.stream().segment(orders.insert({"id": number, "note": "streamed"})).commit()
    end = w.lsn
    w.add(ExpectReported(3))
    w.keepalive(reply_requested=True)
    w.add(ExpectConfirmed(end))


@GROUP.case("keepalive-ahead", f"{_STORED}; {_QUIET}")
def keepalive_ahead(w: CaseWriter) -> None:
    """Confirm the LSN of a keepalive only once everything before it is stored, however fast it follows."""
    orders = w.orders()
    w.stores = True
    for number in range(30):
        w.commit(*(orders.insert({"id": 100 * number + n, "note": "z" * 500}) for n in range(20)))
        w.keepalive()
        w.keepalive(reply_requested=True)


@GROUP.case("quiet-database", _QUIET, level=Level.SHOULD)
def quiet_database(w: CaseWriter) -> None:
    """Confirm the LSN of a keepalive when there is nothing to store: otherwise the slot of a quiet database retains the
    WAL of all others."""
    w.commit(w.orders().insert({"id": 1, "note": "one"}))
    w.add(ExpectReported(1))
    for _ in range(1000):
        w.record()
    end = w.lsn
    for _ in range(3):
        w.keepalive(reply_requested=True)
        w.add(StaySilent(0.1))
    w.add(ExpectConfirmed(end))


@GROUP.case("quiet-from-the-start", _QUIET, level=Level.SHOULD)
def quiet_from_the_start(w: CaseWriter) -> None:
    """Confirm the LSN of a keepalive also before the first transaction has come."""
    for _ in range(1000):
        w.record()
    end = w.lsn
    for _ in range(3):
        w.keepalive(reply_requested=True)
        w.add(StaySilent(0.1))
    w.add(ExpectConfirmed(end))


@GROUP.case("slow-consumer", "runtime-config-replication: wal_sender_timeout ends a silent client", level=Level.SHOULD)
def slow_consumer(w: CaseWriter) -> None:
    """Send statuses also while whoever takes the changes is slow: otherwise the server disconnects, and sends
    everything again."""
    orders = w.orders()
    w.reads = False
    w.commit(*(orders.insert({"id": number, "note": "s" * 1000}) for number in range(1000)))
    w.keepalive(reply_requested=True)
    w.add(ExpectReply(4.0))


@GROUP.case("long-transaction", f"{_ASKED}; runtime-config-replication: wal_sender_timeout")
def long_transaction(w: CaseWriter) -> None:
    """Stay connected through a transaction that takes longer than the server's timeout, as keepalives come."""
    orders, alive = w.orders(), SendKeepalive(w.lsn, True)
    items = [
        item
        for number in range(4)
        for item in (orders.insert({"id": number, "note": "slow"}), StaySilent(0.25), alive, ExpectReply())
    ]
    w.commit(*items)
