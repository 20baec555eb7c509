"""Changes in Arrow: random histories of a table, replayed as a whole and batch by batch."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from pgoutput_construct.spark.changed import Replay
from pgoutput_construct.spark.codes import codes_of
from pgoutput_construct.spark.schemas import SHAPE, SIDE, TURN, changes_schema
from tests.spark.histories import COLUMNS, KEYS, LONG, History, batch_of, held, histories

ZEROS = [0.0, -0.0, None, float("nan"), float("nan"), 0.0]
MOMENT = datetime(2024, 5, 1, 12)
VALUES = [
    (pa.array(ZEROS, pa.float32()), [0, 1, 2, 3, 3, 0]),
    (pa.array(ZEROS, pa.float64()), [0, 1, 2, 3, 3, 0]),
    (pa.array([[0.0], [-0.0], None, [], [0.0, None], [0.0]], pa.list_(pa.float64())), [0, 1, 2, 3, 4, 0]),
    (pa.array([["a", "b"], ["ab"], None, ["a", "b"]], pa.list_(pa.string())), [0, 1, 2, 0]),
    (pa.array([b"\x00", b"\x01", b"", None, b"\x00"], pa.binary()), [0, 1, 2, 3, 0]),
    (pa.array([MOMENT, MOMENT + timedelta(microseconds=1), None, MOMENT], pa.timestamp("us", "UTC")), [0, 1, 2, 0]),
    (pa.array(["1.0", "1.00", "", None], pa.string()), [0, 1, 2, 3]),
]


@pytest.mark.parametrize(("values", "expected"), VALUES, ids=lambda each: str(getattr(each, "type", "")))
def test_values_are_told_apart(values: pa.Array, expected: list[int]) -> None:
    """As PostgreSQL's messages tell them apart; a slice of values has codes of its own."""
    assert codes_of(values).tolist() == expected
    more = pa.concat_arrays([values, values])
    assert codes_of(more.slice(len(values))).tolist() == expected


def test_other_bits_of_nan() -> None:
    """They are one value."""
    other = np.array([2**63 - 1], "u8").view("f8")
    assert codes_of(pa.concat_arrays([pa.array([float("nan")]), pa.array(other)])).tolist() == [0, 0]


def _table(rows: list[dict[str, Any]], turn: int) -> pa.Table:
    work = [(name, pa.int32()) for name in (TURN, SIDE, SHAPE)]
    schema = pa.schema([*changes_schema(COLUMNS), *work])
    return pa.Table.from_pylist([{**row, TURN: turn, SIDE: 0, SHAPE: 0} for row in rows], schema)


def _rows(replayed: Any) -> list[dict[str, Any]]:
    found = replayed.rows(replayed.open, COLUMNS.names)
    places = {name: replayed.taken(name, replayed.open) for name in ("_commit_lsn", "_seq")}
    return pa.table({**found, **places}).to_pylist()


def _said(rows: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    return held({**row, **dict(row["_untyped"] or ())} for row in rows)


@pytest.mark.parametrize("full", [False, True])
def test_any_batches_give_the_same_state(full: bool) -> None:
    """Open intervals are the rows of the table; with them as rows before, a replay goes on; what is missing is found."""
    replay = Replay(tuple(COLUMNS.names), None if full else KEYS, LONG)

    @given(histories(full))
    def run(found: list[History]) -> None:
        rows: list[dict[str, Any]] = []
        for number in range(3):
            before = [{**row, "_op": "insert", "_unchanged": []} for row in rows]
            replayed = replay.run(pa.concat_tables([_table(before, 0), _table(batch_of(found, number), 1)]))
            rows = _rows(replayed)
            assert _said(rows) == held(row for each in found for row in each.then[number])
            assert not any(row["_unchanged"] for row in rows)
            assert len(replayed.missing) == sum(
                ([0, *each.cuts])[number] <= index < each.cuts[number] for each in found for index in each.vanished
            )
        whole = replay.run(_table([row for each in found for row in each.changes], 1))
        assert _said(_rows(whole)) == _said(rows)

    run()
