"""The records of a specification besides layouts: options, and the documents with their deviations."""

from dataclasses import dataclass

__all__ = ["Deviation", "Document", "Option"]


@dataclass(frozen=True)
class Option:
    """An option of START_REPLICATION, or one of its ``values``: the versions that introduced it, and what it sets."""

    name: str
    description: str = ""
    server: int | None = None
    since: int | None = None
    type: str | None = None
    sets: tuple[str, ...] = ()
    values: "tuple[Option, ...]" = ()
    line: int = 0

    @property
    def decides_layout(self) -> bool:
        """Whether it, or one of its values, sets a parameter."""
        return bool(self.sets) or any(value.sets for value in self.values)


@dataclass(frozen=True)
class Deviation:
    """An error or omission in a document; by kind, place and PostgreSQL versions."""

    kind: str
    reason: str
    message: str = ""
    at: str = ""
    says: str | None = None
    first: int | None = None
    last: int | None = None
    sometimes: bool = False
    line: int = 0

    def concerns(self, pg: int) -> bool:
        """Return whether it applies to the documents of that PostgreSQL version."""
        return (self.first or pg) <= pg <= (self.last or pg)


@dataclass(frozen=True)
class Document:
    """A section of PostgreSQL's documents that the specification covers."""

    section: str
    title: str
    annotated: int | None = None
    deviations: tuple[Deviation, ...] = ()
