"""What a publisher serves: messages in their order, the transactions among them, and what describes their rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pgoutput_construct.stream.logged import EndedTransaction
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.types import Lsn

__all__ = ["About", "Fed", "Feed"]


class Fed(NamedTuple):
    """One message, and where it stands."""

    seq: int
    """Its place in the feed."""
    lsn: Lsn
    """Its position in the WAL, 0/0 for a Relation and a Type."""
    message: PgoutputMessage
    in_stream: bool = False
    """Whether it stands between Stream Start and Stream Stop."""


@dataclass(frozen=True)
class About:
    """The server that a feed comes from, or that it stands for."""

    server_version: int
    """Such as 180004 for 18.4."""
    system_identifier: str
    database: str
    timeline: int
    publications: tuple[str, ...]
    """Names of the publications; empty: of any name."""
    layout: dict[str, Any]
    """The options under which its messages were laid out: the keywords of Session."""
    binary: bool
    """Whether values are in binary format."""


class Feed(ABC):
    """Something that a publisher serves. It is read by the threads of several clients."""

    about: About

    @property
    @abstractmethod
    def ended(self) -> Sequence[EndedTransaction]:
        """The transactions that have an outcome, in the order of their ends; more may come behind them."""

    @property
    @abstractmethod
    def position(self) -> Lsn:
        """All transactions that ended before this position are there."""

    @abstractmethod
    def read(self, first: int, last: int) -> Iterator[Fed]:
        """Yield the messages from one seq to another, both included."""

    @abstractmethod
    def description(self, relation_oid: int, seq: int, stream_xid: int | None) -> Description:
        """Return what describes the rows of an OID at a place; raise ProtocolError where nothing does."""

    @abstractmethod
    def tables(self) -> Sequence[tuple[str, str, Sequence[str]]]:
        """Return the tables that it has: schema, name and columns, as they were described last."""

    def refresh(self) -> bool:
        """Look for more; tell whether it may still come."""
        return False
