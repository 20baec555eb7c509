"""The suite: all groups, and the cases that someone asks for."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache

from pgoutput_construct.conformance._cases import (
    damage,
    feedback,
    handshake,
    links,
    others,
    reconnects,
    relation_cases,
    row_cases,
    stream_cases,
    two_phase,
    values,
    version_1,
)
from pgoutput_construct.conformance.case_group import CaseGroup
from pgoutput_construct.conformance.conformance_case import ConformanceCase, Level
from pgoutput_construct.errors import PgoutputError

__all__ = ["GROUPS", "all_cases", "find_cases"]

GROUPS: Sequence[CaseGroup] = (
    handshake.GROUP,
    version_1.GROUP,
    values.GROUP,
    row_cases.GROUP,
    relation_cases.GROUP,
    others.TRUNCATES,
    others.ORIGINS,
    others.MESSAGE_GROUP,
    stream_cases.STREAMS,
    stream_cases.PARALLEL_GROUP,
    two_phase.GROUP,
    feedback.GROUP,
    reconnects.GROUP,
    links.LINKS,
    links.SIZES,
    damage.DAMAGE,
    damage.VERSIONS,
)
"""The groups, in the order in which their cases are run."""


@cache
def all_cases() -> tuple[ConformanceCase, ...]:
    """Return all cases."""
    return tuple(case for group in GROUPS for case in group)


def find_cases(patterns: Sequence[str] = (), level: Level = Level.SHOULD) -> list[ConformanceCase]:
    """Return the cases with names that match one of some patterns, and that demand enough.

    Args:
        patterns: Names, or patterns such as ``streams/*``; none for all cases.
        level: MUST for those alone that a client must pass.

    Raises:
        PgoutputError: No case matches a pattern.
    """
    cases = [case for case in all_cases() if level is Level.SHOULD or case.level is Level.MUST]
    if not patterns:
        return cases
    for pattern in patterns:
        if not any(_matches(case, pattern) for case in cases):
            raise PgoutputError(f"no case matches {pattern!r}: pgoutput conformance --list has their names")
    return [case for case in cases if any(_matches(case, pattern) for pattern in patterns)]


def _matches(case: ConformanceCase, pattern: str) -> bool:
    return fnmatchcase(case.name, pattern) or case.group == pattern
