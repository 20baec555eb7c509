"""The report card: results of clients as they are stored, and the page that shows them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from pgoutput_construct.conformance import CaseResult, Level, Verdict, all_cases
from pgoutput_construct.conformance.suite import GROUPS
from tools.conformance.clients import CLIENTS, ClientEntry
from tools.conformance.findings import FINDINGS, Finding

__all__ = ["PAGE", "RESULTS", "ClientResults", "card", "load_results", "save_results", "unexplained"]

_ROOT: Final = Path(__file__).parents[2]
PAGE: Final = _ROOT / "docs" / "reference" / "conformance-report.md"
RESULTS: Final = Path(__file__).parent / "results.json"
_GOOD: Final = (Verdict.PASSES, Verdict.NOT_APPLICABLE)


@dataclass
class ClientResults:
    """What the suite said about one client."""

    name: str
    version: str
    cases: dict[str, dict[str, str]]
    """The verdict, and the problem where it is not good, by the case's name."""

    def add(self, result: CaseResult) -> None:
        """Add the result of a case."""
        said = {"verdict": str(result.verdict)}
        if not result.is_good:
            said["problem"] = result.problem
        self.cases[result.case.name] = said

    @property
    def failed(self) -> list[str]:
        """The cases that it does not pass."""
        return [name for name, each in self.cases.items() if each["verdict"] not in _GOOD]


def load_results() -> dict[str, ClientResults]:
    """Return the stored results, by client."""
    if not RESULTS.exists():
        return {}
    found = json.loads(RESULTS.read_text("utf-8"))
    return {name: ClientResults(**each) for name, each in found.items()}


def save_results(results: ClientResults) -> None:
    """Store the results of a client in place of earlier ones."""
    found = {**load_results(), results.name: results}
    stored = {entry.name: asdict(found[entry.name]) for entry in CLIENTS if entry.name in found}
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n", "utf-8")


def unexplained(results: Mapping[str, ClientResults]) -> list[str]:
    """Return the failures that no finding explains, as ``client case``."""
    return [
        f"{name} {case}"
        for name, each in results.items()
        for case in each.failed
        if not any(_covers(finding, name, case) for finding in FINDINGS)
    ]


def _covers(finding: Finding, client: str, case: str) -> bool:
    return client in finding.clients and any(fnmatchcase(case, pattern) for pattern in finding.cases)


def card(results: Mapping[str, ClientResults]) -> str:
    """Return the page."""
    entries = [entry for entry in CLIENTS if entry.name in results]
    parts = [_HEAD.format(count=len(all_cases())), *_clients(entries, results), "", *_groups(entries, results)]
    parts += ["", _BETTER, _ABSENT, *_findings(results), ""]
    return "\n".join(parts)


_BETTER: Final = """\
## Where others are better than this project

- pg_walstream follows streamed and prepared transactions; our live client asks for neither, and refuses a slot with
  two_phase.
"""

_ABSENT: Final = """\
## Not in the card

- Debezium's engine (3.6.1.Final) follows no stream alone: before it, and again at each Relation, it queries the
  catalog through JDBC, and takes columns and primary keys from there. The suite's publisher answers what
  subscriptions and replication clients ask, and has no catalog. With `driver.preferQueryMode=simple` (by default JDBC
  uses the extended query protocol, which the publisher does not speak) the engine ends at `SELECT version(),
  current_user, current_database()`. Then it would ask for roles (`pg_roles`, `pg_auth_members`), all types (`pg_type`,
  `pg_enum`), its row of `pg_replication_slots`, `pg_current_wal_lsn()`, `pg_current_xact_id()`, `pg_publication`, and
  for tables, columns and keys (`pg_class`, `pg_attribute`, `pg_index`, `relreplident`) as they are when a Relation
  comes.
"""

_HEAD: Final = """\
# Report card of clients

Made by `python -m tools.conformance`, which runs the {count} cases of
[the conformance suite](../how-to/conformance.md) against each client, through a program of a page or two that follows a
slot with its library (`tools/conformance`). Such a program does what a library leaves to its user, as PostgreSQL's
documentation asks; what is said here is about the library, in this version.
"""


def _clients(entries: Sequence[ClientEntry], results: Mapping[str, ClientResults]) -> Iterator[str]:
    yield "| client | passes | fails a must | fails a should | not applicable | version | |"
    yield "|---|---:|---:|---:|---:|---|---|"
    levels = {case.name: case.level for case in all_cases()}
    for entry in entries:
        found = results[entry.name]
        verdicts = [each["verdict"] for each in found.cases.values()]
        failed = [levels[name] for name in found.failed]
        counts = (verdicts.count("passes"), failed.count(Level.MUST), failed.count(Level.SHOULD))
        numbers = " | ".join(map(str, (*counts, verdicts.count("not applicable"))))
        about = f"{entry.language}: {entry.note}" if entry.note else entry.language
        yield f"| {entry.title} | {numbers} | {_short(found.version)} | {about} |"


def _short(version: str) -> str:
    """Return a version of Go's without its commit."""
    return version.rsplit("-", 1)[0] if version.count("-") > 1 else version


def _groups(entries: Sequence[ClientEntry], results: Mapping[str, ClientResults]) -> Iterator[str]:
    yield "## By group"
    yield ""
    yield "Passed of those that apply; a dash where none does."
    yield ""
    yield "| group | " + " | ".join(entry.title for entry in entries) + " |"
    yield "|---|" + "---:|" * len(entries)
    for group in GROUPS:
        cells = (_cell([results[entry.name].cases[case.name]["verdict"] for case in group]) for entry in entries)
        yield f"| {group.title} | " + " | ".join(cells) + " |"


def _cell(verdicts: Sequence[str]) -> str:
    applicable = [each for each in verdicts if each != Verdict.NOT_APPLICABLE]
    passed = applicable.count(Verdict.PASSES)
    if not applicable:
        return "-"
    return f"{passed}" if passed == len(applicable) else f"**{passed} of {len(applicable)}**"


def _findings(results: Mapping[str, ClientResults]) -> Iterator[str]:
    yield "## Findings"
    yield ""
    yield "Each with its smallest case: `pgoutput conformance --case NAME -- COMMAND` plays it, and shows its bytes."
    titles = {entry.name: entry.title for entry in CLIENTS}
    for entry in CLIENTS:
        own = [
            finding for finding in FINDINGS if entry.name in finding.clients and _failing(finding, results, entry.name)
        ]
        if not own:
            continue
        yield ""
        yield f"### {titles[entry.name]} {_short(results[entry.name].version)}"
        for finding in own:
            yield ""
            yield from _finding(finding, results[entry.name])


def _failing(finding: Finding, results: Mapping[str, ClientResults], client: str) -> list[str]:
    return [case for case in results[client].failed if _covers(finding, client, case)] if client in results else []


def _finding(finding: Finding, results: ClientResults) -> Iterator[str]:
    cases = {case.name: case for case in all_cases()}
    failing = [cases[name] for name in results.failed if _covers(finding, results.name, name)]
    smallest = min(failing, key=lambda case: (case.level, len(case.play.script), case.name))
    said: dict[str, Any] = results.cases[smallest.name]
    yield f"- **{finding.title}** ({smallest.level}). {finding.text}"
    yield f'  Smallest case: `{smallest.name}`: "{smallest.demand}"'
    yield f"  Reason: {smallest.reason.replace('*', chr(92) + '*')}. It {said['verdict']}: {said['problem']}."
    if others := sorted(case.name for case in failing if case is not smallest):
        yield f"  Also: {', '.join(f'`{name}`' for name in others)}."
