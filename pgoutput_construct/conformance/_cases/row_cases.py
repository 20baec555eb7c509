"""Cases of what is sent of a row, and what is not: NULL, unchanged TOASTed values, keys that move, identities."""

from pgoutput_construct.conformance.case_group import CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.testing.fake_tables import FakeTable
from pgoutput_construct.wire.messages import UNCHANGED
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["GROUP"]

GROUP = CaseGroup("rows", "NULL, unchanged TOASTed values, keys and replica identities")
_TUPLE = "protocol-logicalrep-message-formats-TupleData"
_MODIFY = "worker.c slot_modify_data(): a value that was not sent stays as it is"


def _orders(w: CaseWriter) -> FakeTable:
    return w.table("orders", {"id": "int4", "note": "text", "big": "text"}, key=["id"])


@GROUP.case("nulls", f"{_TUPLE}: 'n'; worker.c slot_store_data()")
def nulls(w: CaseWriter) -> None:
    """Report NULL as such, in inserts and updates, and apart from the empty text."""
    orders = _orders(w)
    w.commit(orders.insert({"id": 1}), orders.insert({"id": 2, "note": "", "big": None}))
    w.commit(orders.update({"id": 2, "note": None, "big": ""}), orders.update({"id": 1, "note": "", "big": None}))


@GROUP.case("null-in-full-row", "execReplication.c tuples_equal(); proto.c logicalrep_read_delete()")
def null_in_full_row(w: CaseWriter) -> None:
    """Report NULLs of old rows of REPLICA IDENTITY FULL."""
    pairs = w.table("pairs", {"a": "int4", "b": "text"})
    w.commit(pairs.insert({"a": None, "b": None}), pairs.insert({"a": 1, "b": None}))
    w.commit(pairs.update({"a": 2, "b": None}, {"a": 1, "b": None}), pairs.delete({"a": None, "b": None}))


@GROUP.case("unchanged", f"{_TUPLE}: 'u', an unchanged TOASTed value; {_MODIFY}")
def unchanged(w: CaseWriter) -> None:
    """Report no value, and not NULL, for a column whose TOASTed value was not sent."""
    orders = _orders(w)
    w.commit(orders.insert({"id": 1, "note": "short", "big": "x" * 100}))
    w.commit(orders.update({"id": 1, "note": "other", "big": UNCHANGED}))


@GROUP.case("unchanged-in-middle", f"{_TUPLE}: 'u' has no length and no value")
def unchanged_in_middle(w: CaseWriter) -> None:
    """Report the values after one that was not sent under their own columns."""
    table = w.table("wide", {"id": "int4", "big": "text", "last": "text", "end": "int4"}, key=["id"])
    w.commit(table.insert({"id": 1, "big": "x" * 100, "last": "a", "end": 7}))
    w.commit(table.update({"id": 1, "big": UNCHANGED, "last": "b", "end": 8}))
    w.commit(table.update({"id": 1, "big": "y", "last": UNCHANGED, "end": None}))


@GROUP.case("unchanged-and-key-moves", f"heapam.c ExtractReplicaIdentity(); {_MODIFY}")
def unchanged_and_key_moves(w: CaseWriter) -> None:
    """Keep apart, in an update that moves the key, the old key, the new row, and the value that was not sent."""
    orders = _orders(w)
    w.commit(orders.insert({"id": 1, "note": "short", "big": "x" * 100}))
    w.commit(orders.update({"id": 2, "note": "short", "big": UNCHANGED}, {"id": 1}))


@GROUP.case("unchanged-in-full-row", f"heapam.c ExtractReplicaIdentity(), toast_flatten_tuple(); {_MODIFY}")
def unchanged_in_full_row(w: CaseWriter) -> None:
    """Report the old row of REPLICA IDENTITY FULL, which has all values, also where the new one lacks some."""
    notes = w.table("notes", {"a": "int4", "big": "text"})
    w.commit(notes.insert({"a": 1, "big": "x" * 100}))
    w.commit(notes.update({"a": 2, "big": UNCHANGED}, {"a": 1, "big": "x" * 100}))


@GROUP.case("unchanged-in-key", "heapam.c heap_update(): an external key column is logged though it is unchanged")
def unchanged_in_key(w: CaseWriter) -> None:
    """Take the key from the old key where a TOASTed key column did not change."""
    table = w.table("named", {"name": "text", "value": "int4"}, key=["name"])
    w.commit(table.insert({"name": "n" * 100, "value": 1}))
    w.commit(table.update({"name": UNCHANGED, "value": 2}, {"name": "n" * 100}))


@GROUP.case("unchanged-in-insert", "pgoutput.c pgoutput_row_filter(): UPDATE becomes INSERT; slot_store_data()")
def unchanged_in_insert(w: CaseWriter) -> None:
    """Take an insert without the value of a column: an update whose old row a row filter had excluded."""
    orders = _orders(w)
    w.commit(orders.insert({"id": 1, "note": "now published", "big": UNCHANGED}))


