"""``pgoutput replicate``: arguments are checked before Spark starts."""

import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.cli._options import TABLE_FORMATS
from pgoutput_construct.cli.commands.replicate_command import _conclusion, _Report, replicate_command
from pgoutput_construct.lake._notes import Progress, Warehouse
from pgoutput_construct.spark._replicate import ReplicateOptions, Retention
from pgoutput_construct.spark._replicate.table_batches import Batch
from pgoutput_construct.spark.formats import FORMATS
from tests.cli.conftest import Run


@pytest.mark.slow
def test_refusals(run: Run, change_log: Path, tmp_path: Path) -> None:
    """Neither once nor continuous, no log, a table that it lacks, a warehouse of another format: one line each."""
    warehouse = tmp_path / "wh"
    given = ("--into", "parquet", "--warehouse", warehouse)
    result = run("replicate", change_log, *given)
    assert result.exit_code == 2 and "give --once or --continuous" in result.output
    result = run("replicate", tmp_path / "none", *given, "--once")
    assert result.exit_code == 1 and "no change log here" in result.output
    result = run("replicate", change_log, *given, "--continuous", "--table", "public.x")
    assert result.exit_code == 1 and "the log has no table public.x: it has " in result.output
    Warehouse(warehouse).write_progress(Progress("delta"))
    result = run("replicate", change_log, *given, "--once")
    assert result.exit_code == 1 and "the tables there are delta, not parquet" in result.output
    assert result.output.count("\n") == 1
    result = run("replicate", change_log, "--into", "delta", "--warehouse", warehouse, "--once", "--resync", "public.x")
    assert result.exit_code == 1 and "the log has no table public.x" in result.output
    result = run("replicate", change_log, *given[:2], "--warehouse", tmp_path / "x", "--once", "--metadata-prefix", "-")
    assert result.exit_code == 1 and "invalid column prefix '-'" in result.output
    result = run(
        "replicate", change_log, "--into", "delta", "--warehouse", warehouse, "--once", "--metadata-prefix", "pg_"
    )
    assert result.exit_code == 1 and "added columns is '_', not 'pg_': omit --metadata-prefix" in result.output


def test_a_table_error_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """When it comes into trouble, when the reason is another one, and when it is in none any more."""
    report = _Report()
    for troubled in ({"public.t": "a"}, {"public.t": "a"}, {"public.t": "b"}, {"public.t": "b"}, {}):
        batch = Batch(1, 9, pgo.Lsn(5), None, {}, (), (), (), {}, troubled, 0.1)
        with caplog.at_level(logging.INFO):
            report(batch)
        if troubled:
            assert _conclusion(batch, ()).endswith("0/5, except 1 table (public.t) with errors")
    assert [record.getMessage() for record in caplog.records] == [
        "public.t is left unchanged, and will be retried: a",
        "public.t is left unchanged, and will be retried: b",
        "public.t is up to date again",
    ]


def test_a_batch_without_a_commit(caplog: pytest.LogCaptureFixture) -> None:
    """A log may have copies of tables before its first commit: no LSN is shown, and not None."""
    batch = Batch(1, 9, None, None, {"public.t": "written"}, (), (), (), {}, {}, 0.1)
    with caplog.at_level(logging.INFO):
        _Report()(batch)
    assert caplog.messages == ["batch 1: 1 table (public.t) in 0.1 s, copies, before any commit"]
    assert _conclusion(batch, ()) == "the tables are up to date with the log, which has no commit yet"
    assert _conclusion(None, ["SIGTERM"]).startswith("ended by SIGTERM: the tables are up to date with the log, which")


def test_formats() -> None:
    """The command's choices, which it has without PySpark, are the formats that there are."""
    assert tuple(FORMATS) == TABLE_FORMATS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("into", "options", "function"),
    [
        ("parquet", (), "deferred_session"),
        ("delta", ("--spark", "needed"), "deferred_session"),
        ("delta", ("--spark", "always"), "spark_session"),
        ("iceberg", (), "spark_session"),
    ],
)
def test_when_spark_starts(
    run: Run,
    change_log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    into: str,
    options: tuple[str, ...],
    function: str,
) -> None:
    """When a table of Parquet or Delta Lake needs it, or at once."""

    def called(*_: Any, **__: Any) -> None:
        raise pgo.PgoutputError("called")

    monkeypatch.setattr(f"pgoutput_construct.spark.formats.{function}", called)
    result = run("replicate", change_log, "--into", into, "--warehouse", tmp_path / "wh", "--once", *options)
    assert result.output.endswith("Error: called\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "status", "problem"),
    [
        (("--mask", "SALT"), 2, "it must be TABLE.COLUMN=VALUE"),
        (("--mask", "email=sha256(SALT)"), 2, "a column is named schema.table.column as in SQL"),
        (("--mask", "public.t.a.b.email=sha256(SALT)"), 2, "a column is named schema.table.column as in SQL"),
        (
            ("--mask", "public.x.email=sha265(SALT)"),
            1,
            "the mask of public.x.email: it is no mask: write sha256($NAME)",
        ),
        (("--mask", "public.x.a=SALT"), 1, "the mask of public.x.a: it is no mask"),
        (("--mask", "x.a=sha256(SALT)", "--mask", "public.x.A=null"), 1, "public.x.a: a column has one rule"),
        (("--mask", "x.a=sha256(SALT)", "--exclude-columns", "x.b, x.a"), 1, "public.x.a: a column has one rule"),
        (("--rename-column", "x.a=b", "--mask", "public.x.A=null"), 1, "public.x.a: a column has one rule"),
        (("--rename-column", "x.a="), 1, "x.a: the name of a column is not empty"),
        (("--rename-column", "x.a"), 2, "it must be TABLE.COLUMN=VALUE"),
        (("--exclude-columns", "x.b,,x.a"), 2, "is not a list of names"),
        (("--exclude-columns", "b"), 2, "a column is named schema.table.column"),
    ],
)
def test_rules_of_columns(
    run: Run, change_log: Path, tmp_path: Path, options: tuple[str, ...], status: int, problem: str
) -> None:
    """What is wrong with them is said before Spark starts, without what may be a salt."""
    result = run("replicate", change_log, "--into", "parquet", "--warehouse", tmp_path / "wh", "--once", *options)
    assert result.exit_code == status and problem in result.output.replace("\n", " ")
    assert "SALT" not in result.output.replace("sha256(SALT)", "")


