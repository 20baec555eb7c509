"""What verifying needs of a server: made by ``postgres.checksums.SourceServer``, since this room knows no sockets."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.columnar.row_checksums import ByKey, Checksum, Division

__all__ = ["Held", "Source", "SourceTable"]

Texts = Sequence[str | None]


class SourceTable(Protocol):
    """A table under a snapshot."""

    @property
    def ordered(self) -> frozenset[str]:
        """The columns by which it can be divided into ranges: Spark orders their values alike."""

    def ranges(self, column: str, after: str | None, rows: int, most: int) -> ByKey:
        """Divide what comes after a key into ranges of ``rows`` rows, and ``most`` ranges at most."""

    def checksums(self, division: Division) -> Iterator[tuple[int, Checksum]]:
        """Yield the checksum of each part by its number; parts without rows may be left out."""

    def digests(self, division: Division, number: int, keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the texts of the key of each row in a part, and the row's digest."""

    def rows(self, division: Division, number: int, wanted: Sequence[str]) -> Sequence[Texts]:
        """Return the texts of the columns of those rows in a part that have some digests."""


class Held(Protocol):
    """A snapshot that is held."""

    @property
    def snapshot(self) -> Snapshot:
        """Which transactions it contains; its position is after the commits of all of them."""

    def table(self, relation_oid: int, columns: pa.Schema) -> SourceTable | str:
        """Return a table by its OID with these columns; what happened to it where it is there no more like that."""


class Source(Protocol):
    """A server."""

    def held(self) -> AbstractContextManager[Held]:
        """Hold a snapshot while a block runs."""
