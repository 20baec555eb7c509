"""A case: what a client must do, why, under which options, and what is played to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pgoutput_construct.conformance.meaning import ExpectedTransaction
from pgoutput_construct.conformance.steps import Step
from pgoutput_construct.wire.messages import Relation
from pgoutput_construct.wire.protocol import OPTIONS
from pgoutput_construct.wire.types import Lsn

__all__ = ["CaseServer", "ConformanceCase", "Level", "Needs", "Outcome", "Play"]

Needs: TypeAlias = Mapping[str, Sequence[Any]]
"""The values of options of START_REPLICATION under which a server can send a script, the one to ask for first."""


class Level(StrEnum):
    """How much a case demands."""

    MUST = "must"
    """A client that fails it loses, repeats, invents or misreads data, or does not work with a server as it is."""
    SHOULD = "should"
    """PostgreSQL's own subscription does so, and a client that does not has work for its operators."""


class Outcome(Enum):
    """How a case ends for a client that is right."""

    COMMITTED = "committed"
    """It reports all expected transactions."""
    REFUSED = "refused"
    """It reports those before what is invalid, nothing after it, and says that something is wrong."""
    EITHER = "either"
    """One or the other."""


@dataclass(frozen=True, kw_only=True)
class CaseServer:
    """The server that a case's publisher stands for."""

    version: int = 180000
    method: Literal["trust", "password", "scram-sha-256"] = "trust"
    publication: str = "suite"
    """The publication's name."""
    wal_sender_timeout: float = 60.0
    """Seconds."""
    split: int = 0
    """The size of the segments in which everything is sent, from the first byte on; 0: as it comes."""
    refusals: tuple[tuple[str, str], ...] = ()
    """SQLSTATE and text of errors that the first connections get, each instead of a session."""
    start_refusals: tuple[tuple[str, str], ...] = ()
    """SQLSTATE and text of errors that the first START_REPLICATION commands get."""
    greeting: bytes = b""
    """Messages before ReadyForQuery, in addition to those of every server."""


@dataclass(frozen=True)
class Play:
    """What is played: the script, and its meaning."""

    script: tuple[Step, ...]
    transactions: tuple[ExpectedTransaction, ...]
    """What a client must report."""
    ends: Mapping[int, Lsn]
    """The LSN at which each unit ends."""
    descriptions: Mapping[str, tuple[bytes, ...]]
    """The messages that describe a table, by the names in ``SendMessage.needs``: Types, and a Relation."""
    tables: tuple[Relation, ...]
    """The tables as they are described, each time: what a client that stores rows has to create first."""
    outcome: Outcome = Outcome.COMMITTED
    refused: int | None = None
    """The index of the step that a client must refuse."""
    once: bool = False
    """Whether a transaction that is sent again must not be reported again."""
    memory: int | None = None
    """The most bytes of memory that a client may need beyond what it needed for the first transaction."""
    stores: bool = False
    """Whether a client must have reported what it confirms: what it reports is what it has stored."""
    reads: bool = True
    """Whether what the client reports is read at once; otherwise its consumer is slow."""

    @property
    def end(self) -> Lsn:
        """The LSN at which everything ends."""
        return max(self.ends.values(), default=Lsn(0))


@dataclass(frozen=True)
class ConformanceCase:
    """One case of the suite."""

    name: str
    """``group/what-happens``."""
    level: Level
    demand: str
    """What a client must do."""
    reason: str
    """Where that follows from: PostgreSQL's documentation, or a function of its apply worker."""
    write: Callable[["ConformanceCase"], Play] = field(repr=False)
    """Makes what is played."""
    needs: Needs = field(default_factory=dict)
    server: CaseServer = field(default_factory=CaseServer)

    @property
    def group(self) -> str:
        """The first part of its name."""
        return self.name.partition("/")[0]

    @property
    def options(self) -> dict[str, Any]:
        """The options of START_REPLICATION to ask for, other than the publications."""
        defaults = {name: option.default for name, option in OPTIONS.items() if name != "publication_names"}
        return {**defaults, "proto_version": 1, **{name: values[0] for name, values in self.needs.items()}}

    @cached_property
    def play(self) -> Play:
        """What is played; made when it is needed."""
        return self.write(self)

    def lack(self, options: Mapping[str, Any]) -> str:
        """Return why a server would not send the script under some options; empty if it would."""
        for name, values in self.needs.items():
            if options[name] not in values:
                wanted = " or ".join(str(value) for value in values)
                return f"the client asks for {name} {options[name]}; the case is about {name} {wanted}"
        return ""
