"""States that go on from saved ones, and what a batch of changes comes to."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from pgoutput_construct.spark import advance, current_state, missing_rows, net_changes
from pgoutput_construct.spark._log_view.change_columns import changes_schema
from pgoutput_construct.spark._replicate.small_tables import SmallTableRule, advanced_rows, rows_schema
from pgoutput_construct.spark._replicate.table_history import history
from pgoutput_construct.spark._replicate.write_ways import SparkNeededError
from pgoutput_construct.spark._state.change_survey import summarize
from tests.spark.histories import (
    COLUMNS,
    KEYS,
    History,
    batch_of,
    change_frame,
    contents,
    held,
    histories,
    table_of,
    vanished_of,
)

pytestmark = pytest.mark.spark

# Each example is dozens of histories in a few jobs; to shrink one would take many more.
FEW = settings(
    max_examples=2,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.long
def test_any_batches_give_the_same_state(spark: Any, full: bool) -> None:
    """Histories of a few rows each: all at once, and batch by batch, with keys that change and values left out.

    What is in a batch is told or found out; the rows before take the way of the changes, or stay where they are.
    """

    @FEW
    @given(histories(full))
    def run(found: list[History]) -> None:
        table, state = table_of(full), None
        for number in range(3):
            batch = batch_of(found, number)
            changes, seen = (
                change_frame(spark, batch),
                summarize(pa.RecordBatch.from_pylist(batch, changes_schema(COLUMNS))),
            )
            lacking = missing_rows(state, changes, table).select("_row.h", "_commit_lsn", "_seq").collect()
            assert sorted((int(h), lsn, seq) for h, lsn, seq in lacking) == vanished_of(found, number)
            known = seen if number != 1 else None
            before = None if state is None else state.toArrow()
            state = advance(state, changes, table, summary=known, is_small=number == 2).localCheckpoint()
            _check_small(found, number, before, state.toArrow(), None if full else KEYS)
            assert contents(state) == held(row for each in found for row in each.then[number])
        whole = change_frame(spark, (row for each in found for row in each.changes))
        assert contents(current_state(whole, table.key_columns, table.replica_identity)) == contents(state)

    run()


def _check_small(
    found: list[History], number: int, before: pa.Table | None, after: pa.Table, keys: tuple[str, ...] | None
) -> None:
    """Each history is a table by itself, small enough for Arrow: it gives the rows that Spark has of it.

    With a key, Spark's own aggregation made these. It refuses what lacks a row.
    """
    schema = rows_schema(COLUMNS)
    for each in found:
        batch = batch_of([each], number)
        changes = pa.Table.from_pylist(batch, changes_schema(COLUMNS))
        unsent = tuple({name for row in batch for name in row["_unchanged"]})
        rule = SmallTableRule(COLUMNS, keys, unsent, None, lacks_rows=False)
        mine = pc.field("h") == each.number
        there = None if before is None else before.cast(schema).filter(mine)
        if vanished_of([each], number):
            with pytest.raises(SparkNeededError):
                advanced_rows(there, changes, rule)
        else:
            assert _said(advanced_rows(there, changes, rule)) == _said(after.cast(schema).filter(mine))


def _said(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def test_net_changes(spark: Any) -> None:
    """Applied to the rows before, as MERGE does it, they give the rows after."""

    @FEW
    @given(histories(False, batches=2))
    def run(found: list[History]) -> None:
        before = {_key(row): row for each in found for row in each.then[0]}
        net = net_changes(change_frame(spark, batch_of(found, 1)), KEYS, COLUMNS.names).collect()
        after = dict(before)
        for row in sorted((row.asDict(recursive=True) for row in net), key=lambda row: row["_op"]):
            values = {**{name: row[name] for name in COLUMNS.names}, **(row["_untyped"] or {})}
            after.pop(_key(values), None)
            if row["_op"] == "upsert":
                texts = dict(zip(KEYS, (row["_key"] or {}).get("_texts") or [], strict=False))
                old = before[_key({**row["_key"], **{k: v for k, v in texts.items() if v}})] if row["_key"] else {}
                assert set(row["_unchanged"]) <= set(old)
                after[_key(values)] = values | {name: old[name] for name in row["_unchanged"]}
        assert held(after.values()) == held(row for each in found for row in each.then[1])
        missing = {_key(_named(row)) for row in net if row["_missing"] > (_key(_named(row)) in before)}
        assert missing == {_key(_named(each.changes[index], "_before.")) for each, index in _vanished(found)}

    run()


@pytest.mark.parametrize("full", [pytest.param(False, marks=pytest.mark.long), True])
def test_rows_that_have_not_ended(spark: Any, full: bool) -> None:
    """Those of a history are the state, with values that were sent to rows under other keys, also in a batch before."""

    @FEW
    @given(histories(full, batches=2))
    def run(found: list[History]) -> None:
        table, known, rows = table_of(full), None, dict[Any, Any]()
        for number in range(2):
            changes = change_frame(spark, batch_of(found, number)).drop("_relation_oid")
            new = history(known, changes, table, begins=False).localCheckpoint()
            rows |= {(row.h, row._commit_lsn, row._seq): row.asDict() for row in new.collect()}
            there = [{**row, **(row["_untyped"] or {})} for row in rows.values() if row["_ended_by"] is None]
            assert held(there) == held(row for each in found for row in each.then[number])
            assert not any(row["_unchanged"] for row in there)
            known = new

    run()


def _vanished(found: list[History]) -> Iterator[tuple[History, int]]:
    """Yield the changes of the second batch that delete rows that are not there."""
    return ((each, index) for each in found for index in each.vanished if each.cuts[0] <= index < each.cuts[1])


def _named(row: Any, prefix: str = "") -> dict[str, Any]:
    """Return the key of a change, with what its types do not hold."""
    values = row["_before"] if prefix else row
    texts = row["_untyped"] or {}
    return {name: texts.get(prefix + name, values[name]) for name in KEYS}


def _key(row: dict[str, Any]) -> str:
    return repr([row[name] for name in KEYS])
