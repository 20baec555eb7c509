"""``pgoutput demo``: runs the whole pipeline with an embedded server."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli._options import TABLE_FORMATS, command
from pgoutput_construct.cli._printing import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from pgoutput_construct.demo.pipeline import Report

__all__ = ["demo_command"]

DIRECTORY = click.Path(file_okay=False, path_type=Path)
SCALE = click.FloatRange(0.01, 1000)
VERSION = click.Choice(["16", "18"])
INTO = click.Choice(TABLE_FORMATS)


@command("demo", short_help="Replicate a demo workload on PostgreSQL into Spark tables.")
@click.option("--output", type=DIRECTORY, help="Directory for the files.  [default: pgoutput-demo/TIME]")
@click.option("--scale", type=SCALE, default=1.0, show_default=True, help="Size; 1 is about 40,000 changes.")
@click.option("--master", default="local[*]", show_default=True, help="Spark's master, such as spark://host:7077.")
@click.option("--into", type=INTO, default="parquet", show_default=True, help="Format of the tables.")
@click.option("--binary", is_flag=True, help="Request values in binary format.")
@click.option(
    "--postgres", "version", type=VERSION, default="18", show_default=True, help="Version of the embedded PostgreSQL."
)
def demo_command(output: Path | None, scale: float, master: str, into: str, binary: bool, version: str) -> None:
    """Start an embedded PostgreSQL with a shop's workload, copy its tables, and replicate them to Spark tables.

    Meanwhile columns are added and renamed, and the capture, Spark and the server are killed once each. Prints for each
    table the median lag from commit to queryable, and whether it finally equals SELECT * from the source; freshness.svg
    shows the lag over time. The exit status is 1 if any table differs.

    \b
    Examples:
      pgoutput demo
      pgoutput demo --scale 5 --binary --into iceberg --output /tmp/shop
    """
    from rich.console import Console

    from pgoutput_construct.demo.pipeline import DemoOptions, run_demo

    console = Console(stderr=True)
    directory = _directory(output)
    options = DemoOptions(directory, scale, master, binary, int(version), into)
    with _progress(console) as (step, detail):
        report = run_demo(options, step, detail)
    _show(report, Console())
    if not report.equal:
        raise click.exceptions.Exit(1)


def _directory(output: Path | None) -> Path:
    if output is None:
        return Path("pgoutput-demo") / f"{datetime.now():%Y-%m-%dT%H-%M-%S}"
    if output.exists() and any(output.iterdir()):
        raise click.ClickException(f"{output} is not empty: choose another --output, or remove it")
    return output


@contextmanager
def _progress(console: "Console") -> Iterator[Any]:
    """Print a line per step; on a terminal a spinner shows the progress of the current step."""
    from rich.text import Text

    with console.status("") as status:
        current = ""

        def step(text: str) -> None:
            nonlocal current
            current = text
            console.print(Text.assemble(("•", "bold"), f" {printable(text)}"), highlight=False)
            status.update(Text(printable(text)))

        def detail(text: str) -> None:
            status.update(Text(printable(f"{current}: {text}")))

        yield step, detail


def _show(report: "Report", console: "Console") -> None:
    from pgoutput_construct.demo.picture import bars, median_lags, rates

    console.print(_table(report, median_lags(report.watched)))
    lines = [f"{row.name} {example}" for row in report.tables for example in row.comparison.examples]
    lines += _drawn("transactions a second into the tables", bars(rates(report.watched)), max(rates(report.watched)))
    lags = [max(lag.lags) for lag in report.watched.lags]
    lines += _drawn("seconds from commit to queryable, at most", bars(lags), max(lags, default=0.0))
    lines += [f"picture:     {report.picture}", f"change log:  {report.log}", f"tables:      {report.warehouse}"]
    lines.append(f"Read the change log with: pgoutput tail {quote(str(report.log))} | head")
    for line in lines:
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)


def _table(report: "Report", lags: Mapping[str, float]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(title="The shop's tables, replicated and compared with their source")
    table.add_column("table", no_wrap=True)
    for name in ("changes", "rows", "median lag"):
        table.add_column(name, justify="right")
    table.add_column("equal", justify="center")
    for row in report.tables:
        compared, lag = row.comparison, lags.get(row.name)
        differs = f"[red]no: {compared.missing} missing, {compared.unexpected} extra[/]"
        verdict = "[green]yes[/]" if compared.equal else differs
        shown = "" if lag is None else f"{lag:.1f} s"
        table.add_row(Text(printable(row.name)), f"{row.changes:,}", f"{compared.rebuilt_rows:,}", shown, verdict)
    return table


def _drawn(title: str, drawn: str, most: float) -> list[str]:
    return [f"{title + ':':<44} {drawn} {most:,.1f}"] if drawn else []
