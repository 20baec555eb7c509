"""Cases of tables that change in mid-stream, and of what describes them."""

from pgoutput_construct.conformance.case_group import CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.testing.fake_tables import FakeTable
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

__all__ = ["GROUP"]

GROUP = CaseGroup("relations", "Tables that change in mid-stream")
_UPDATE = "relation.c logicalrep_relmap_update(): a Relation replaces the one with its OID"
_FLOW = "protocol-logical-messages-flow: a Relation precedes the first change, and again one after it has changed"


@GROUP.case("column-added", f"{_UPDATE}; {_FLOW}")
def column_added(w: CaseWriter) -> None:
    """Report a column from the Relation on that has it."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    wider = w.alter(orders, columns={"id": "int4", "note": "text", "extra": "int4"})
    w.commit(wider.insert({"id": 2, "note": "two", "extra": 7}), wider.update({"id": 1, "note": "uno", "extra": None}))


@GROUP.case("column-dropped", f"{_UPDATE}; {_FLOW}")
def column_dropped(w: CaseWriter) -> None:
    """Report a column no more from the Relation on that lacks it, and the columns after it by their names."""
    table = w.table("orders", {"id": "int4", "gone": "text", "note": "text"}, key=["id"])
    w.commit(table.insert({"id": 1, "gone": "x", "note": "one"}))
    narrower = w.alter(table, columns={"id": "int4", "note": "text"})
    w.commit(narrower.insert({"id": 2, "note": "two"}), narrower.delete({"id": 1}))


@GROUP.case("column-renamed", f"{_UPDATE}; {_FLOW}")
def column_renamed(w: CaseWriter) -> None:
    """Report a column by its new name from the Relation on that has it."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    renamed = w.alter(orders, columns={"id": "int4", "remark": "text"})
    w.commit(renamed.insert({"id": 2, "remark": "two"}))


@GROUP.case("columns-swapped", f"{_UPDATE}; {_FLOW}")
def columns_swapped(w: CaseWriter) -> None:
    """Report values under the names of the latest Relation where two columns have exchanged theirs."""
    table = w.table("pairs", {"id": "int4", "left": "text", "right": "text"}, key=["id"])
    w.commit(table.insert({"id": 1, "left": "l", "right": "r"}))
    swapped = w.alter(table, columns={"id": "int4", "right": "text", "left": "text"})
    w.commit(swapped.insert({"id": 2, "left": "second", "right": "first"}))


@GROUP.case("type-changed", f"{_UPDATE}; {_FLOW}")
def type_changed(w: CaseWriter) -> None:
    """Read values by the types of the latest Relation."""
    table = w.table("codes", {"id": "int4", "code": "int4"}, key=["id"])
    w.commit(table.insert({"id": 1, "code": 42}))
    changed = w.alter(table, columns={"id": "int4", "code": "text"})
    w.commit(changed.insert({"id": 2, "code": "forty-two"}))


@GROUP.case("within-a-transaction", f"pgoutput.c rel_sync_cache_relation_cb(); {_UPDATE}")
def within_a_transaction(w: CaseWriter) -> None:
    """Read each change of a transaction by the Relation before it, where its table is altered between two."""
    orders = w.orders()
    wider = FakeTable("orders", {"id": "int4", "note": "text", "extra": "text"}, ["id"], oid=orders.oid)
    unit = w.unit()
    start = w.begin(unit, 3)
    changes = w.changes([orders.insert({"id": 1, "note": "one"})], unit)
    w.describe(wider)
    changes += w.changes([wider.insert({"id": 2, "note": "two", "extra": "more"})], unit)
    w.describe(orders)
    changes += w.changes([orders.insert({"id": 3, "note": "three"})], unit)
    w.end(unit, start)
    w.expect(unit, changes)


@GROUP.case("table-renamed", f"{_UPDATE}; {_FLOW}")
def table_renamed(w: CaseWriter) -> None:
    """Report a table by its new name and schema from the Relation on that has them."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    renamed = w.alter(orders, name="requests", namespace="other")
    w.commit(renamed.insert({"id": 2, "note": "two"}))


@GROUP.case("table-created-again", "catalog-pg-class: OIDs identify tables; logicalrep_relmap_update()")
def table_created_again(w: CaseWriter) -> None:
    """Take a table of the same name with another OID and other columns."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    again = w.table("orders", {"note": "text", "id": "int4"}, key=["id"])
    w.commit(again.insert({"id": 2, "note": "two"}))


@GROUP.case("oid-used-again", f"catalog.c GetNewOidWithIndex(): OIDs wrap around; {_UPDATE}")
def oid_used_again(w: CaseWriter) -> None:
    """Take another table with the OID of one that was dropped."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    other = w.table("numbers", {"number": "int8"}, key=["number"], oid=orders.oid)
    w.commit(other.insert({"number": 5}), other.update({"number": 6}, {"number": 5}))


@GROUP.case("identity-changed", f"{_UPDATE}; catalog-pg-class relreplident")
def identity_changed(w: CaseWriter) -> None:
    """Take old keys before, and old rows after REPLICA IDENTITY FULL."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}), orders.insert({"id": 2, "note": "two"}))
    w.commit(orders.delete({"id": 1}))
    full = w.alter(orders, key=(), identity=RelationReplicaIdentity("f"))
    w.commit(full.update({"id": 2, "note": "zwei"}, {"id": 2, "note": "two"}), full.delete({"id": 2, "note": "zwei"}))


@GROUP.case("altered-while-another-is-not", _UPDATE)
def altered_while_another_is_not(w: CaseWriter) -> None:
    """Keep the descriptions of other tables when one changes."""
    orders, pairs = w.orders(), w.table("pairs", {"id": "int4", "note": "text"}, key=["id"])
    w.commit(orders.insert({"id": 1, "note": "one"}), pairs.insert({"id": 1, "note": "one"}))
    wider = w.alter(orders, columns={"extra": "text", "id": "int4", "note": "text"})
    w.commit(wider.insert({"extra": "x", "id": 2, "note": "two"}), pairs.insert({"id": 2, "note": "two"}))


@GROUP.case("type-modifiers", "protocol-logicalrep-message-formats-Relation: atttypmod, -1 for none")
def type_modifiers(w: CaseWriter) -> None:
    """Take type modifiers, such as those of numeric(10,2) and varchar(5), and of a negative scale."""
    modifiers = {"a": (10 << 16 | 2) + 4, "b": 9, "c": (5 << 16 | (-3 & 0x7FF)) + 4}
    columns = {"id": "int4", "a": "numeric", "b": "varchar", "c": "numeric"}
    table = w.table("exact", columns, key=["id"], modifiers=modifiers)
    w.commit(table.insert({"id": 1, "a": "1.50", "b": "abcde", "c": "12000"}))
