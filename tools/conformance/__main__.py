"""``python -m tools.conformance``: the report card of all clients; ``suite`` writes the suite as data."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from pgoutput_construct.conformance import ConformanceClient, all_cases, find_cases, run_case
from pgoutput_construct.conformance.suite_file import suite_lines
from tools.conformance.case_list import CASES_PAGE, case_list
from tools.conformance.clients import CLIENTS, ClientEntry, UnavailableClientError
from tools.conformance.report_card import PAGE, ClientResults, card, load_results, save_results

__all__ = ["SUITE", "main"]

SUITE: Final = Path(__file__).parents[2] / "spec" / "conformance.jsonl"


@click.group(invoke_without_command=True)
@click.option("--client", "names", multiple=True, help="A client, such as pglogrepl; repeatable.  [default: all]")
@click.option("--case", "patterns", multiple=True, help="Run these cases only, and leave the report card as it is.")
@click.option("--timeout", default=8.0, show_default=True, help="Seconds without progress: it hangs.")
@click.pass_context
def main(context: click.Context, names: Sequence[str], patterns: Sequence[str], timeout: float) -> None:
    """Run the suite against each client, and write the report card (docs/reference/conformance-report.md)."""
    if context.invoked_subcommand is not None:
        return
    for entry in (entry for entry in CLIENTS if entry.name in names or not names):
        try:
            results = _run(entry, patterns, timeout)
        except UnavailableClientError as error:
            click.echo(f"{entry.title}: {error}", err=True)
            continue
        if not patterns:
            save_results(results)
    if not patterns:
        PAGE.write_text(card(load_results()), "utf-8")


@main.command()
def suite() -> None:
    """Write spec/conformance.jsonl, and the list of cases (docs/reference/conformance-cases.md)."""
    SUITE.write_text("".join(f"{line}\n" for line in suite_lines(all_cases())), "utf-8")
    CASES_PAGE.write_text(case_list(), "utf-8")


@main.command("page")
def page() -> None:
    """Write the report card again from the results of earlier runs."""
    PAGE.write_text(card(load_results()), "utf-8")


def _run(entry: ClientEntry, patterns: Sequence[str], timeout: float) -> ClientResults:
    found = ClientResults(entry.name, entry.version(), {})
    with entry.open() as client:
        _cases(entry, client, found, patterns, timeout)
    return found


def _cases(
    entry: ClientEntry, client: ConformanceClient, found: ClientResults, patterns: Sequence[str], timeout: float
) -> None:
    for case in find_cases(patterns):
        result = run_case(case, client, timeout)
        found.add(result)
        if not result.is_good:
            click.echo(f"{entry.title}: {result.verdict} {case.name}: {result.problem}")
    good = sum(each["verdict"] in ("passes", "not applicable") for each in found.cases.values())
    click.echo(f"{entry.title} {found.version}: {good} of {len(found.cases)} cases")


if __name__ == "__main__":
    sys.exit(main())
