"""python -m tools.benchmark alternatives: this project, Debezium, ingestr and dlt on the contents of one slot.

Each pipeline reads a copy of the slot, in turns: what else the machine does affects all alike. First each reads one
transaction, which shows what it needs to start. What it has written is compared with the server. What a pipeline needs
is fetched if necessary, into environments of its own; what cannot be had is reported and left out.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pgoutput_construct.errors import PgoutputError
from tools.benchmark.alternatives.change_source import ChangeSource, listening_server
from tools.benchmark.alternatives.debezium import DebeziumEngine
from tools.benchmark.alternatives.ingestr import IngestrRun
from tools.benchmark.alternatives.own import OwnCapture, OwnTables
from tools.benchmark.alternatives.pipeline import MeasuredPipeline, PipelineResult
from tools.benchmark.alternatives.process_usage import ProcessUsage
from tools.benchmark.alternatives.table_rows import difference
from tools.benchmark.alternatives.verified_source import DltRun
from tools.benchmark.errors import BenchmarkError
from tools.benchmark.progress import Progress
from tools.benchmark.report import machine, machine_text, table_text

__all__ = ["NAMES", "PipelineRun", "PipelineRuns", "main", "measured_run"]

NAMES: Final = ("capture", "parquet", "iceberg", "debezium", "ingestr", "dlt")
"""The pipelines: the first three are this project's."""
_LIBRARIES: Final = ("pyspark", "pyarrow", "psycopg")
_FIRST: Final = 100
"""Changes of the first transaction, which shows what a pipeline needs to start."""
_STARTS: Final = 2
"""Runs of it, of which the better counts: the first one finds nothing in the system's caches."""
_HEAD: Final = (
    "pipeline",
    "changes/s",
    "start s",
    "after it/s",
    "CPU s/million",
    "start CPU s",
    "peak MB",
    "MB written",
    "equal",
    "what it is",
)


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """One run of a pipeline."""

    changes: int
    """The number of changes that it read."""
    usage: ProcessUsage
    written: int
    """Bytes of its files at the end."""
    compared: str
    """What was equal to that of the server: changes, rows or both; empty if nothing could be compared."""
    differs: str
    """What was not; empty if nothing."""


