"""Cases of the messages that every version has."""

from pgoutput_construct.conformance.case_group import CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.conformance.steps import ExpectHeld, ExpectReported
from pgoutput_construct.testing.fake_tables import FakeTable
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.types import Lsn

__all__ = ["GROUP"]

GROUP = CaseGroup("v1", "Messages of version 1")


@GROUP.case("insert", "worker.c apply_handle_insert(); protocol-logicalrep-message-formats-Insert")
def insert(w: CaseWriter) -> None:
    """Report an inserted row when its transaction commits."""
    w.commit(w.orders().insert({"id": 1, "note": "one"}))


@GROUP.case("update", "worker.c apply_handle_update(); protocol-logicalrep-message-formats-Update")
def update(w: CaseWriter) -> None:
    """Report the new row of an update that comes without an old one."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.commit(orders.update({"id": 1, "note": "uno"}))


@GROUP.case("delete", "worker.c apply_handle_delete(); protocol-logicalrep-message-formats-Delete")
def delete(w: CaseWriter) -> None:
    """Report the key of a deleted row."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}), orders.insert({"id": 2, "note": "two"}))
    w.commit(orders.delete({"id": 1}))


@GROUP.case("changes-in-order", "logicaldecoding-output-plugin-change; apply_dispatch() in worker.c")
def changes_in_order(w: CaseWriter) -> None:
    """Report the changes of a transaction in their order, several of one row included."""
    orders = w.orders()
    w.commit(
        orders.insert({"id": 1, "note": "a"}),
        orders.update({"id": 1, "note": "b"}),
        orders.update({"id": 1, "note": "c"}),
        orders.delete({"id": 1}),
        orders.insert({"id": 1, "note": "d"}),
    )


@GROUP.case("transactions-in-order", "protocol-logical-messages-flow; apply_handle_commit() in worker.c")
def transactions_in_order(w: CaseWriter) -> None:
    """Report transactions apart from each other, in the order of their commits, whatever their xids."""
    orders = w.orders()
    for number, xid in enumerate((905, 902, 907, 901, 906)):
        w.commit(orders.insert({"id": number, "note": f"of {xid}"}), xid=xid)


@GROUP.case("several-tables", "relation.c logicalrep_rel_open()")
def several_tables(w: CaseWriter) -> None:
    """Keep tables apart that a transaction changes in turn, also those of one name in two schemas."""
    orders, pairs = w.orders(), w.table("pairs", {"a": "int4", "b": "int4"}, key=["a"])
    other = w.table("orders", {"number": "int8", "text": "text"}, key=["number"], namespace="archive")
    w.commit(
        orders.insert({"id": 1, "note": "one"}),
        pairs.insert({"a": 1, "b": 2}),
        other.insert({"number": 10, "text": "ten"}),
        orders.update({"id": 1, "note": "uno"}),
        pairs.update({"a": 1, "b": 3}),
        other.delete({"number": 10}),
    )


@GROUP.case("held-until-commit", "worker.c apply_handle_begin(), apply_handle_commit()")
def held_until_commit(w: CaseWriter) -> None:
    """Report nothing of a transaction before its Commit has come."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.commit(ExpectReported(1), orders.insert({"id": 2, "note": "two"}), ExpectHeld(1))


@GROUP.case("empty-transaction", "pgoutput.c pgoutput_begin_txn() up to PostgreSQL 14")
def empty_transaction(w: CaseWriter) -> None:
    """Take a transaction without changes, which servers up to 14 send."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.commit()
    w.commit()
    w.commit(orders.insert({"id": 2, "note": "two"}))


@GROUP.case("type-message", "proto.c logicalrep_write_typ(); worker.c apply_handle_type()")
def type_message(w: CaseWriter) -> None:
    """Take the Type messages before a Relation, the same one for each of its columns."""
    mood = m.Type(type_oid=16500, namespace="public", name="mood")
    moods = w.table("moods", {"id": "int4", "now": "mood", "then": "mood"}, key=["id"], types={"mood": mood})
    w.commit(moods.insert({"id": 1, "now": "ok", "then": "sad"}))
    w.commit(moods.update({"id": 1, "now": "sad", "then": None}))


