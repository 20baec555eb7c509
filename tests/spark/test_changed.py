"""Changes in Arrow: random histories of a table, replayed as a whole and batch by batch."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from pgoutput_construct.spark.change_frames import CHANGED, COMPONENT, EPOCH, SHAPE, SIDE, STORED, TURN, changes_schema
from pgoutput_construct.spark.changed import Replay
from pgoutput_construct.spark.intervals import OPEN
from pgoutput_construct.spark.partitions import in_parts
from tests.spark.histories import COLUMNS, KEYS, LONG, History, batch_of, held, histories


def _table(rows: list[dict[str, Any]], turn: int) -> pa.Table:
    work = [(name, pa.int32()) for name in (TURN, SIDE, SHAPE)]
    schema = pa.schema([*changes_schema(COLUMNS), *work])
    return pa.Table.from_pylist([{**row, TURN: turn, SIDE: 0, SHAPE: 0} for row in rows], schema)


def _rows(replayed: Any) -> list[dict[str, Any]]:
    found = replayed.rows(replayed.open, COLUMNS.names)
    places = {name: replayed.taken(name, replayed.open) for name in ("_commit_lsn", "_seq")}
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


def test_net_changes() -> None:
    """Applied to the rows before, they give the rows after; what found no row but an assumed one is counted."""
    replay = Replay(tuple(COLUMNS.names), KEYS, LONG)

    @settings(max_examples=20)
    @given(histories(False, batches=2))
    def run(found: list[History]) -> None:
        before = {_key(row): row for each in found for row in each.then[0]}
        net = replay.net(_table(batch_of(found, 1), CHANGED)).to_pylist()
        after, lacking = dict(before), set()
        for row in sorted(net, key=lambda row: row["_is"]):
            texts = dict(row["_untyped"] or ())
            values = {name: texts.get(name, row[name]) for name in COLUMNS.names}
            after.pop(_key(values), None)
            if row["_is"]:
                was = {name: texts.get(f"_before.{name}", row["_before"][name]) for name in KEYS}
                assert not row["_lost"]
                after[_key(values)] = values | {name: before[_key(was)][name] for name in row["_open"]}
            if row["_missing"] > (_key(values) in before):
                lacking.add((row["h"], _key(values)))
        assert held(after.values()) == held(row for each in found for row in each.then[1])
        assert {number for number, _ in lacking} == {each.number for each in found if _has_vanished(each)}

    run()


def _has_vanished(history: History) -> bool:
    return any(history.cuts[0] <= index < history.cuts[1] for index in history.vanished)


def _key(row: dict[str, Any]) -> str:
    return repr([row[name] for name in KEYS])


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("most", [0, 100])
def test_components_in_parts(full: bool, most: int) -> None:
    """Rows come as soon as their component is there; a long one is replayed in pieces, with what is open carried on."""
    replay = Replay(tuple(COLUMNS.names), None if full else KEYS, LONG, truncates=((3, 1), (5, 0)))

    def each(part: pa.Table, is_end: bool) -> tuple[pa.Table, pa.Table]:
        done = replay.run(part, is_end)
        chosen = np.flatnonzero(done.events.comes & ((done.intervals.ended != OPEN) | is_end))
        names = ("_commit_lsn", "_seq")
        found = done.rows(chosen, COLUMNS.names) | {name: done.taken(name, chosen) for name in names}
        ends = done.ends("_op", chosen, pa.array(["truncate"] * 2))
        return pa.table({**found, "ended": ends}), part.slice(0, 0) if is_end else done.carried()

    @settings(max_examples=2)
    @given(histories(full))
    def run(found: list[History]) -> None:
        rows = [(each.number // 20, row) for each in found for row in each.changes]
        rows.sort(key=lambda pair: (pair[0], pair[1]["_commit_lsn"], pair[1]["_seq"]))
        numbers = pa.array([number for number, _ in rows], pa.int64())
        whole = _table([row for _, row in rows], CHANGED).append_column(COMPONENT, numbers)
        whole = whole.append_column(EPOCH, pa.nulls(len(rows), pa.int64()))
        expected = each(whole, True)[0].to_pylist()
        parts = in_parts(whole.to_batches(max_chunksize=40), each, most)
        assert sorted(map(repr, (row for part in parts for row in part.to_pylist()))) == sorted(map(repr, expected))

    run()
