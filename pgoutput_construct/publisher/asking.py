"""Who asks a publisher a query, and the form of what answers it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pgoutput_construct.publisher.feed import Feed
from pgoutput_construct.publisher.results import Result
from pgoutput_construct.publisher.slots import Slots

__all__ = ["Answer", "Asker", "Rows", "known", "listed"]

_NAMES = re.compile(r"'((?:[^']|'')*)'")


@dataclass
class Asker:
    """What answers depend on: what is served, the slots, and the settings of the session."""

    feed: Feed
    slots: Slots
    settings: dict[str, str]
    user: str
    process_id: int = 0
    """Of the client's connection."""


Rows: TypeAlias = Sequence[Sequence[str | None]]
Answer: TypeAlias = Callable[[Asker, re.Match[str]], Result]


def known(pattern: str) -> re.Pattern[str]:
    """Return the form of a query that is known, written with single spaces."""
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def listed(text: str) -> list[str]:
    """Return the texts of a list of SQL's literals."""
    return [name.replace("''", "'") for name in _NAMES.findall(text)]
