"""Changes in Arrow: random histories of a table, replayed as a whole and batch by batch."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from pgoutput_construct.spark._log_view.change_columns import (
    CHANGED,
    COMPONENT,
    EPOCH,
    SHAPE,
    SIDE,
    STORED,
    TURN,
    changes_schema,
)
from pgoutput_construct.spark._state.intervals import OPEN
from pgoutput_construct.spark._state.replay_tasks import replay_in_parts
from pgoutput_construct.spark._state.row_replay import Replay
from tests.spark.histories import COLUMNS, KEYS, LONG, History, batch_of, held, histories

pytestmark = pytest.mark.slow


def _table(rows: list[dict[str, Any]], turn: int) -> pa.Table:
    work = [(name, pa.int32()) for name in (TURN, SIDE, SHAPE)]
    schema = pa.schema([*changes_schema(COLUMNS), *work])
    return pa.Table.from_pylist([{**row, TURN: turn, SIDE: 0, SHAPE: 0} for row in rows], schema)


def _rows(replayed: Any) -> list[dict[str, Any]]:
    found = replayed.rows(replayed.open, COLUMNS.names)
    places = {name: replayed.change_column(name, replayed.open) for name in ("_commit_lsn", "_seq")}
    rows: list[dict[str, Any]] = pa.table({**found, **places}).to_pylist()
    return rows


def _said(rows: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    return held({**row, **dict(row["_untyped"] or ())} for row in rows)


@pytest.mark.parametrize("full", [False, True])
def test_any_batches_give_the_same_state(full: bool) -> None:
    """Open intervals are the rows of the table, and rows before for the next batch; what is missing is found."""
    replay = Replay(tuple(COLUMNS.names), None if full else KEYS, LONG)

    @settings(max_examples=10)
    @given(histories(full))
    def run(found: list[History]) -> None:
        rows: list[dict[str, Any]] = []
        for number in range(3):
            before = [{**row, "_op": "insert", "_unchanged": []} for row in rows]
            replayed = replay.run(pa.concat_tables([_table(before, STORED), _table(batch_of(found, number), CHANGED)]))
            rows = _rows(replayed)
            assert _said(rows) == held(row for each in found for row in each.then[number])
            assert not any(row["_unchanged"] for row in rows)
            assert len(replayed.missing) == sum(
                ([0, *each.cuts])[number] <= index < each.cuts[number] for each in found for index in each.vanished
            )
        whole = replay.run(_table([row for each in found for row in each.changes], CHANGED))
        assert _said(_rows(whole)) == _said(rows)

    run()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("most", [0, 100])
def test_components_in_parts(full: bool, most: int) -> None:
    """Rows come as soon as their component is there; a long one is replayed in pieces, with what is open carried on."""
    replay = Replay(tuple(COLUMNS.names), None if full else KEYS, LONG, truncates=((3, 1), (5, 0)))

    def each(part: pa.Table, is_end: bool) -> tuple[pa.Table, pa.Table, Any]:
        done = replay.run(part, is_end)
        chosen = np.flatnonzero(done.events.comes & ((done.intervals.ended != OPEN) | is_end))
        names = ("_commit_lsn", "_seq")
        found = done.rows(chosen, COLUMNS.names) | {name: done.change_column(name, chosen) for name in names}
        ends = done.ends("_op", chosen, pa.array(["truncate"] * 2))
        return pa.table({**found, "ended": ends}), part.slice(0, 0) if is_end else done.carried(), done.open

    @settings(max_examples=2)
    @given(histories(full))
    def run(found: list[History]) -> None:
        rows = [(each.number // 20, row) for each in found for row in each.changes]
        rows.sort(key=lambda pair: (pair[0], pair[1]["_commit_lsn"], pair[1]["_seq"]))
        numbers = pa.array([number for number, _ in rows], pa.int64())
        whole = _table([row for _, row in rows], CHANGED).append_column(COMPONENT, numbers)
        whole = whole.append_column(EPOCH, pa.nulls(len(rows), pa.int64()))
        expected = each(whole, True)[0].to_pylist()
        parts = replay_in_parts(whole.to_batches(max_chunksize=40), each, replay.equal, most)
        assert sorted(map(repr, (row for part in parts for row in part.to_pylist()))) == sorted(map(repr, expected))

    run()


@pytest.mark.parametrize("shapes", [1, 2])
@pytest.mark.parametrize("emptied", [False, True])
def test_equal_rows_in_parts(shapes: int, emptied: bool) -> None:
    """Of equal rows that stay few are held, however many there are; those go that came first, in the order of all."""
    columns, most, sent = pa.schema([("a", pa.int32()), ("b", pa.int32())]), 50, (12000, 700, 300, 1700)
    replay = Replay(("a", "b"), None, (), (frozenset("ab"), frozenset("a"))[:shapes], ((1, 12200),) * emptied)
    names, held = ("_commit_lsn", "_seq"), list[int]()

    def each(part: pa.Table, is_end: bool) -> tuple[pa.Table, pa.Table, Any]:
        held.append(len(part))
        done = replay.run(part, is_end)
        chosen = np.flatnonzero(done.events.comes & ((done.intervals.ended != OPEN) | is_end))
        found = done.rows(chosen, ("a", "b")) | {name: done.change_column(name, chosen) for name in names}
        ends = {name: done.ends(name, chosen, pa.array([-1])) for name in names}
        rows = pa.table({**found, **{f"ended{name}": values for name, values in ends.items()}})
        return rows, part.slice(0, 0) if is_end else done.carried(), done.open

    ops = [op for op, count in zip(("insert", "delete", "insert", "delete"), sent, strict=True) for _ in range(count)]
    rows: list[dict[str, Any]] = [
        {"a": number % 3, "b": None, "_op": op, "_unchanged": [], "_commit_lsn": 1, "_seq": number, TURN: CHANGED}
        | {SIDE: 0, SHAPE: number % 7 % shapes, COMPONENT: 1}
        for number, op in enumerate([*ops, *(["insert", "insert", "delete"] * 1500)])
    ]
    work = [(TURN, pa.int32()), (SIDE, pa.int32()), (SHAPE, pa.int32()), (COMPONENT, pa.int64()), (EPOCH, pa.int64())]
    given = changes_schema(columns).remove(changes_schema(columns).get_field_index("_before"))
    whole = pa.Table.from_pylist(rows, pa.schema([*given, *work]))
    whole = whole if emptied else whole.drop_columns([EPOCH])
    expected = each(whole, True)[0].to_pylist()
    held.clear()
    parts = replay_in_parts(whole.to_batches(max_chunksize=40), each, replay.equal, most)
    assert sorted(map(repr, (row for part in parts for row in part.to_pylist()))) == sorted(map(repr, expected))
    assert max(held) < 5000
