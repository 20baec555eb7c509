"""The short form of ``python -m tools.faults histories``: a small history whose tables come out as they are."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct import lake
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tools.faults.generated_histories import History, Step, generated

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.long
def test_a_small_history(server18: EmbeddedServer, spark: Any, tmp_path: Path) -> None:
    """Some tables are written, altered, and moved; noted, replicated in two batches and at once."""
    from tools.faults.history_runs import Settings, perform

    history = generated("fixed 18 3", 18, 2, only=["short", "odd names"], notes=2, batches=1)
    outcome = perform(history, server18, spark, tmp_path, Settings(states=1))
    assert outcome.differences == []
    assert outcome.tables >= 2 and outcome.comparisons >= 8 and outcome.executed > 10 * outcome.refused


@pytest.mark.long
def test_a_small_history_with_kills(server18: EmbeddedServer, spark: Any, tmp_path: Path) -> None:
    """Tables have columns with our names, batches are small, and captures and replications are killed on the way."""
    from tools.faults.history_runs import Settings, perform

    drawn = generated("fixed 18 55", 18, 3, only=["short", "collisions"], notes=2, batches=1)
    history = replace(drawn, replication={"metadata_prefix": "pg_", "batch_transactions": 5})
    assert any("_seq int" in statement for step in history.steps for statement in step.statements)
    outcome = perform(history, server18, spark, tmp_path, Settings(states=1, kills=1))
    assert {each.stage for each in outcome.differences} <= {"net changes"} and outcome.failures == []
    assert outcome.kills >= 1 and outcome.tables >= 2 and outcome.comparisons >= 8


def test_any_name_draws_a_history() -> None:
    """Each has at least the requested number of tables, whatever is dropped."""
    for number in range(100):
        history = generated(f"503 18 {number}", 18, 25, notes=50, batches=1)
        assert sum(step.feature == "note" for step in history.steps) == 50


@pytest.mark.long
def test_a_difference_is_found(server18: EmbeddedServer, spark: Any, tmp_path: Path) -> None:
    """Rows of a file that somebody has changed are not those of the server; a statement that fails ends its step."""
    from tools.faults import history_runs

    steps = (
        Step(
            "created", ("CREATE TABLE t0 (id int PRIMARY KEY, v timestamptz)", "INSERT INTO t0 VALUES (1, 'now')"), "t0"
        ),
        Step("refused", ("BEGIN", "INSERT INTO t0 VALUES (2)", "INSERT INTO t0 VALUES (1)", "COMMIT"), "t0"),
        Step("replicate"),
        Step("dml", ("INSERT INTO t0 VALUES (3, 'infinity')",), "t0"),
    )
    history = History("tampered", 18, "FOR ALL TABLES", steps, {})
    read = lake.read

    def tampered(*arguments: Any, **options: Any) -> Any:
        return read(*arguments, **options).slice(1)

    settings = history_runs.Settings(with_history=False, states=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lake, "read", tampered)
        outcome = history_runs.perform(history, server18, spark, tmp_path, settings)
    found = {(each.stage, each.table, each.text.split(":")[0]) for each in outcome.failures}
    assert found == {(stage, "public.t0", "1 rows missing") for stage in ("state", "state at once")}
    assert (outcome.refused, outcome.executed, outcome.rows) == (1, 5, 2)
