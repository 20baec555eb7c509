"""``pgoutput demo``: the whole pipeline on an embedded server."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli.commands import COMMANDS
from pgoutput_construct.extras import require
from pgoutput_construct.stream.rows import OPS

if TYPE_CHECKING:
    from rich.console import Console

    from pgoutput_construct.demo.pipeline import Report

__all__ = ["demo_command"]

DIRECTORY = click.Path(file_okay=False, path_type=Path)
SCALE = click.FloatRange(0.01, 1000)
VERSION = click.Choice(["16", "18"])


@click.command("demo", short_help="Run a shop on a real PostgreSQL and rebuild its tables in Spark.")
@click.option("--output", type=DIRECTORY, help="Folder for the files.  [default: pgoutput-demo/TIME]")
@click.option("--scale", type=SCALE, default=1.0, show_default=True, help="Amount of work; 1 is about 40,000 changes.")
@click.option("--master", default="local[*]", show_default=True, help="Spark's master, such as spark://host:7077.")
@click.option("--binary", is_flag=True, help="Request values in binary format.")
@click.option(
    "--postgres", "version", type=VERSION, default="18", show_default=True, help="Version of the embedded PostgreSQL."
)
def demo_command(output: Path | None, scale: float, master: str, binary: bool, version: str) -> None:
    """Start an embedded PostgreSQL with a shop, copy its tables, capture every change, and rebuild it in Spark.

    Prints for each table its copied rows, inserts, updates, deletes and rows, and whether the rebuilt table equals
    SELECT * from the source. The exit status is 1 if any table differs.

    \b
    Examples:
      pgoutput demo
      pgoutput demo --scale 5 --binary --output /tmp/shop
    """
    require(*COMMANDS["demo"].extras)
    from rich.console import Console

    from pgoutput_construct.demo.pipeline import DemoOptions, run_demo

    console = Console(stderr=True)
    directory = _directory(output)
    options = DemoOptions(directory, scale, master, binary, int(version))
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
    """Print a line per step; on a terminal a spinner shows the progress of the current one."""
    with console.status("") as status:
        current = ""

        def step(text: str) -> None:
            nonlocal current
            current = text
            console.print(f"[bold]•[/] {text}", highlight=False)
            status.update(text)

        def detail(text: str) -> None:
            status.update(f"{current}: {text}")

        yield step, detail


def _show(report: "Report", console: "Console") -> None:
    from rich.table import Table

    table = Table(title="The shop's tables, rebuilt from copies and changes")
    table.add_column("table", no_wrap=True)
    for name in (*(f"{op}s" for op in OPS), "rows"):
        table.add_column(name, justify="right")
    table.add_column("equal", justify="center")
    for row in report.tables:
        written, compared = row.written, row.comparison
        counts = (*written.counts.values(), compared.rebuilt_rows)
        differs = f"[red]no: {compared.missing} missing, {compared.unexpected} extra[/]"
        verdict = "[green]yes[/]" if compared.equal else differs
        table.add_row(row.name, *(f"{count:,}" for count in counts), verdict)
    console.print(table)
    progress = report.progress
    lines = [f"{row.name} {example}" for row in report.tables for example in row.comparison.examples]
    lines.append(f"{progress.rows:,} messages of {progress.transactions:,} committed transactions")
    lines.append(f"change log:  {report.log}")
    lines += [f"{row.name}:  {row.written.path}" for row in report.tables]
    lines.append(f"Read the change log with: pgoutput decode {quote(str(report.log))} | head")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
