"""A group of cases: each is a function that writes it, and whose docstring is what it demands."""

import inspect
from collections.abc import Callable, Iterator
from typing import Final

from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.conformance.conformance_case import CaseServer, ConformanceCase, Level, Needs, Play

__all__ = ["BINARY", "MESSAGES", "PARALLEL", "STREAMED", "STREAMED_ON", "TEXT", "TWO_PHASE", "CaseGroup"]

STREAMED: Final[Needs] = {"proto_version": (2, 3, 4), "streaming": ("on", "parallel")}
"""Transactions in progress are sent; Stream Abort has two layouts."""
STREAMED_ON: Final[Needs] = {"proto_version": (2, 3, 4), "streaming": ("on",)}
"""They are, and Stream Abort has no LSN, whatever the version."""
PARALLEL: Final[Needs] = {"proto_version": (4,), "streaming": ("parallel",)}
"""They are, and Stream Abort has an LSN."""
TWO_PHASE: Final[Needs] = {"proto_version": (3, 4), "two_phase": (True,)}
BINARY: Final[Needs] = {"binary": (True,)}
TEXT: Final[Needs] = {"binary": (False,)}
MESSAGES: Final[Needs] = {"messages": (True,)}


class CaseGroup:
    """The cases of one subject."""

    def __init__(self, name: str, title: str) -> None:
        """Begin an empty group.

        Args:
            name: The first part of its cases' names.
            title: What they are about, for people.
        """
        self.name = name
        self.title = title
        self._cases: list[ConformanceCase] = []

    def __iter__(self) -> Iterator[ConformanceCase]:
        return iter(self._cases)

    def case(
        self,
        name: str,
        reason: str,
        *,
        level: Level = Level.MUST,
        needs: Needs | None = None,
        server: CaseServer | None = None,
    ) -> Callable[[Callable[[CaseWriter], None]], ConformanceCase]:
        """Return a decorator of a function that writes a case.

        Args:
            name: The second part of its name.
            reason: Where its demand follows from.
            level: How much it demands.
            needs: The options that it is about; by default any.
            server: The server that its publisher stands for; by default PostgreSQL 18.
        """

        def decorate(write: Callable[[CaseWriter], None]) -> ConformanceCase:
            demand = " ".join((inspect.getdoc(write) or "").split())
            return self.add(name, reason, demand, write, level=level, needs=needs, server=server)

        return decorate

    def add(
        self,
        name: str,
        reason: str,
        demand: str,
        write: Callable[[CaseWriter], None],
        *,
        level: Level = Level.MUST,
        needs: Needs | None = None,
        server: CaseServer | None = None,
    ) -> ConformanceCase:
        """Add a case that several groups, or cases of a table, have; return it.

        Args:
            name: As of ``case``; likewise the others.
            reason: Where its demand follows from.
            demand: What a client must do.
            write: Writes it.
            level: How much it demands.
            needs: The options that it is about.
            server: The server that its publisher stands for.
        """
        name = f"{self.name}/{name}"
        made = ConformanceCase(name, level, demand, reason, _writer(write), needs or {}, server or CaseServer())
        self._cases.append(made)
        return made


def _writer(write: Callable[[CaseWriter], None]) -> Callable[[ConformanceCase], Play]:
    def play(case: ConformanceCase) -> Play:
        writer = CaseWriter(case)
        write(writer)
        return writer.play()

    return play
