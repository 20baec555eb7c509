"""Cases of truncates, origins and logical messages outside of streams."""

from pgoutput_construct.conformance.case_group import MESSAGES, CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.testing.fake_tables import Change
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import TruncateOptions
from pgoutput_construct.wire.types import Lsn

__all__ = ["MESSAGE_GROUP", "ORIGINS", "TRUNCATES"]

TRUNCATES = CaseGroup("truncate", "Truncates")
ORIGINS = CaseGroup("origins", "Replication origins")
MESSAGE_GROUP = CaseGroup("messages", "Logical messages")
_TRUNCATE = "worker.c apply_handle_truncate(); protocol-logicalrep-message-formats-Truncate"
_ORIGIN = "worker.c apply_handle_origin(); protocol-logicalrep-message-formats-Origin"
_MESSAGE = "protocol-logicalrep-message-formats-Message; logicaldecoding-output-plugin-message"


@TRUNCATES.case("one-table", _TRUNCATE)
def one_table(w: CaseWriter) -> None:
    """Report a truncate of a table."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.commit(orders.truncate())
    w.commit(orders.insert({"id": 1, "note": "again"}))


@TRUNCATES.case("several-tables", f"{_TRUNCATE}: the OIDs are repeated")
def several_tables(w: CaseWriter) -> None:
    """Report each table of a truncate, in any order."""
    orders, pairs = w.orders(), w.table("pairs", {"a": "int4"}, key=["a"])
    third = w.table("third", {"id": "int4"}, key=["id"])
    w.commit(orders.insert({"id": 1, "note": "one"}), pairs.insert({"a": 1}), third.insert({"id": 1}))
    w.commit(orders.truncate(pairs, third))


@TRUNCATES.case("among-changes", "worker.c apply_dispatch(): changes are applied in their order")
def among_changes(w: CaseWriter) -> None:
    """Keep a truncate at its place between the changes of its transaction."""
    orders = w.orders()
    w.commit(
        orders.insert({"id": 1, "note": "one"}),
        orders.truncate(),
        orders.insert({"id": 1, "note": "uno"}),
        orders.update({"id": 1, "note": "eins"}),
    )


@TRUNCATES.case("restart-identity", f"{_TRUNCATE}: option 2, RESTART IDENTITY")
def restart_identity(w: CaseWriter) -> None:
    """Take a truncate with RESTART IDENTITY."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.commit(orders.truncate(restart_identity=True))


@TRUNCATES.case("cascade", f"{_TRUNCATE}: option 1, CASCADE")
def cascade(w: CaseWriter) -> None:
    """Take a truncate with CASCADE, and with both options."""
    orders, options = w.orders(), TruncateOptions
    for each in (options.CASCADE, options.CASCADE | options.RESTART_IDENTITY):
        w.commit(orders.insert({"id": 1, "note": "one"}))
        w.commit(Change(orders, m.Truncate(options=int(each), relation_oids=(orders.oid,))))


@ORIGINS.case("of-a-transaction", _ORIGIN)
def of_a_transaction(w: CaseWriter) -> None:
    """Take the Origin after a Begin."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "here"}))
    w.commit(orders.insert({"id": 2, "note": "from elsewhere"}), origin="pg_16391")
    w.commit(orders.insert({"id": 3, "note": "here again"}))


@ORIGINS.case("names", f"{_ORIGIN}; origin.c replorigin_create(): any text of up to 512 bytes")
def origin_names(w: CaseWriter) -> None:
    """Take names of origins with spaces, letters beyond ASCII, and of 512 bytes."""
    orders = w.orders()
    for number, name in enumerate(("a name", "Größe", "x" * 512)):
        w.commit(orders.insert({"id": number, "note": "far"}), origin=name)


@ORIGINS.case("without-changes", "pgoutput.c pgoutput_begin_txn(): up to PostgreSQL 14 nothing need follow")
def without_changes(w: CaseWriter) -> None:
    """Take an Origin in a transaction without changes."""
    orders = w.orders()
    w.commit(origin="pg_16391")
    w.commit(orders.insert({"id": 1, "note": "one"}))


@MESSAGE_GROUP.case("transactional", _MESSAGE, needs=MESSAGES)
def transactional(w: CaseWriter) -> None:
    """Report a transactional message at its place among the changes of its transaction."""
    orders, unit = w.orders(), w.unit()
    start = w.begin(unit, 3)
    changes = w.changes([orders.insert({"id": 1, "note": "one"})], unit)
    changes.append(w.message_meaning("audit", b"who did it"))
    w.message("audit", b"who did it", unit)
    changes += w.changes([orders.insert({"id": 2, "note": "two"})], unit)
    w.end(unit, start)
    w.expect(unit, changes)


@MESSAGE_GROUP.case("alone", _MESSAGE, needs=MESSAGES)
def alone(w: CaseWriter) -> None:
    """Report the transactional messages of a transaction without other changes."""
    unit = w.unit()
    start = w.begin(unit, 2)
    changes = []
    for content in (b"one", b"two"):
        changes.append(w.message_meaning("note", content))
        w.message("note", content, unit)
    w.end(unit, start)
    w.expect(unit, changes)


@MESSAGE_GROUP.case("not-transactional", f"{_MESSAGE}; decode.c logicalmsg_decode()", needs=MESSAGES)
def not_transactional(w: CaseWriter) -> None:
    """Report a message that is not transactional when it comes: between transactions, without a Begin or Commit."""
    orders = w.orders()
    w.message("heartbeat", b"1")
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.message("heartbeat", b"2")
    w.message("heartbeat", b"3")
    w.commit(orders.insert({"id": 2, "note": "two"}))


@MESSAGE_GROUP.case("contents", f"{_MESSAGE}: content is as long as its length says", needs=MESSAGES)
def contents(w: CaseWriter) -> None:
    """Report contents with zero bytes, bytes that are no text, and none at all; prefixes that are empty or odd."""
    for prefix, content in (("", b"a"), ("größe \n", b""), ("bytes", b"\xff\x00\xfe"), ("text", "ü\n".encode())):
        w.message(prefix, content)
    w.message("zero", b"a\x00b")


@MESSAGE_GROUP.case("flags", f"{_MESSAGE}: 1 for transactional", needs=MESSAGES)
def flags(w: CaseWriter) -> None:
    """Tell messages apart by their flag, also where one that is not transactional precedes a Begin directly."""
    orders, unit = w.orders(), w.unit()
    w.message("outside", b"first")
    start = w.begin(unit, 2)
    changes = [w.message_meaning("inside", b"second")]
    w.message("inside", b"second", unit)
    changes += w.changes([orders.insert({"id": 1, "note": "one"})], unit)
    w.end(unit, start)
    w.expect(unit, changes)


@ORIGINS.case("lsn", f"{_ORIGIN}: the origin's LSN of the commit, of any size")
def origin_lsn(w: CaseWriter) -> None:
    """Take an LSN of an origin above 2^63, which has nothing to do with those of this server."""
    orders, unit = w.orders(), w.unit()
    start = w.begin(unit, 1)
    w.send(m.Origin(Lsn(0xFFFFFFFFFFFFFF00), "far"), Lsn(0), unit)
    changes = w.changes([orders.insert({"id": 1, "note": "one"})], unit)
    w.end(unit, start)
    w.expect(unit, changes)
