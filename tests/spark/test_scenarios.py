"""Scenarios through a log into Spark: the state of a table is the rows that are meant."""

import os
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from pgoutput_construct.spark import open_log, qualified_name
from pgoutput_construct.testing.scenario_tables import Row, ScenarioTable
from pgoutput_construct.testing.scenarios import Scenario
from tests.publisher.batches import Batch
from tests.publisher.facts import facts_of
from tests.publisher.reading import LAYOUT, payloads_of
from tests.spark.logs import log_options, write_log

pytestmark = pytest.mark.spark

COUNT: Final = int(os.environ.get("PGOUTPUT_SCENARIO_TABLES", "2"))
"""Tables whose state is computed, which takes a second or more each; ``tools/soak`` asks for more."""


def test_states_are_as_they_are_meant(spark: Any, tmp_path: Path) -> None:
    """Of the tables with the most kinds of changes."""
    batch = Batch.invent(20 + 2 * COUNT)
    options = log_options(**LAYOUT, two_phase=True)
    payloads = payloads_of(message for _, message in batch.sent)
    write_log(tmp_path, payloads, options, rows=500, facts=facts_of(batch.scenarios))
    opened = open_log(spark, tmp_path)
    for scenario, table in _busiest(batch):
        state = opened.state(qualified_name(table.fake.namespace, table.name)).drop("_untyped")
        found, meant = state.toArrow().select(list(table.fake.columns)).to_pylist(), scenario.rows[table.name]
        assert _in_order(found) == _in_order(meant), f"{table.in_sql} behind {scenario.sent}: {batch}"


def _busiest(batch: Batch) -> Iterator[tuple[Scenario, ScenarioTable]]:
    """Yield tables that have rows and were changed in many ways, of each kind of identity as many.

    The state of a table whose columns have other types is incomplete until it is copied again.
    """
    every = [(scenario, table) for scenario in batch.scenarios for table in scenario.tables]
    by_kind: dict[Any, list[tuple[Scenario, ScenarioTable]]] = {}
    for scenario, table in sorted(every, key=lambda each: _business(*each), reverse=True):
        if scenario.rows[table.name] and "convert a column" not in _alterations(scenario, table):
            by_kind.setdefault((table.fake.replica_identity, bool(table.primary_key)), []).append((scenario, table))
    in_turn = (each for each in chain.from_iterable(zip_longest(*by_kind.values())) if each is not None)
    yield from islice(in_turn, COUNT)


def _business(scenario: Scenario, table: ScenarioTable) -> int:
    """Return how many kinds of messages and alterations a table has, those of streams told apart."""
    ways: set[Any] = _alterations(scenario, table)
    for _, message in scenario.sent:
        about = getattr(message, "relation_oids", None) or (getattr(message, "relation_oid", None),)
        if table.fake.oid in about:
            ways.add((type(message), getattr(message, "xid", None) is None, getattr(message, "old_kind", "")))
    return len(ways)


def _alterations(scenario: Scenario, table: ScenarioTable) -> set[str]:
    return {alteration.way for _, alteration in scenario.alterations if alteration.table.oid == table.oid}


def _in_order(rows: list[Row]) -> list[Row]:
    """Return rows as Spark has them: NULLs are left out, a column that came last may be in no Relation."""
    texts = (Decimal, UUID)
    known = [{name: value for name, value in sorted(row.items()) if value is not None} for row in rows]
    shown = [{name: str(v) if isinstance(v, texts) else v for name, v in row.items()} for row in known]
    return sorted(shown, key=repr)