OWN = {"changelog", "mode", "retain", "retain_snapshots", "as_json", "spark", "master", "conf", "metrics"}
"""Parameters of the command that are no arguments of ``replicate``, or not by this name."""
ARRIVING: dict[str, tuple[list[str], Any]] = {
    "into": (["--into", "iceberg"], "iceberg"),
    "warehouse": (["--warehouse", "other"], "other"),
    "as_of": (["--as-of", "0/5"], pgo.Lsn(5)),
    "tables": (["--table", "t", "--table", "s.u"], ("public.t", "s.u")),
    "history": (["--history"], True),
    "keep_dropped": (["--keep-dropped"], True),
    "interval": (["--interval", "2.5"], 2.5),
    "workers": (["--workers", "2"], 2),
    "on_missing": (["--on-missing", "report"], "report"),
    "metadata_prefix": (["--metadata-prefix", "pg_"], "pg_"),
    "resync": (["--resync", "t"], ("public.t",)),
    "grace": (["--grace", "5"], 5.0),
    "write_mode": (["--write-mode", "copy-on-write"], "copy-on-write"),
    "table_properties": (["--table-property", "a=b", "--table-property", "c=d"], {"a": "b", "c": "d"}),
    "catalog": (["--catalog", "shared"], "shared"),
    "namespace": (["--namespace", "lake"], "lake"),
    "table_name": (["--table-name", "{schema}__{table}"], "{schema}__{table}"),
    "schema_column": (["--schema-column", "tenant"], "tenant"),
    "partition_by": (
        ["--partition-by", "t=a,bucket(16, b)", "--partition-by", "t=c"],
        {"public.t": ("a", "bucket(16, b)", "c")},
    ),
    "batch_transactions": (["--batch-transactions", "7"], 7),
    "batch_bytes": (["--batch-bytes", "8"], 8),
    "adopt": (["--adopt"], True),
    "exclude_columns": (["--exclude-columns", "t.a,t.b", "--exclude-columns", "u.c"], ("t.a", "t.b", "u.c")),
    "masks": (["--mask", "t.a=null"], {"t.a": "null"}),
    "rename_columns": (["--rename-column", "t.a=b"], {"t.a": "b"}),
    "soft_delete": (["--soft-delete"], True),
    "metadata_columns": (["--metadata-columns", "all"], "all"),
    "untyped": (["--untyped", "never"], "never"),
    "types": (["--types", "uuid=binary"], "uuid=binary"),
    "maintains": (["--no-maintain"], False),
    "maintain_every": (["--maintain-every", "3"], 3),
}


def _parsed(*arguments: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of the command by name: those of ``replicate``, and its own."""
    given = ["log", "--into", "parquet", "--warehouse", "lake", "--once", *arguments]
    found = replicate_command.make_context("replicate", given).params
    return {name: found[name] for name in found.keys() - OWN}, {name: found[name] for name in OWN}


def test_each_option_has_an_argument() -> None:
    """The command has an option for each field, but for what a terminal cannot give; both have the same defaults."""
    called = {"log", "once", "retention", "on_batch", "on_progress", "on_maintenance", "stop"}
    given, own = _parsed()
    assert {field.name for field in fields(ReplicateOptions)} == given.keys() | called and given.keys() == {*ARRIVING}
    retention = Retention(age=own["retain"], count=own["retain_snapshots"])
    assert ReplicateOptions("log", **given, retention=retention) == ReplicateOptions("log", "lake")


@pytest.mark.parametrize("name", ARRIVING)
def test_each_option_arrives(name: str) -> None:
    """As its argument, and as no other one."""
    arguments, expected = ARRIVING[name]
    before, after = _parsed()[0], _parsed(*arguments)[0]
    assert after[name] == expected != before[name] and after == before | {name: expected}


@pytest.mark.parametrize("option", ["--mask", "--rename-column", "--table-property"])
def test_one_name_twice(run: Run, option: str) -> None:
    """The first value would be lost."""
    result = run("replicate", "log", "--into", "delta", "--warehouse", "w", option, "t.a=null", option, "t.a=plain")
    assert result.exit_code == 2 and "t.a is given twice" in result.output