@GROUP.case("key-moves", "worker.c apply_handle_update(): the old tuple identifies the row")
def key_moves(w: CaseWriter) -> None:
    """Report the old key of an update that changes the key, and the new row."""
    orders = _orders(w)
    w.commit(orders.insert({"id": 1, "note": "one"}), orders.insert({"id": 5, "note": "five"}))
    w.commit(orders.update({"id": 2, "note": "one"}, {"id": 1}))
    w.commit(orders.update({"id": 3, "note": "three"}, {"id": 2}), orders.insert({"id": 1, "note": "new"}))


@GROUP.case("key-of-two-columns", "relation.c logicalrep_relmap_update(): attkeys")
def key_of_two_columns(w: CaseWriter) -> None:
    """Report both columns of a key, also if one of them alone changes."""
    table = w.table("lines", {"item": "text", "order": "int4", "amount": "int4", "line": "int4"}, key=["order", "line"])
    first = {"item": "nail", "order": 1, "amount": 10, "line": 1}
    w.commit(table.insert(first), table.insert({**first, "line": 2}))
    w.commit(table.update({**first, "line": 3}, {"order": 1, "line": 1}))
    w.commit(table.delete({"order": 1, "line": 2}), table.delete({"order": 1, "line": 3}))


@GROUP.case("old-key-only", "heapam.c ExtractReplicaIdentity(): other columns of an old key are NULL on the wire")
def old_key_only(w: CaseWriter) -> None:
    """Report of an old key only its columns: that the others are NULL on the wire does not mean that they were."""
    orders = _orders(w)
    w.commit(orders.insert({"id": 1, "note": "one", "big": "b"}))
    w.commit(orders.insert({"id": 2, "note": "two", "big": "b"}))
    w.commit(orders.update({"id": 3, "note": "one", "big": "b"}, {"id": 1}), orders.delete({"id": 2}))


@GROUP.case("full-rows", "worker.c FindReplTupleInLocalRel(); proto.c logicalrep_read_update()")
def full_rows(w: CaseWriter) -> None:
    """Report the old rows of REPLICA IDENTITY FULL, of updates and deletes."""
    pairs = w.table("pairs", {"a": "int4", "b": "text"})
    w.commit(pairs.insert({"a": 1, "b": "one"}), pairs.insert({"a": 2, "b": "two"}))
    w.commit(pairs.update({"a": 1, "b": "uno"}, {"a": 1, "b": "one"}), pairs.delete({"a": 2, "b": "two"}))


@GROUP.case("equal-rows", "execReplication.c RelationFindReplTupleSeq(): the first one that is equal")
def equal_rows(w: CaseWriter) -> None:
    """Report each change of equal rows, of which each concerns one."""
    pairs = w.table("pairs", {"a": "int4", "b": "text"})
    w.commit(*(pairs.insert({"a": 1, "b": "same"}) for _ in range(3)))
    w.commit(pairs.delete({"a": 1, "b": "same"}), pairs.update({"a": 1, "b": "other"}, {"a": 1, "b": "same"}))


@GROUP.case("identity-of-index", "catalog-pg-class relreplident 'i'; relation.c logicalrep_rel_mark_updatable()")
def identity_of_index(w: CaseWriter) -> None:
    """Take REPLICA IDENTITY USING INDEX, whose columns need not come first."""
    identity = RelationReplicaIdentity("i")
    table = w.table("coded", {"note": "text", "code": "text"}, key=["code"], identity=identity)
    w.commit(table.insert({"note": "one", "code": "a"}))
    w.commit(table.update({"note": "one", "code": "b"}, {"code": "a"}))
    w.commit(table.update({"note": "uno", "code": "b"}), table.delete({"code": "b"}))


@GROUP.case("identity-nothing", "catalog-pg-class relreplident 'n'; execReplication.c CheckCmdReplicaIdentity()")
def identity_nothing(w: CaseWriter) -> None:
    """Take inserts into a table with REPLICA IDENTITY NOTHING."""
    table = w.table("events", {"id": "int4", "note": "text"}, identity=RelationReplicaIdentity("n"))
    w.commit(table.insert({"id": 1, "note": "one"}), table.insert({"id": 1, "note": "one"}))


@GROUP.case("key-used-again", "worker.c apply_dispatch(): changes are applied in their order")
def key_used_again(w: CaseWriter) -> None:
    """Keep the order of changes of one key in a transaction: deleted, inserted, moved away and inserted again."""
    orders = _orders(w)
    w.commit(orders.insert({"id": 1, "note": "a"}))
    w.commit(
        orders.delete({"id": 1}),
        orders.insert({"id": 1, "note": "b"}),
        orders.update({"id": 2, "note": "b"}, {"id": 1}),
        orders.insert({"id": 1, "note": "c"}),
        orders.delete({"id": 2}),
    )
