"""``pgoutput replicate``: what is wrong is said before Spark starts."""

from pathlib import Path

from pgoutput_construct.spark.warehouse.notes import Progress, Warehouse
from tests.cli.conftest import Run


def test_refusals(run: Run, change_log: Path, tmp_path: Path) -> None:
    """Neither once nor continuous, no log, a table that it lacks, a warehouse of another format: one line each."""
    warehouse = tmp_path / "wh"
    given = ("--into", "parquet", "--warehouse", warehouse)
    result = run("replicate", change_log, *given)
    assert result.exit_code == 2 and "say --once or --continuous" in result.output
    result = run("replicate", tmp_path / "none", *given, "--once")
    assert result.exit_code == 1 and "no change log here" in result.output
    result = run("replicate", change_log, *given, "--continuous", "--table", "public.x")
    assert result.exit_code == 1 and "the log has no table public.x: it has " in result.output
    Warehouse(warehouse).begin(Progress("delta"))
    result = run("replicate", change_log, *given, "--once")
    assert result.exit_code == 1 and "the tables there are delta, not parquet" in result.output
    assert result.output.count("\n") == 1
