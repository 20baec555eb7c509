"""Cases of transactions that are prepared before they commit."""

from pgoutput_construct.conformance.case_group import STREAMED_ON, TWO_PHASE, CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.conformance.conformance_case import Level, Needs
from pgoutput_construct.conformance.steps import DropConnection, ExpectConfirmed, ExpectHeld, ExpectReported
from pgoutput_construct.wire import messages as m

__all__ = ["GROUP"]

GROUP = CaseGroup("two-phase", "Prepared transactions")
_COMMIT = "worker.c apply_handle_begin_prepare(), apply_handle_prepare(), apply_handle_commit_prepared()"
_ROLLBACK = "worker.c apply_handle_rollback_prepared()"
_STREAMED: Needs = {**STREAMED_ON, "proto_version": (3, 4), "two_phase": (True,)}
_AGAIN = "reorderbuffer.c ReorderBufferSkipPrepare(): after a confirmed PREPARE only COMMIT PREPARED is sent"


@GROUP.case("committed", _COMMIT, needs=TWO_PHASE)
def committed(w: CaseWriter) -> None:
    """Report a prepared transaction when its Commit Prepared has come."""
    orders = w.orders()
    w.prepare("a gid", orders.insert({"id": 1, "note": "one"}), orders.insert({"id": 2, "note": "two"})).commit()


@GROUP.case("held-until-commit", _COMMIT, needs=TWO_PHASE)
def held_until_commit(w: CaseWriter) -> None:
    """Report nothing of a transaction that is prepared only."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    prepared = w.prepare("gid", orders.insert({"id": 2, "note": "two"}))
    w.add(ExpectReported(1), ExpectHeld(1))
    prepared.commit()


@GROUP.case("rolled-back", _ROLLBACK, needs=TWO_PHASE)
def rolled_back(w: CaseWriter) -> None:
    """Report nothing of a prepared transaction that is rolled back."""
    orders = w.orders()
    w.prepare("gid", orders.insert({"id": 1, "note": "lost"})).roll_back()
    w.commit(orders.insert({"id": 1, "note": "kept"}))


@GROUP.case("others-between", _COMMIT, needs=TWO_PHASE)
def others_between(w: CaseWriter) -> None:
    """Report transactions that commit between a PREPARE and its COMMIT PREPARED before it."""
    orders = w.orders()
    prepared = w.prepare("gid", orders.insert({"id": 1, "note": "prepared"}))
    w.commit(orders.insert({"id": 2, "note": "between"}))
    w.commit(orders.insert({"id": 3, "note": "between"}))
    prepared.commit()


@GROUP.case("several", _COMMIT, needs=TWO_PHASE)
def several(w: CaseWriter) -> None:
    """Keep prepared transactions apart by their gids, and report them in the order of their commits."""
    orders = w.orders()
    prepared = [w.prepare(f"gid {n}", orders.insert({"id": n, "note": f"of {n}"})) for n in range(4)]
    prepared[2].commit()
    prepared[0].commit()
    prepared[3].roll_back()
    prepared[1].commit()


@GROUP.case("gids", "twophase.c: a gid is any text of up to 199 bytes", needs=TWO_PHASE)
def gids(w: CaseWriter) -> None:
    """Take gids of 199 bytes, with quotes, blanks and letters beyond ASCII."""
    orders = w.orders()
    for number, gid in enumerate(("x" * 199, 'it\'s "odd"', "Größe; --", " ")):
        w.prepare(gid, orders.insert({"id": number, "note": "prepared"})).commit()


@GROUP.case("gid-again", "twophase.c: a gid is free again after its end", needs=TWO_PHASE)
def gid_again(w: CaseWriter) -> None:
    """Take a gid again after its transaction has committed, or was rolled back."""
    orders = w.orders()
    w.prepare("gid", orders.insert({"id": 1, "note": "one"})).commit()
    w.prepare("gid", orders.insert({"id": 2, "note": "lost"})).roll_back()
    w.prepare("gid", orders.insert({"id": 2, "note": "two"})).commit()


@GROUP.case("empty", "pgoutput.c pgoutput_begin_prepare_txn(): sent for empty transactions, too", needs=TWO_PHASE)
def empty(w: CaseWriter) -> None:
    """Take a prepared transaction without changes."""
    orders = w.orders()
    prepared = w.prepare("gid")
    w.commit(orders.insert({"id": 1, "note": "one"}))
    prepared.commit()
    w.prepare("other").roll_back()


@GROUP.case("unknown-rolled-back", f"{_ROLLBACK}: LookupGXact() decides whether there is one", needs=TWO_PHASE)
def unknown_rolled_back(w: CaseWriter) -> None:
    """Ignore the Rollback Prepared of a transaction whose PREPARE was not sent."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    end, now = w.lsn, w.now
    unit = w.unit()
    _, rollback_end = w.end_unit(unit)
    w.send(m.RollbackPrepared(end, rollback_end, now, w.now, w.xid(), "never sent"), rollback_end, unit)
    w.commit(orders.insert({"id": 2, "note": "two"}))


