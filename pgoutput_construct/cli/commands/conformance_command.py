"""``pgoutput conformance``: tests a client of logical replication, case by case."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pgoutput_construct.cli._options import SECONDS, command
from pgoutput_construct.cli._printing import counted, printable, say

if TYPE_CHECKING:
    from pgoutput_construct.conformance import CaseResult, ConformanceCase

__all__ = ["conformance_command"]

_COLOURS: Final = {"passes": "green", "not applicable": None}
_MOST_ERRORS: Final = 12
"""Lines of a client's errors that are shown, the last ones."""


@command("conformance", short_help="Test a client of logical replication against the conformance suite.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--list", "lists", is_flag=True, help="List the cases, and end.")
@click.option("--case", "patterns", multiple=True, help="A case, a group such as streams, or a pattern; repeatable.")
@click.option(
    "--level",
    type=click.Choice(["must", "should"]),
    default="must",
    show_default=True,
    help="The exit status is 1 if a case of this level fails; with should, one of either level.",
)
@click.option("--timeout", type=SECONDS, default=10.0, show_default=True, help="Seconds without progress: it hangs.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Cases that run at a time.")
@click.option("--name", help="What the client is called in the report.  [default: COMMAND]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per case.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Save the report as an HTML page.")
def conformance_command(
    command: tuple[str, ...],
    lists: bool,
    patterns: tuple[str, ...],
    level: str,
    timeout: float,
    jobs: int,
    name: str | None,
    as_json: bool,
    html: Path | None,
) -> None:
    """Run COMMAND, a client of logical replication, against a publisher that plays each case of the suite.

    COMMAND is started for each case, and again if it ends when its connection is lost. Words in braces are replaced:
    {dsn} or {url}, or {host}, {port}, {user}, {password} and {database}; {slot}, which exists; {publication};
    {proto_version}, {streaming}, {binary}, {messages}, {two_phase} and {origin}, which the case asks for, or {options},
    all of them; {output}, a file to write to instead of standard output; {end_lsn}, where everything ends; {timeout},
    after which a silent connection is to be taken for lost; {directory}, which is the case's own; {case}.

    The client writes each change that it believes was committed as a line of JSON, before it confirms it:

    \b
      {"transaction": 701, "table": "public.orders", "operation": "update",
       "new": {"id": "1", "note": null}, "old": {"id": "2"}}

    Cases about options that the client does not ask for are not applicable.

    \b
    Examples:
      pgoutput conformance --list
      pgoutput conformance -- python my_client.py {dsn} {slot} {publication}
      pgoutput conformance --case streams --html report.html -- ./client {url} --streaming {streaming}
    """
    from pgoutput_construct.conformance import CommandClient, Level, find_cases, run_case

    cases = find_cases(patterns)
    if lists:
        _list(cases, as_json)
        return
    if not command:
        raise click.UsageError("give the client's command after --, or --list")
    client = CommandClient(command, name or "")
    results = []
    for result in _results(cases, lambda case: run_case(case, client, timeout), jobs):
        results.append(result)
        _print(result, as_json)
    if html is not None:
        from pgoutput_construct.cli.commands._conformance_page import page

        html.write_text(page(client.name, results), "utf-8")
    if not as_json:
        _summarize(results)
    failed = [each for each in results if not each.is_good and (each.case.level is Level.MUST or level == "should")]
    if failed:
        click.get_current_context().exit(1)


def _results(cases: "Sequence[ConformanceCase]", run: Any, jobs: int) -> "Iterator[CaseResult]":
    if jobs == 1:
        yield from map(run, cases)
        return
    with ThreadPoolExecutor(jobs) as executor:
        yield from executor.map(run, cases)


def _list(cases: "Sequence[ConformanceCase]", as_json: bool) -> None:
    for case in cases:
        if as_json:
            click.echo(json.dumps(_described(case)))
        else:
            say(f"{case.level:6}  {case.name:42}  {case.demand}")


def _described(case: "ConformanceCase") -> dict[str, Any]:
    return {"case": case.name, "level": case.level, "demand": case.demand, "reason": case.reason}


def _print(result: "CaseResult", as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(_json(result)))
        return
    colour = _COLOURS.get(result.verdict, "red" if result.case.level == "must" else "yellow")
    say(f"{result.verdict:14}  {result.case.level:6}  {result.case.name}", fg=colour)
    if not result.is_good:
        for line in explained(result):
            say(f"    {line}")


def explained(result: "CaseResult") -> Iterator[str]:
    """Yield the lines that say what is wrong: the demand, the problem, expected and reported, and the bytes."""
    from pgoutput_construct.cli.commands._conformance_bytes import picture_of

    yield result.case.demand
    yield f"because of {result.case.reason}"
    yield f"but {result.problem}"
    if result.expected is not None:
        yield f"expected: {json.dumps(result.expected.to_json(), ensure_ascii=False):.400}"
    if result.reported:
        yield f"reported: {result.reported:.400}"
    at = result.expected.step if result.expected is not None else result.case.play.refused
    if (picture := picture_of(result.case, at)) is not None:
        yield from picture.text().splitlines()
    yield from (f"> {line}" for line in result.errors.splitlines()[-_MOST_ERRORS:])


def _json(result: "CaseResult") -> dict[str, Any]:
    expected = None if result.expected is None else result.expected.to_json()
    rest = {"problem": result.problem, "expected": expected, "reported": result.reported, "errors": result.errors}
    return {**_described(result.case), "verdict": result.verdict, "seconds": round(result.seconds, 3), **rest}


def _summarize(results: "Sequence[CaseResult]") -> None:
    verdicts = [result.verdict for result in results]
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))
    failed = sum(not result.is_good and result.case.level == "must" for result in results)
    say(printable(f"{counted(len(results), 'case')}: {counts}"))
    say(f"{counted(failed, 'case')} that a client must pass failed" if failed else "every case that must pass does")
