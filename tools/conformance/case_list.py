"""The page that lists the cases, each with its reason."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pgoutput_construct.conformance.conformance_case import ConformanceCase
from pgoutput_construct.conformance.suite import GROUPS

__all__ = ["CASES_PAGE", "case_list"]

CASES_PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "conformance-cases.md"
_HEAD: Final = """\
# Cases of the conformance suite

Made by `python -m tools.conformance suite` from `pgoutput_construct/conformance`. [How to run
them](../how-to/conformance.md). Reasons name a function of PostgreSQL's sources, or a section of its documentation by
its id.
"""


def case_list() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *(line for group in GROUPS for line in _group(group.title, list(group)))])


def _group(title: str, cases: list[ConformanceCase]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield "| case | level | asks for | demands | reason |"
    yield "|---|---|---|---|---|"
    for case in cases:
        cells = (f"`{case.name}`", str(case.level), _needs(case), _plain(case.demand), _plain(case.reason))
        yield f"| {' | '.join(cells)} |"
    yield ""


def _needs(case: ConformanceCase) -> str:
    asked = {name: values[0] for name, values in case.needs.items() if name != "proto_version"}
    return ", ".join(f"{name} {str(value).lower()}" for name, value in asked.items())


def _plain(text: str) -> str:
    """Return text in which Markdown sees no marks."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")