@dataclass(frozen=True, slots=True)
class PipelineRuns:
    """All runs of a pipeline."""

    name: str
    title: str
    start: PipelineRun
    """That of the first transaction."""
    rounds: list[PipelineRun]

    @property
    def differs(self) -> str:
        """What was not equal to the server in one of them; empty if nothing."""
        return next((run.differs for run in (self.start, *self.rounds) if run.differs), "")

    def cells(self) -> Sequence[str]:
        """Return the cells of the report: the best of the rounds; of the peaks, the largest."""
        changes, first = self.rounds[0].changes, self.start.usage
        seconds = min(run.usage.seconds for run in self.rounds)
        cpu = min(run.usage.cpu for run in self.rounds)
        # Where the start takes nearly all of it, the difference of two runs says nothing.
        after = (changes - self.start.changes) / (seconds - first.seconds) if seconds > 1.2 * first.seconds else 0
        return (
            self.name,
            f"{changes / seconds:,.0f}",
            f"{first.seconds:.1f}",
            f"{after:,.0f}" if after else "-",
            f"{cpu / changes * 1e6:.1f}",
            f"{first.cpu:.1f}",
            f"{max(run.usage.peak for run in self.rounds) / 1e6:,.0f}",
            f"{self.rounds[0].written / 1e6:.1f}",
            f"NO: {self.differs}" if self.differs else self.start.compared or "not compared",
            self.title,
        )


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    options = _options(arguments)
    progress = Progress(options.quiet)
    left_out = dict[str, str]()
    pipelines = list(_prepared(options, left_out, progress))
    found, runs, status = machine(_LIBRARIES), list[PipelineRuns](), 0
    try:
        if not options.fetch:
            _measure(pipelines, options, progress, runs, left_out)
    except (BenchmarkError, PgoutputError) as error:
        progress.clear()
        print(f"benchmark: {error}", file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        status = 130
    progress.clear()
    for name, reason in left_out.items():
        print(f"{name} is left out: {reason}")
    if measured := [each for each in runs if each.rounds]:
        said = f"{measured[0].rounds[0].changes:,} changes in transactions of {_FIRST}; rounds: {options.repeat}"
        print(machine_text(found, f"{said}; load at the end {os.getloadavg()[0]:.1f}"))
        print(table_text(_HEAD, [each.cells() for each in measured]), flush=True)
    if options.json:
        results = [asdict(each) for each in runs]
        written = {"machine": found, "results": results, "left_out": left_out}
        options.json.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    return status or int(any(each.differs for each in runs))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.benchmark alternatives",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=f"only these (all): {', '.join(NAMES)}")
    add("--changes", type=_changes, default=500_000, metavar="N", help="changes of the table (default 500000)")
    add("--repeat", type=_rounds, default=2, metavar="N", help="rounds; the best is reported (default 2)")
    add(
        "--dlt-source",
        type=Path,
        metavar="FOLDER",
        help="the folder pg_replication that 'dlt init pg_replication filesystem' makes; no package has it",
    )
    add("--fetch", action="store_true", help="only fetch what is needed, and report what cannot be had")
    add("--directory", type=Path, metavar="FOLDER", help="where files go (default: that of temporary files)")
    add("--json", type=Path, metavar="FILE", help="write every measurement as JSON")
    add("--quiet", action="store_true", help="show no progress")
    options = parser.parse_args(arguments)
    for path in (options.directory, options.json and options.json.parent):
        if path is not None and not path.is_dir():
            parser.error(f"folder {path} does not exist")  # now, not after the measurements
    return options


def _changes(text: str) -> int:
    number = int(text)
    if number <= _FIRST or number % _FIRST:
        raise argparse.ArgumentTypeError(f"must be a multiple of {_FIRST}, and more than that")
    return number


def _rounds(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _prepared(options: argparse.Namespace, left_out: dict[str, str], progress: Progress) -> Iterator[MeasuredPipeline]:
    """Yield the pipelines that can be had; note why the others cannot."""
    pipelines = (
        OwnCapture(),
        OwnTables("parquet"),
        OwnTables("iceberg"),
        DebeziumEngine(),
        IngestrRun(),
        DltRun(options.dlt_source),
    )
    for pipeline in pipelines:
        if pipeline.name in options.only:
            progress.step(f"{pipeline.name}: fetching what it needs, unless that is there")
            if reason := pipeline.prepare():
                left_out[pipeline.name] = reason
            else:
                yield pipeline


def _measure(
    pipelines: Sequence[MeasuredPipeline],
    options: argparse.Namespace,
    progress: Progress,
    runs: list[PipelineRuns],
    left_out: dict[str, str],
) -> None:
    """Measure all pipelines in turns; add to ``runs`` what has been measured."""
    with (
        tempfile.TemporaryDirectory(prefix="alternatives-", dir=options.directory) as place,
        listening_server(options.directory) as dsn,
    ):
        source, places = ChangeSource(dsn), {each.name: Path(place).resolve() / each.name for each in pipelines}
        for pipeline in pipelines:
            progress.step(f"{pipeline.name}: the empty table")
            with _noted(pipeline, left_out):
                pipeline.begin(source, places[pipeline.name])
        source.write(_FIRST)
        for pipeline in (each for each in pipelines if each.name not in left_out):
            progress.step(f"{pipeline.name}: the first transaction")
            with _noted(pipeline, left_out):
                starts = [measured_run(pipeline, source, places[pipeline.name]) for _ in range(_STARTS)]
                start = min(starts, key=lambda run: run.usage.seconds)
                runs.append(PipelineRuns(pipeline.name, pipeline.title, start, []))
        progress.step(f"writing {options.changes:,} changes")
        source.write(options.changes)
        for number in range(options.repeat):
            for each in runs if number % 2 == 0 else runs[::-1]:
                progress.step(f"{each.name}: round {number + 1} of {options.repeat}")
                pipeline = next(found for found in pipelines if found.name == each.name)
                each.rounds.append(measured_run(pipeline, source, places[each.name]))
                seconds, cpu, _ = each.rounds[-1].usage
                progress.step(f"{each.name}: {seconds:.1f} s, {cpu:.1f} s of CPU")


@contextmanager
def _noted(pipeline: MeasuredPipeline, left_out: dict[str, str]) -> Iterator[None]:
    """Leave a pipeline out whose program fails before anything is measured; note why."""
    try:
        yield
    except BenchmarkError as error:
        left_out[pipeline.name] = str(error)


def measured_run(pipeline: MeasuredPipeline, source: ChangeSource, place: Path) -> PipelineRun:
    """Run a pipeline, and compare what it has written with the server.

    Args:
        pipeline: The pipeline, which is prepared and has begun.
        source: The server.
        place: The directory of the pipeline: what the run writes there is removed at the end.

    Raises:
        BenchmarkError: A program failed.
    """
    folder = place / "run"
    folder.mkdir()
    try:
        usage = pipeline.run(source, folder)
        written = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.suffix != ".crc")
        compared, differs = _compare(pipeline.result(folder), source)
        return PipelineRun(source.changes, usage, written, compared, differs)
    finally:
        shutil.rmtree(folder)


def _compare(result: PipelineResult, source: ChangeSource) -> tuple[str, str]:
    """Return what was compared with the server, and what differs."""
    compared, differs = [], []
    if result.changes is not None:
        compared.append("changes")
        if result.changes != source.changes:
            differs.append(f"{result.changes:,} changes instead of {source.changes:,}")
    if result.rows is not None:
        compared.append("rows")
        if text := difference(source.rows(), result.rows):
            differs.append(text)
    return " and ".join(compared), "; ".join(differs)
