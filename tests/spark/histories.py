"""Histories of rows for tests of states: what a table held, and the changes that it sent, in plain Python."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from pgoutput_construct.spark import Table, changes_schema
from pgoutput_construct.spark._log_view.replicated_tables import Identity

__all__ = [
    "COLUMNS",
    "KEYS",
    "History",
    "batch_of",
    "change_frame",
    "contents",
    "held",
    "histories",
    "table_of",
    "vanished_of",
]

COLUMNS = pa.schema(
    [
        ("h", pa.int32()),
        ("k", pa.float64()),
        ("day", pa.date32()),
        ("n", pa.int32()),
        ("big", pa.string()),
        ("doc", pa.binary()),
    ]
)
KEYS = ("h", "k", "day")
LONG = ("big", "doc")
INFINITY = "infinity"

Values = dict[str, Any]


@dataclass
class History:
    """Some rows of a table (those with its number), and their changes."""

    number: int
    full: bool
    rows: list[Values] = field(default_factory=list)
    changes: list[Values] = field(default_factory=list)
    vanished: list[int] = field(default_factory=list)
    """Which of them delete a row that was not there."""
    cuts: list[int] = field(default_factory=list)
    """How many changes there are in the first batches."""
    then: list[list[Values]] = field(default_factory=list)
    """The rows at the cuts."""

    def insert(self, key: int, value: int) -> None:
        """Add a row: with a key of its own, or any number of equal ones."""
        row = self._row(key, value)
        if self.full or self._find(key) is None:
            self.rows.append(row)
            self._emit("insert", row, None)

    def update(self, key: int, other: int, value: int, kept: int) -> None:
        """Change a row, its key too where that is free; ``kept`` are bits: which long values stay as they are."""
        found = self._find(key)
        if found is None or (other != key and not self.full and self._find(other) is not None):
            return
        old, row = self.rows.pop(found), self._row(other, value)
        same = [name for bit, name in enumerate(LONG) if kept >> bit & 1]
        row |= {name: old[name] for name in same}
        self.rows.append(row)
        self._emit("update", row, old if self.full or key != other else None, same)

    def delete(self, key: int) -> None:
        """Delete a row."""
        found = self._find(key)
        if found is not None:
            self._emit("delete", None, self.rows.pop(found))

    def vanish(self, key: int, value: int) -> None:
        """Delete a row that is not there."""
        row = self._row(key, value)
        if row not in self.rows if self.full else self._find(key) is None:
            self._emit("delete", None, row)
            self.vanished.append(len(self.changes) - 1)

    def cut(self) -> None:
        """A batch ends."""
        self.cuts.append(len(self.changes))
        self.then.append([dict(row) for row in self.rows])

    def _row(self, key: int, value: int) -> Values:
        day = INFINITY if key == 2 else None if self.full and key == 1 else date(2020, 1, 1 + key)
        text = None if value == 3 else f"long {value}"
        long = {"big": text, "doc": None if text is None else text.encode()}
        return {"h": self.number, "k": (-0.0, 1.0, 1.5, 2.5)[key], "day": day, "n": value % 2, **long}

    def _find(self, key: int) -> int | None:
        wanted = self._row(key, 0)
        same = [all(repr(row[name]) == repr(wanted[name]) for name in KEYS) for row in self.rows]
        return same.index(True) if any(same) else None

    def _emit(self, op: str, new: Values | None, old: Values | None, unsent: Sequence[str] = ()) -> None:
        untyped: dict[str, str] = {}
        if old is not None and not self.full:
            old = {name: value for name, value in old.items() if name in KEYS}
        row = _typed({name: None if name in unsent else value for name, value in (new or {}).items()}, untyped, "")
        row |= {"_op": op, "_commit_lsn": 1 + len(self.changes) // 3, "_seq": len(self.changes) % 3, "_xid": 1}
        row |= {"_before": None if old is None else _typed(old, untyped, "_before."), "_unchanged": list(unsent)}
        row |= {"_relation_oid": 1}
        self.changes.append({**row, "_untyped": untyped or None})


def _typed(row: Values, untyped: dict[str, str], prefix: str) -> Values:
    """Put into the map what a date cannot hold."""
    if row.get("day") != INFINITY:
        return row
    untyped[f"{prefix}day"] = INFINITY
    return {**row, "day": None}


_KEY, _VALUE = st.integers(0, 3), st.integers(0, 3)
_STEPS = st.one_of(
    st.tuples(st.just("insert"), _KEY, _VALUE),
    st.tuples(st.just("update"), _KEY, _KEY, _VALUE, st.integers(0, 3)),
    st.tuples(st.just("delete"), _KEY),
    st.tuples(st.just("vanish"), _KEY, _VALUE),
    st.tuples(st.just("cut")),
)


@st.composite
def histories(draw: st.DrawFn, full: bool, batches: int = 3) -> list[History]:
    """Return some dozens of histories, each cut into so many batches."""
    found = []
    for number in range(draw(st.integers(40, 60))):
        history = History(number, full)
        for name, *arguments in draw(st.lists(_STEPS, max_size=25)):
            if name != "cut" or len(history.cuts) < batches - 1:
                getattr(history, name)(*arguments)
        while len(history.cuts) < batches:
            history.cut()
        found.append(history)
    return found


def change_frame(spark: Any, changes: Iterable[Values]) -> Any:
    """Return changes as a DataFrame, in no order."""
    shuffled = sorted(changes, key=repr)
    return spark.createDataFrame(pa.Table.from_pylist(shuffled, schema=changes_schema(COLUMNS))).repartition(2)


def vanished_of(found: Iterable[History], number: int) -> list[tuple[int, int, int]]:
    """Return which changes of a batch delete what is not there: history, ``_commit_lsn``, ``_seq``."""
    return sorted(
        (each.number, each.changes[index]["_commit_lsn"], each.changes[index]["_seq"])
        for each in found
        for index in each.vanished
        if ([0, *each.cuts])[number] <= index < each.cuts[number]
    )


def batch_of(found: Iterable[History], number: int) -> list[Values]:
    """Return the changes of one batch of all histories."""
    return [row for each in found for row in each.changes[([0, *each.cuts])[number] : each.cuts[number]]]


def contents(state: Any) -> Counter[tuple[str, ...]]:
    """Return the rows of a state, comparable."""
    rows = (row.asDict() for row in state.select(*COLUMNS.names, "_untyped").collect())
    return Counter(_said({**row, **(row["_untyped"] or {})}) for row in rows)


def held(rows: Iterable[Values]) -> Counter[tuple[str, ...]]:
    """Return the rows of histories in the same form."""
    return Counter(map(_said, rows))


def _said(row: Mapping[str, Any]) -> tuple[str, ...]:
    values = (row[name] for name in COLUMNS.names)
    return tuple(repr(bytes(value) if isinstance(value, bytearray) else value) for value in values)


def table_of(full: bool) -> Table:
    """Return what is known of the table."""
    names, keys = tuple(COLUMNS.names), () if full else KEYS
    identity = Identity("f" if full else "d", keys, (0, 0), (2**60, 0))
    return Table(
        namespace="public",
        name="t",
        columns=COLUMNS,
        current=names,
        key_columns=keys,
        replica_identity=identity.replica_identity,
        identities=(identity,),
        shapes=(((0, 0), frozenset(names)),),
        relation_oid=1,
        relation_oids=(1,),
        base=None,
        names={},
        missing={},
        defaults={},
        segment_indexes=(),
        rows=0,
    )
