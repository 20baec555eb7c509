"""Columns over all alterations of a table; and the values that rows have which are older than a column."""

from collections.abc import Mapping

import pyarrow as pa

import pgoutput_construct as pgo
from pgoutput_construct.changelog._facts.catalog_readings import CatalogColumn, TableReading
from pgoutput_construct.changelog._facts.lineage import Lineage
from pgoutput_construct.changelog._facts.successive_texts import SharedColumns
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.columnar import rows_schema
from pgoutput_construct.spark._log_view.table_columns import (
    ColumnDefault,
    catalog_description,
    find_columns,
    group_descriptions,
    with_column_defaults,
)
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.rows import OPS

INT, TEXT, NUMERIC, INTS = 23, 25, 1700, 1007


def lineage(numbers: Mapping[int, tuple[int, ...]], missing: Mapping[int, str] = {}) -> Lineage:
    """Attribute numbers by the seq of descriptions, and the texts of older rows."""
    of_tables = {(oid, number): text for oid in (1, 2) for number, text in missing.items()}
    return Lineage(_numbers=numbers, _missing=of_tables)


def described(seq: int, *names: str, oid: int = 1) -> tuple[int, Description, bool]:
    """Integers called so; ``!`` before the first: rows that were copied."""
    columns = tuple(pgo.RelationColumn(0, name.lstrip("!"), INT, -1) for name in names)
    return seq, Description(seq, pgo.Relation(None, oid, "public", "t", "d", columns), {}), names[0].startswith("!")


def test_renamed_and_added_again() -> None:
    """One column under its latest name; another one where the name comes back; by name where nothing is known."""
    known = lineage({0: (1, 2), 5: (1, 2), 9: (1, 3)})
    latest_first = [described(9, "id", "b"), described(7, "id", "b"), described(5, "id", "b"), described(0, "id", "a")]
    found = find_columns(group_descriptions(latest_first, known), known)
    assert found.names == {9: ("id", "b"), 7: ("id", "b_dropped_2"), 5: ("id", "b_dropped_2"), 0: ("id", "b_dropped_2")}
    assert found.schema.names == ["id", "b", "b_dropped_2"] and found.current == ("id", "b")
    nothing = lineage({})
    assert find_columns(group_descriptions(latest_first, nothing), nothing).schema.names == ["id", "b", "a"]


def test_rows_older_than_a_column() -> None:
    """Those described before it, and copied ones that the log has after it; not those after it was dropped."""
    known = lineage({0: (1,), 3: (1, 2), 5: (1,), 6: (1,), 9: (1, 3)}, {2: "20", 3: "30"})
    uses = [
        described(9, "id", "d"),
        described(6, "!id"),
        described(5, "id"),
        described(3, "id", "c"),
        described(0, "id"),
    ]
    found = find_columns(group_descriptions(uses, known), known)
    texts = {index: {name: each.text for name, each in given.items()} for index, given in found.missing.items()}
    assert texts == {0: {"c": "20", "d": "30"}, 3: {"d": "30"}, 5: {"d": "30"}, 6: {"d": "30"}}


def test_tables_that_had_one_name() -> None:
    """They share columns of equal names, whatever their numbers."""
    known = lineage({0: (1, 2), 5: (1, 2)}, {2: "7"})
    found = find_columns(group_descriptions([described(5, "id", "b", oid=2), described(0, "b", "id")], known), known)
    assert found.schema.names == ["id", "b"] and found.names == {5: ("id", "b"), 0: ("b", "id")}


def test_what_the_catalog_says_comes_last() -> None:
    """A column that was renamed, and one that was added, since the last row."""
    known = lineage({0: (1, 2)}, {4: "x"})
    columns = (
        CatalogColumn(1, "id", INT, published=True),
        CatalogColumn(2, "new", INT, published=True),
        CatalogColumn(3, dropped=True),
        CatalogColumn(4, "later", TEXT, published=True),
        CatalogColumn(5, "generated", TEXT),
    )
    snapshot = Snapshot(1, 1, (), pgo.Lsn(9))
    reading = TableReading(oid=1, namespace="public", name="t", snapshot=snapshot, columns=SharedColumns(columns))
    used = group_descriptions([described(0, "id", "old")], known)
    found = find_columns([catalog_description(reading, used), *used], known)
    assert found.current == ("id", "new", "later") and found.names == {0: ("id", "new")}
    assert found.missing[0]["later"].text == "x"


def test_values_are_given_to_new_rows() -> None:
    """Typed, lists too, and as text where the type cannot hold them; not where there is no new row."""
    schema = rows_schema(pa.schema([("n", pa.int32()), ("d", pa.decimal128(5, 2)), ("g", pa.list_(pa.int32()))]))
    rows = [{"_op": op, "_unchanged": [], "_untyped": [("x", "y")] if op == "update" else None} for op in OPS]
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    kinds = {"n": (INT, -1, "5"), "d": (NUMERIC, 327686, "NaN"), "g": (INTS, -1, "{1,NULL}")}
    missing = {
        name: ColumnDefault(pgo.RelationColumn(0, name, *kind), {}, text) for name, (*kind, text) in kinds.items()
    }
    for row in with_column_defaults(batch, missing).to_pylist():
        has_row = row["_op"] not in ("delete", "truncate")
        assert (row["n"], row["d"], row["g"]) == ((5, None, [1, None]) if has_row else (None, None, None))
        assert dict(row["_untyped"] or ()).get("d") == ("NaN" if has_row else None)
    assert with_column_defaults(batch, {}) is batch