@GROUP.case("cut-after-prepare", f"{_AGAIN}; worker.c apply_handle_prepare()", needs=TWO_PHASE)
def cut_after_prepare(w: CaseWriter) -> None:
    """Report a prepared transaction once it commits, when the connection was lost between the two."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    prepared = w.prepare("gid", orders.insert({"id": 2, "note": "two"}))
    w.add(ExpectReported(1), DropConnection())
    prepared.commit()


@GROUP.case("cut-after-confirmed-prepare", f"{_AGAIN}; logicaldecoding-two-phase-commits", needs=TWO_PHASE)
def cut_after_confirmed_prepare(w: CaseWriter) -> None:
    """Have a prepared transaction stored when it is confirmed: after a lost connection only its Commit Prepared comes,
    to a client that was started again, too."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    prepared = w.prepare("gid", orders.insert({"id": 2, "note": "two"}))
    w.commit(orders.insert({"id": 3, "note": "three"}))
    end = w.lsn
    w.keepalive(reply_requested=True)
    w.add(ExpectConfirmed(end), DropConnection())
    prepared.commit()


@GROUP.case("cut-before-rollback", f"{_ROLLBACK}; {_AGAIN}", needs=TWO_PHASE)
def cut_before_rollback(w: CaseWriter) -> None:
    """Discard a prepared transaction that is rolled back, when the connection was lost between the two."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    prepared = w.prepare("gid", orders.insert({"id": 2, "note": "lost"}))
    w.add(ExpectReported(1), DropConnection())
    prepared.roll_back()
    w.commit(orders.insert({"id": 2, "note": "kept"}))


@GROUP.case("origin", "pgoutput.c pgoutput_begin_prepare_txn(); worker.c apply_handle_origin()", needs=TWO_PHASE)
def origin(w: CaseWriter) -> None:
    """Take the Origin after a Begin Prepare."""
    orders = w.orders()
    w.prepare("gid", orders.insert({"id": 1, "note": "far"}), origin="pg_16391").commit()


@GROUP.case("all-kinds-of-changes", _COMMIT, needs=TWO_PHASE)
def all_kinds_of_changes(w: CaseWriter) -> None:
    """Report inserts, updates that move a key, deletes and truncates of prepared transactions."""
    orders, pairs = w.orders(), w.table("pairs", {"a": "int4"}, key=["a"])
    w.commit(orders.insert({"id": 1, "note": "one"}), pairs.insert({"a": 1}))
    changes = (
        orders.update({"id": 2, "note": m.UNCHANGED}, {"id": 1}),
        pairs.truncate(),
        pairs.insert({"a": 2}),
        orders.delete({"id": 2}),
    )
    w.prepare("gid", *changes).commit()


@GROUP.case("streamed", "worker.c apply_handle_stream_prepare()", needs=_STREAMED)
def streamed(w: CaseWriter) -> None:
    """Report a transaction that was streamed, and prepared, when its Commit Prepared has come."""
    orders = w.orders()
    stream = w.stream().segment(orders.insert({"id": 1, "note": "one"}))
    prepared = stream.segment(orders.insert({"id": 2, "note": "two"})).prepare("gid")
    w.commit(orders.insert({"id": 3, "note": "between"}))
    prepared.commit()


@GROUP.case("streamed-rolled-back", f"worker.c apply_handle_stream_prepare(); {_ROLLBACK}", needs=_STREAMED)
def streamed_rolled_back(w: CaseWriter) -> None:
    """Report nothing of a transaction that was streamed, prepared and rolled back."""
    orders = w.orders()
    w.stream().segment(orders.insert({"id": 1, "note": "lost"})).prepare("gid").roll_back()
    w.commit(orders.insert({"id": 1, "note": "kept"}))


@GROUP.case("streamed-with-aborts", "worker.c apply_handle_stream_prepare(), stream_abort_internal()", needs=_STREAMED)
def streamed_with_aborts(w: CaseWriter) -> None:
    """Discard subtransactions that are rolled back before a streamed transaction is prepared."""
    orders, stream, sub = w.orders(), w.stream(), w.xid()
    stream.segment(orders.insert({"id": 1, "note": "kept"}))
    stream.segment(orders.insert({"id": 2, "note": "lost"}), sub=sub)
    stream.abort(sub)
    stream.segment(orders.insert({"id": 3, "note": "kept"}))
    stream.prepare("gid").commit()


@GROUP.case(
    "not-asked-for", "logical.c CreateDecodingContext(): a slot that has two_phase keeps it", level=Level.SHOULD
)
def not_asked_for(w: CaseWriter) -> None:
    """Take prepared transactions at any version: those of a slot that was created with two_phase are sent so."""
    orders = w.orders()
    prepared = w.prepare("gid", orders.insert({"id": 1, "note": "prepared"}))
    w.commit(orders.insert({"id": 2, "note": "between"}))
    prepared.commit()
