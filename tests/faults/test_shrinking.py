"""Histories that fail are shrunk to what matters, and the comparison sees each difference."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.forensics._delta_debugging import minimized
from pgoutput_construct.wire import Lsn
from tools.faults.generated_histories import CONTROLS, History, Step, generated
from tools.faults.noted_tables import Moment, NotedTable, list_elements, mismatch, sent_value
from tools.faults.shrinking import as_test, shrunk


@pytest.mark.parametrize("guilty", [{3}, {0, 99}, {17, 18, 60}, set(range(0, 100, 25))])
def test_the_relevant_steps_remain(guilty: set[int]) -> None:
    """Items that fail only together, wherever they stand among others."""
    trials = 0

    def fails(some: list[int]) -> bool:
        nonlocal trials
        trials += 1
        return guilty <= set(some)

    assert minimized(range(100), fails) == sorted(guilty)
    assert trials < 120


def test_a_failure_without_steps() -> None:
    """It is shrunk to nothing."""
    assert minimized("abc", lambda _: True) == []


def test_shrinking_stops_in_time() -> None:
    """Then what is found by then is returned, and it fails."""
    left = iter([False] * 4 + [True] * 1000)
    found = minimized(range(100), lambda some: 3 in some, lambda: next(left))
    assert 3 in found and 1 < len(found) < 100


HISTORY = History(
    "1 18 0",
    18,
    "FOR ALL TABLES",
    (
        Step("created", ("CREATE TABLE a ()",), "t0"),
        Step("created", ("CREATE TABLE b ()",), "t1"),
        Step("transaction", ("BEGIN", "one", "two", "three", "COMMIT"), "t1"),
        Step("note"),
        Step("transaction", ("BEGIN", "four"), "t1", session=1),
        Step("dml", ("five",), "t0"),
        Step("snapshot", ("public.b",), "t1"),
        Step("transaction", ("six", "COMMIT"), "t1", session=1),
    ),
    {"streaming": "on"},
)


def test_a_history_is_shrunk_to_statements() -> None:
    """Other lives, steps and statements are left out; the statements of a transaction stay together."""

    def fails(history: History) -> bool:
        said = [statement for step in history.steps for statement in step.statements]
        return {"two", "six", "four", "public.b"} <= set(said)

    smallest, is_sure = shrunk(HISTORY, {"t1"}, fails, 60)
    assert is_sure and [(step.feature, step.statements, step.session) for step in smallest.steps] == [
        ("transaction", ("two",), 0),
        ("transaction", ("four",), 1),
        ("snapshot", ("public.b",), 0),
        ("transaction", ("six",), 1),
    ]


def test_the_failing_table_is_found() -> None:
    """Where no table is named."""
    smallest, is_sure = shrunk(HISTORY, set(), lambda some: any("five" in step.statements for step in some.steps), 60)
    assert is_sure and [step.statements for step in smallest.steps] == [("five",)]


def test_a_failure_that_is_not_reproducible() -> None:
    """It is returned as it was."""
    assert shrunk(HISTORY, {"t1"}, lambda _: False, 60) == (HISTORY, False)


def test_a_shrunk_history_is_a_test() -> None:
    """The text that is printed is Python, and makes the same history."""
    from tools.faults.history_runs import Settings

    settings = Settings("delta", with_history=False, kills=3)
    given = replace(HISTORY, options={"binary": True}, replication={"batch_transactions": 2})
    text = as_test(given, "state: public.b: 1 rows missing", settings)
    seen: list[Any] = []

    def perform(history: History, _server: Any, _spark: Any, _place: Any, settings: Settings) -> Any:
        seen.extend([history, settings])
        return type("Outcome", (), {"failures": []})

    names: dict[str, Any] = {"History": History, "Step": Step, "perform": perform, "Any": Any, "Settings": Settings}
    exec(text, names | {"EmbeddedServer": object, "Path": object}, names)
    names["test_history_1_18_0"](None, None, None)
    assert seen == [replace(given, steps=tuple(replace(step, life="") for step in HISTORY.steps)), settings]


def test_a_history_is_determined_by_its_name() -> None:
    """The same each time, and another one for another name or release."""
    drawn = generated("7 18 0", 18, 20)
    assert drawn == generated("7 18 0", 18, 20) and drawn.steps != generated("7 18 1", 18, 20).steps
    assert {"created", "dml", *CONTROLS[1:3]} <= {step.feature for step in drawn.steps}
    lives = {step.life for step in drawn.steps}
    assert len(lives) > 5 and not {step.feature for step in generated("7 18 0", 18, 20, without=["dml"]).steps} & {
        "dml"
    }


NOTED = NotedTable(
    1, "public.t", {"id": 1, "v": 2}, {"id": "integer", "v": "text"}, (("1", "a"), ("2", None), ("2", None))
)


def _table(ids: list[int], texts: list[str | None], untyped: list[Any] | None = None) -> pa.Table:
    kind = pa.map_(pa.string(), pa.string())
    columns = {"id": pa.array(ids, pa.int32()), "v": pa.array(texts)}
    return pa.table({**columns, "_untyped": pa.array(untyped or [None] * len(ids), kind), "_seq": ids})


OWN = ["_untyped", "_seq"]


def test_equal_tables() -> None:
    """In any order; equal rows count."""
    assert mismatch(NOTED, _table([2, 1, 2], [None, "a", None]), skipped=OWN) == ""
    assert mismatch(NOTED, _table([2, 1], [None, "a"]), skipped=OWN) == "1 rows missing: ('2', None)"
    assert (
        mismatch(NOTED, _table([2, 1, 2, 2], [None, "a"] + [None] * 2), skipped=OWN) == "1 rows too many: ('2', None)"
    )


@pytest.mark.parametrize("text", ["A", "a ", "", None, "'a'"])
def test_another_value(text: str | None) -> None:
    """Values are compared as they are."""
    found = mismatch(NOTED, _table([2, 1, 2], [None, text, None]), skipped=OWN)
    assert found == f"1 rows too many: ('1', {text!r}); 1 rows missing: ('1', 'a')"


def test_columns() -> None:
    """Another order, or one too many, is a difference; of chosen ones the names may differ."""
    table = _table([2, 1, 2], [None, "a", None])
    assert mismatch(NOTED, table.select(["v", "id", *OWN]), skipped=OWN).startswith("columns ['v', 'id'] instead")
    renamed = table.rename_columns(["id", "now", *OWN])
    assert mismatch(NOTED, renamed, skipped=OWN).startswith("columns")
    assert mismatch(NOTED, renamed, {"v": "now"}, skipped=OWN) == ""
    assert mismatch(NOTED, renamed, {"v": "id"}, skipped=OWN) != ""


def test_a_table_without_columns() -> None:
    """Its rows are counted."""
    noted = NotedTable(1, "public.t", {}, {}, ((), ()))
    assert mismatch(noted, _table([1, 2], ["x", "y"]), {}, skipped=OWN) == ""
    assert mismatch(noted, _table([1], ["x"]), {}, skipped=OWN) == "1 rows instead of 2"


SECONDS = datetime(44, 3, 15, 12, 0, 0, 500000, tzinfo=UTC)
KINDS: list[tuple[pa.DataType, Any, str, str]] = [
    (pa.bool_(), True, "t", "f"),
    (pa.float64(), -0.0, "-0", "0"),
    (pa.float64(), float("nan"), "NaN", "Infinity"),
    (pa.float64(), 1e20, "1e+20", "1.0000000000000002e+20"),
    (pa.float32(), 0.10000000149011612, "0.1", "0.2"),
    (pa.decimal128(12, 3), Decimal("1.500"), "1.500", "1.501"),
    (pa.decimal128(12, 3), Decimal("-999.000"), "-999", "999"),
    (pa.timestamp("us"), datetime(2024, 2, 29), "2024-02-29", "2024-02-28"),
    (pa.binary(), b"\x00\xff", "\\x00ff", "\\x00fe"),
    (pa.timestamp("us"), SECONDS.replace(tzinfo=None), "0044-03-15 12:00:00.5", "0044-03-15 12:00:00.5 BC"),
    (pa.timestamp("us", "UTC"), SECONDS, "0044-03-15 12:00:00.5+00", "0044-03-15 12:00:00+00"),
    (pa.date32(), datetime(1, 2, 3, tzinfo=UTC).date(), "0001-02-03", "0001-02-03 BC"),
    (pa.list_(pa.string()), ["a", None, "NULL", "", 'b"\\ ,{'], '{a,NULL,"NULL","","b\\"\\\\ ,{"}', "{a}"),
    (pa.list_(pa.float64()), [0.5, -0.0, None], "{0.5,-0,NULL}", "{0.5,0,NULL}"),
    (pa.list_(pa.bool_()), [], "{}", "{t}"),
]


@pytest.mark.parametrize(
    ("kind", "value", "text", "other"), KINDS, ids=[f"{kind} {text}" for kind, _, text, _ in KINDS]
)
def test_values_of_types(kind: pa.DataType, value: Any, text: str, other: str) -> None:
    """Each is what PostgreSQL writes, and nothing else."""
    found = pa.table({"v": pa.array([value], kind), "_untyped": pa.array([None], pa.map_(pa.string(), pa.string()))})
    for sent, is_equal in ((text, True), (other, False)):
        noted = NotedTable(1, "public.t", {"v": 1}, {"v": ""}, ((sent,),))
        assert (mismatch(noted, found, skipped=["_untyped"]) == "") is is_equal


def test_values_that_a_type_cannot_hold() -> None:
    """They are text in addition to the row."""
    noted = NotedTable(1, "public.t", {"id": 1, "v": 2}, {"id": "", "v": ""}, (("infinity", "x"),))
    assert mismatch(noted, _table([0], ["x"], [[("id", "infinity")]]), skipped=OWN) == ""
    assert mismatch(noted, _table([0], ["x"], [[("id", "-infinity")]]), skipped=OWN) != ""


def test_a_moment_and_a_copy() -> None:
    """A moment has all that a copy's snapshot contains unless a transaction had not ended that had by then."""
    moment = Moment(Lsn(100), SECONDS, {}, xmax=20, xip=frozenset({15}))
    assert moment.has_all_of(Snapshot(10, 20, (15, 17), Lsn(90))) and moment.has_all_of(Snapshot(10, 14, (), Lsn(100)))
    assert not moment.has_all_of(Snapshot(10, 20, (17,), Lsn(90)))
    assert not moment.has_all_of(Snapshot(10, 21, (15,), Lsn(90)))
    assert not moment.has_all_of(Snapshot(10, 20, (15,), Lsn(101)))


def test_our_columns_under_another_prefix() -> None:
    """What they are called is said; the table may have columns of these names."""
    kind = pa.map_(pa.string(), pa.string())
    noted = NotedTable(1, "public.t", {"_untyped": 1}, {"_untyped": ""}, (("x",), ("infinity",)))
    found = pa.table({"_untyped": ["x", None], "pg_untyped": pa.array([None, [("_untyped", "infinity")]], kind)})
    assert mismatch(noted, found, skipped=["pg_untyped"], untyped="pg_untyped") == ""


def test_arrays_of_more_dimensions() -> None:
    """They stay texts."""
    assert list_elements("{{1,2},{3,4}}") is None and list_elements("[0:1]={5,6}") is None
    assert sent_value("[0:1]={5,6}", pa.list_(pa.float64())) == "[0:1]={5,6}"
