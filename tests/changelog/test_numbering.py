"""Which number a column has: what is said to be certain is so, for any history of a table."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgoutput_construct.changelog._facts.catalog_readings import CatalogColumn, TableReading
from pgoutput_construct.changelog._facts.description_usage import DescriptionUse
from pgoutput_construct.changelog._facts.numbering import ReadingWindow, column_ids
from pgoutput_construct.changelog._facts.successive_texts import SharedColumns
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire.messages import RelationColumn

STEPS = st.lists(st.tuples(st.sampled_from(["add", "drop", "rename"]), st.integers(0, 3)), max_size=8)


@dataclass(frozen=True)
class Table:
    """The columns of a table at one moment: name by number, None for one that was dropped."""

    names: tuple[str | None, ...] = ("a",)
    xids: tuple[int, ...] = (0,)
    """Who wrote what the catalog says of each."""

    def after(self, step: tuple[str, int], xid: int) -> "Table":
        """Return the table after one ALTER TABLE, or as it is where that cannot be."""
        what, place = step
        names, xids = list(self.names), list(self.xids)
        if what == "add" and "abcd"[place] not in names:
            return Table((*names, "abcd"[place]), (*xids, xid))
        if place < len(names) and names[place] is not None and what != "add":
            fresh = "abcd"[xid % 4] if "abcd"[xid % 4] not in names else f"new{xid}"
            names[place], xids[place] = None if what == "drop" else fresh, xid
        return Table(tuple(names), tuple(xids))

    def reading(self) -> TableReading:
        """Return what the catalog says."""
        columns = [
            CatalogColumn(
                *(place + 1, "" if name is None else name, 25, -1),
                xmin=xid,
                dropped=name is None,
                published=name is not None,
            )
            for place, (name, xid) in enumerate(zip(self.names, self.xids, strict=True))
        ]
        snapshot = Snapshot(1, 1, (), Lsn(0))
        return TableReading(snapshot=snapshot, oid=1, namespace="s", name="t", columns=SharedColumns(columns))

    def described(self) -> tuple[list[RelationColumn], tuple[int, ...]]:
        """Return the columns as a Relation has them, and their numbers."""
        live = [(place + 1, name) for place, name in enumerate(self.names) if name is not None]
        return [RelationColumn(0, name, 25, -1) for _, name in live], tuple(number for number, _ in live)


@given(STEPS, st.data())
def test_what_is_certain_is_so(steps: list[tuple[str, int]], data: st.DataObject) -> None:
    """Between two readings, or three, whatever was added, dropped and renamed: the numbers, or none."""
    tables = [Table()]
    for place, step in enumerate(steps):
        tables.append(tables[-1].after(step, place + 1))
    moments = sorted(data.draw(st.lists(st.integers(0, len(steps)), min_size=2, max_size=3)))
    place = data.draw(st.integers(moments[0], moments[-1]))
    columns, numbers = tables[place].described()
    readings = [tables[moment].reading() for moment in moments]
    found = ReadingWindow(readings).find(columns, lambda xid: place < xid)
    assert found in (None, numbers)
    assert ReadingWindow(readings).find(columns, lambda xid: None) in (None, numbers)


@given(STEPS)
def test_a_table_that_stays_is_certain(steps: list[tuple[str, int]]) -> None:
    """Where the catalog says the same before and after, the numbers are those."""
    table = Table()
    for place, step in enumerate(steps):
        table = table.after(step, place + 1)
    columns, numbers = table.described()
    for readings in ([table.reading()], [table.reading()] * 2):
        assert ReadingWindow(readings).find(columns, lambda xid: None) == numbers


def test_xids_wrap_around() -> None:
    """What wrote before another transaction, after it, or before and after; and what a snapshot has of it."""
    use = DescriptionUse(Lsn(1), (2**32 - 5, 3))
    assert [use.precedes(xid) for xid in (10, 2**32 - 10, 0, 3, 2**32 - 5)] == [True, False, None, None, None]
    copied = DescriptionUse(Snapshot(7, 9, (7,), Lsn(1)))
    assert [copied.precedes(xid) for xid in (6, 7, 8, 9)] == [False, True, False, True]


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ([(("x", "y"), None)], [("x", "y")]),
        ([(("a", "b"), (1, 2)), (("a", "c"), None), (("a", "c"), (1, 3))], [(1, 2), (1, 3), (1, 3)]),
        ([(("a",), (1,)), (("a",), None), (("a",), (2,))], [(1,), (1,), (2,)]),
        ([(("a", "b"), (1, 2)), (("a",), (1,)), (("b", "new"), None)], [(1, 2), (1,), ("b", "new")]),
        ([(("a",), (1,)), (("b",), (1,)), (("a",), None)], [(1,), (1,), (1,)]),
        ([(("id", "a"), (1, 2)), (("id", "b"), (1, 2)), (("id", "b", "a"), None)], [(1, 2), (1, 2), (1, 2, "a")]),
        ([(("id", "b", "a"), None), (("id", "b"), (1, 2)), (("id", "a"), (1, 2))], [(1, 2, "a"), (1, 2), (1, 2)]),
    ],
    ids=["unknown", "before and after", "before first", "dropped", "former", "former of another", "later of another"],
)
def test_names_without_numbers(
    described: list[tuple[tuple[str, ...], tuple[int, ...] | None]], expected: object
) -> None:
    """A name is the column that had it last, else the one that has it next, and never one that has another name."""
    assert column_ids(described) == expected
    assert all(len({*ids}) == len(ids) for ids in expected)
