"""What a specification records in addition to the layout: options, and the documents with their deviations."""

from dataclasses import dataclass

__all__ = ["Deviation", "Document", "Option"]


@dataclass(frozen=True)
class Option:
    """An option of START_REPLICATION, or one of its ``values``: what it came with, and which parameters it sets."""

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
        """Whether it sets a parameter, or one of its values does."""
        return bool(self.sets) or any(value.sets for value in self.values)


@dataclass(frozen=True)
class Deviation:
    """What a document says that is not so on the wire, or does not say; by kind, place and PostgreSQL versions."""

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
        """Return whether it is about the documents of that PostgreSQL version."""
        return (self.first or pg) <= pg <= (self.last or pg)


@dataclass(frozen=True)
class Document:
    """A section of PostgreSQL's documents that describes what the specification does."""

    section: str
    title: str
    annotated: int | None = None
    deviations: tuple[Deviation, ...] = ()