@GROUP.case("unused-relation", "relation.c logicalrep_relmap_update(); pgoutput.c maybe_send_schema()")
def unused_relation(w: CaseWriter) -> None:
    """Take Relations of tables that no change follows, such as the root of a partition."""
    orders, root = w.orders(), w.create_only(FakeTable("root", {"id": "int4"}, key=["id"], oid=17000))
    unit = w.unit()
    start = w.begin(unit, 1)
    w.send(root.relation, Lsn(0), unit)
    changes = w.changes([orders.insert({"id": 1, "note": "one"})], unit)
    w.end(unit, start)
    w.expect(unit, changes)


@GROUP.case("relation-again", "pgoutput.c rel_sync_cache_relation_cb(); relation.c logicalrep_relmap_update()")
def relation_again(w: CaseWriter) -> None:
    """Take the same Relation again, between changes of one transaction, too."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.describe(orders)
    w.commit(orders.insert({"id": 2, "note": "two"}))
    unit = w.unit()
    start = w.begin(unit, 2)
    changes = w.changes([orders.insert({"id": 3, "note": "three"})], unit)
    w.send(orders.relation, Lsn(0), unit)
    changes += w.changes([orders.update({"id": 3, "note": "drei"})], unit)
    w.end(unit, start)
    w.expect(unit, changes)


@GROUP.case("unsigned-numbers", "protocol-message-types; Oid, TransactionId and XLogRecPtr in c.h are unsigned")
def unsigned_numbers(w: CaseWriter) -> None:
    """Take OIDs and xids above 2^31."""
    big = w.table("big", {"id": "int4", "note": "text"}, key=["id"], oid=0xFFFFFFF0)
    w.commit(big.insert({"id": 1, "note": "one"}), xid=0xFFFFFFF5)
    w.commit(big.insert({"id": 2, "note": "two"}), xid=0x80000000)


@GROUP.case("xid-again", "transam.h: xids are 32 bits, and wrap around")
def xid_again(w: CaseWriter) -> None:
    """Take two transactions with the same xid, which wraps around."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}), xid=800)
    w.commit(orders.insert({"id": 2, "note": "two"}), xid=801)
    w.commit(orders.insert({"id": 3, "note": "three"}), xid=800)


@GROUP.case("times", "timestamp.h: TimestampTz is signed, microseconds since 2000-01-01")
def times(w: CaseWriter) -> None:
    """Take commit times before 2000 and far from now, which a server's clock may have been set to."""
    orders = w.orders()
    for number, time in enumerate((-1, -(10**15), 0, 250_000 * 31_557_600 * 10**6)):
        w.commit(orders.insert({"id": number, "note": "late"}), time=time)


@GROUP.case("names", "catalog-pg-class: a name is any text of up to 63 bytes")
def names(w: CaseWriter) -> None:
    """Take names with upper case, spaces, dots, quotes and letters beyond ASCII, and ones of 63 bytes."""
    odd = w.table('The "odd" one.', {"Id": "int4", "né à": "text", "x" * 63: "text"}, key=["Id"], namespace="Größe")
    w.commit(odd.insert({"Id": 1, "né à": "ü", "x" * 63: "y"}), odd.update({"Id": 1, "né à": "ö"}))


@GROUP.case("no-columns", "ddl: CREATE TABLE t () is a table; a column list may leave none that is a key")
def no_columns(w: CaseWriter) -> None:
    """Take rows of a table without columns."""
    nothing = w.table("nothing", {})
    w.commit(nothing.insert({}))


@GROUP.case("texts", "protocol-logicalrep-message-formats-TupleData: a text is as long as its length says")
def texts(w: CaseWriter) -> None:
    """Report texts as they are: with line breaks, quotes, backslashes, and characters of four bytes."""
    orders = w.orders()
    for number, text in enumerate(
        ("a\nb\tc", 'say "no"', "it's", "C:\\new\\table", "\\N", "naïve 😀 中文", " ", "{}", "t")
    ):
        w.commit(orders.insert({"id": number, "note": text}))
