"""Current rows, rebuilt from changes."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from pgoutput_construct.spark import changes_schema, current_state
from pgoutput_construct.spark._log_view.change_columns import COMPONENT
from pgoutput_construct.spark._state.change_survey import survey
from pgoutput_construct.spark._state.replay_tasks import replay_events
from pgoutput_construct.spark._state.row_replay import Replay

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("a", pa.int32()), ("b", pa.timestamp("us", tz="UTC")), ("n", pa.int32()), ("big", pa.string())])
KEYS = ("a", "b")
INFINITY = "infinity"


@dataclass
class Source:
    """A table, and the changes that it would send."""

    rng: random.Random
    full: bool = False
    rows: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)

    def step(self) -> None:
        """Change something."""
        free = [key for key in self.keys() if key not in self.rows]
        move = self.rng.choice(["insert", "insert", "update", "move", "move", "delete", "truncate"])
        if move == "truncate" and self.rng.random() < 0.1:
            self.rows = {}
            self.emit("truncate", None, None)
        elif move == "insert" and free:
            self.put("insert", None, self.rng.choice(free))
        elif self.rows and move in ("update", "move", "delete"):
            key = self.rng.choice(list(self.rows))
            if move == "delete":
                self.emit("delete", None, self.rows.pop(key))
            else:
                self.put("update", key, self.rng.choice(free) if free and move == "move" else key)

    def keys(self) -> list[tuple[int, str]]:
        """Few keys, so that they are used again and again; one part cannot be held by its type."""
        return [(a, b) for a in range(4) for b in ("2024-01-01 00:00:00+00", "1999-10-31 01:30:00+00", INFINITY)]

    def put(self, op: str, old: tuple[int, str] | None, new: tuple[int, str]) -> None:
        """Insert or update, sometimes with a new long value."""
        before = None if old is None else self.rows.pop(old)
        row = {"a": new[0], "b": new[1], "n": len(self.changes) % 7, "big": f"long {len(self.changes) % 3}"}
        kept = before is not None and self.rng.random() < 0.6
        if kept and before is not None:
            row["big"] = before["big"]
        self.rows[new] = row
        self.emit(op, row, before if self.full or old != new else None, ["big"] if kept else [])

    def emit(
        self, op: str, new: dict[str, Any] | None, before: dict[str, Any] | None, unchanged: Iterable[str] = ()
    ) -> None:
        """Write a change down as the job would."""
        untyped: dict[str, str] = {}
        old = None if before is None else {k: v for k, v in before.items() if self.full or k in KEYS}
        row = typed({k: None if k in unchanged else v for k, v in (new or {}).items()}, untyped, "")
        number = len(self.changes)
        row |= {"_op": op, "_commit_lsn": number // 3, "_seq": number % 3, "_xid": 1, "_commit_time": None}
        row |= {"_before": None if old is None else typed(old, untyped, "_before.")}
        self.changes.append({**row, "_unchanged": list(unchanged), "_untyped": untyped or None})


def typed(row: dict[str, Any], untyped: dict[str, str], prefix: str) -> dict[str, Any]:
    """Put into the map what a timestamp cannot hold."""
    if row.get("b") == INFINITY:
        untyped[f"{prefix}b"] = INFINITY
    moment = row.get("b") not in (None, INFINITY)
    return {**row, "b": datetime.fromisoformat(row["b"]).astimezone(UTC) if moment else None}


def frame(spark: Any, changes: list[dict[str, Any]]) -> Any:
    """Changes as a DataFrame, in no order."""
    schema = changes_schema(COLUMNS)
    shuffled = random.Random(1).sample(changes, len(changes))
    return spark.createDataFrame(pa.Table.from_pylist(shuffled, schema=schema)).repartition(3)


def found(state: Any) -> Counter[tuple[Any, ...]]:
    """Rows of a state, comparable."""
    assert state.columns == [*COLUMNS.names, "_untyped"]
    return Counter((r.a, r.b, r.n, r.big, tuple((r._untyped or {}).items())) for r in state.collect())


def expected(rows: Iterable[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """Rows of a source, in the same form."""
    result: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        untyped: dict[str, str] = {}
        values = typed(row, untyped, "")
        moment = values["b"] and values["b"].replace(tzinfo=None)
        result[(values["a"], moment, values["n"], values["big"], tuple(untyped.items()))] += 1
    return result


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.long), 1])
@pytest.mark.parametrize("full", [False, True])
def test_against_a_dictionary(spark: Any, seed: int, full: bool) -> None:
    """Hundreds of changes of a few keys, many of them changes of the key, leave what the source has."""
    source = Source(random.Random(seed), full)
    for _ in range(300):
        source.step()
    changes = frame(spark, source.changes)
    assert found(current_state(changes, KEYS, "d")) == expected(source.rows.values())
    if full:
        assert found(current_state(changes, (), "f")) == expected(source.rows.values())


def test_chain_of_keys(spark: Any) -> None:
    """A value that was sent once is carried along a long chain of keys, and through a swap of two rows."""
    source, day = Source(random.Random(0)), "2024-01-01 00:00:00+00"
    for number in (0, 50):
        source.put("insert", None, (number, day))
    source.rng.random = lambda: 0.0  # type: ignore[method-assign]  # nothing is sent again
    for old, new in ((0, 100), (50, 0), (100, 50)):
        source.put("update", (old, day), (new, day))
    for number in range(200, 240):
        source.put("update", (50 if number == 200 else number - 1, day), (number, day))
    state = current_state(frame(spark, source.changes), KEYS, "d")
    assert found(state) == expected(source.rows.values())


def test_chain_over_a_table(spark: Any) -> None:
    """Where every row takes the key of the next, and sends no long value, each key is replayed by itself."""
    source, day = Source(random.Random(0)), "2024-01-01 00:00:00+00"
    for number in range(30):
        source.put("insert", None, (number, day))
    source.rng.random = lambda: 0.0  # type: ignore[method-assign]  # nothing is sent again
    for number in reversed(range(30)):
        source.put("update", (number, day), (number + 1, day))
    changes = frame(spark, source.changes)
    replay = Replay(tuple(COLUMNS.names), KEYS, ("big",))
    events, _ = replay_events(None, changes, replay, survey(changes, KEYS, COLUMNS.names), apart=False)
    assert max(row["count"] for row in events.groupBy(COMPONENT).count().collect()) == 3  # it comes, goes, and comes
    assert found(current_state(changes, KEYS, "d")) == expected(source.rows.values())


def test_moved_texts(spark: Any) -> None:
    """A value that its type cannot hold is taken along as text; columns may be called as those that we work with."""
    columns = pa.schema([("id", pa.int32()), ("v0", pa.string()), ("_open", pa.list_(pa.int32())), ("_up", pa.int32())])
    changes = list[dict[str, Any]]()

    def emit(op: str, new: int, before: int | None, *unchanged: str) -> None:
        row = {"id": new, "_up": len(changes), "_op": op, "_commit_lsn": len(changes), "_seq": 0, "_xid": 1}
        if op == "insert":
            row |= {"v0": f"long {new}", "_untyped": {"_open": f"{{{{{new}}}}}"}}
        changes.append({**row, "_before": None if before is None else {"id": before}, "_unchanged": list(unchanged)})

    for number in (1, 2, 3):
        emit("insert", number, None)
    for old, new in ((1, 10), (2, 1), (10, 2), (3, 11), (11, 12)):
        emit("update", new, old, "v0", "_open")
    emit("update", 12, None, "v0", "_open")
    events = spark.createDataFrame(pa.Table.from_pylist(changes, changes_schema(columns)))
    rows = {row.id: (row.v0, row._untyped) for row in current_state(events, ("id",), "d").collect()}
    assert rows == {new: (f"long {was}", {"_open": f"{{{{{was}}}}}"}) for new, was in ((1, 2), (2, 1), (12, 3))}


def test_duplicates_and_nulls(spark: Any) -> None:
    """With the full row as identity equal rows are counted."""
    source = Source(random.Random(0), full=True)
    row = {"a": None, "b": None, "n": 1, "big": None}
    for _ in range(3):
        source.emit("insert", row, None)
    source.emit("delete", None, row)
    assert found(current_state(frame(spark, source.changes), (), "f")) == expected([row, row])


def test_the_order_of_full_rows(spark: Any) -> None:
    """The delete of a row that never came takes nothing from one that comes later; an update keeps the number."""
    source = Source(random.Random(0), full=True)
    row, other = {"a": 1, "b": None, "n": 1, "big": "x"}, {"a": 2, "b": None, "n": 1, "big": "x"}
    source.emit("delete", None, row)
    source.emit("insert", row, None)
    source.emit("update", other, row)
    source.emit("update", other, other, ["big"])
    assert found(current_state(frame(spark, source.changes), (), "f")) == expected([other])


def test_columns_that_were_dropped(spark: Any) -> None:
    """The state has the columns asked for."""
    source = Source(random.Random(0))
    source.put("insert", None, (1, INFINITY))
    state = current_state(frame(spark, source.changes), ("a",), "d", ("n", "a"))
    assert [tuple(row) for row in state.collect()] == [(0, 1, None)]


@pytest.mark.parametrize("op", ["insert", "update"])
def test_unknown_value(spark: Any, op: str) -> None:
    """A change that leaves a value open, of a row that the log does not have, is an error that speaks of any change."""
    source = Source(random.Random(0))
    source.emit(op, {"a": 1, "b": None, "n": 1, "big": "x"}, None, ["big"])
    with pytest.raises(Exception, match=r"row .*: an update does not send the value of the column 'big'"):
        current_state(frame(spark, source.changes), KEYS, "d").collect()
