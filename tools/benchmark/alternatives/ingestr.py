"""ingestr's ``postgres+cdc``, which merges into a table of DuckDB: it refuses Parquet and Iceberg for this source."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from tools.benchmark.alternatives.change_source import PUBLICATION, TABLE, ChangeSource
from tools.benchmark.alternatives.pipeline import MeasuredPipeline, PipelineResult
from tools.benchmark.alternatives.process_usage import ProcessUsage, measure_program
from tools.benchmark.alternatives.table_rows import typed_rows
from tools.cache import FOLDER
from tools.environments import INGESTR, make_environment, python_with

__all__ = ["IngestrRun"]

_DRIVER: Final = "@duckdb/node-bindings@1.5.6-r.1"
"""DuckDB's library out of the registry of npm: ingestr itself would fetch it from elsewhere."""
_DRIVERS: Final = FOLDER / "duckdb-driver"
_SLOT: Final = "alternatives_ingestr"
_KEPT: Final = f"{_SLOT}_kept"
_TARGET: Final = f"lake.{TABLE}"
_CHILD: Final = Path(__file__).with_name("table_child.py")


class IngestrRun(MeasuredPipeline):
    """A run that catches up with the slot and ends."""

    name = "ingestr"
    title = "ingestr 1.1: the table in DuckDB, deleted rows marked"

    def __init__(self) -> None:
        self._file = Path()

    @property
    def _begun(self) -> Path:
        """The tables before the first change. All runs write one file: a copy elsewhere is refused."""
        return self._file.with_suffix(".begun")

    def prepare(self) -> str:
        """Make its environment, and fetch the driver that it writes with."""
        try:
            make_environment(INGESTR)
        except SystemExit as error:
            return str(error)
        return _prepare_driver()

    def begin(self, source: ChangeSource, folder: Path) -> None:
        """Let it copy the empty table, and create its slot: it follows only what it has copied itself."""
        super().begin(source, folder)
        self._file = folder / "tables.duckdb"
        self._ingest(source, folder)
        source.copy_slot(_SLOT, _KEPT)
        source.drop_slot(_SLOT)
        self._file.rename(self._begun)

    def run(self, source: ChangeSource, folder: Path) -> ProcessUsage:
        """Continue from what it had before."""
        shutil.copy2(self._begun, self._file)
        with source.slot(_SLOT, _KEPT):
            usage = self._ingest(source, folder)
        self._file.rename(folder / self._file.name)
        return usage

    def result(self, folder: Path) -> PipelineResult:
        """Read the rows that are not marked as deleted."""
        file = folder / "rows.parquet"
        command = (python_with(INGESTR), _CHILD, "duckdb", folder / self._file.name, _TARGET, file)
        subprocess.run(list(map(str, command)), check=True, cwd=folder)
        return PipelineResult(None, typed_rows(pq.read_table(file)))

    def _ingest(self, source: ChangeSource, folder: Path) -> ProcessUsage:
        server = source.dsn.replace("postgresql://", "postgres+cdc://")
        options = {
            "--source-uri": f"{server}?sslmode=disable&publication={PUBLICATION}&slot={_SLOT}",
            "--source-table": f"public.{TABLE}",
            "--dest-uri": f"duckdb:///{self._file}",
            "--dest-table": _TARGET,
            "--progress": "log",
        }
        program = python_with(INGESTR).with_name("ingestr")
        arguments = [word for option in options.items() for word in option]
        environment = {"ADBC_DRIVER_PATH": str(_DRIVERS), "INGESTR_DISABLE_TELEMETRY": "true"}
        return measure_program([program, "ingest", *arguments, "--yes"], folder, environment)


def _prepare_driver() -> str:
    """Fetch DuckDB's library, and write the manifest by which ADBC finds it."""
    manifest = _DRIVERS / "duckdb.toml"
    if manifest.exists():
        return ""
    npm = shutil.which("npm")
    if npm is None:
        return "no npm on the PATH: DuckDB's library, which it writes with, comes from there"
    _DRIVERS.mkdir(parents=True, exist_ok=True)
    quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")
    command = [npm, "install", "--prefix", str(_DRIVERS), *quiet, _DRIVER]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [file for name in ("so", "dylib") for file in _DRIVERS.rglob(f"libduckdb.{name}")]
    if done.returncode or not found:
        return f"DuckDB's library could not be fetched from npm: {done.stderr.strip()[-600:]}"
    lines = (
        "manifest_version = 1",
        "[Driver]",
        'entrypoint = "duckdb_adbc_init"',
        f'shared = "{found[0]}"',
    )
    manifest.write_text(os.linesep.join(lines), "utf-8")
    return ""
