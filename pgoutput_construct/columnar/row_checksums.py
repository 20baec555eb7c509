"""Checksums of rows that a server and Spark compute alike: what both hash, and what a checksum is.

Both write the canonical text of each value (pgtypes/canonical_text.py). The text of a row is
PostgreSQL's text of an array of its values (``array_out``): so values may hold anything. Of its MD5 digest two
numbers of 60 bits are taken, whose sums over rows do not depend on their order.
"""

from typing import Final, NamedTuple

__all__ = ["BUCKET_DIGITS", "DIGITS", "NOTHING", "ByHash", "ByKey", "Checksum", "Division"]

DIGITS: Final = 15
"""Hexadecimal digits of each of the two numbers of a digest: they fit into a signed 64-bit integer."""
BUCKET_DIGITS: Final = 6
"""Hexadecimal digits, at the end of a digest, that say which bucket a row is in."""


class Checksum(NamedTuple):
    """What is equal for equal rows, in whatever order."""

    rows: int
    """How many there are."""
    first: int
    second: int
    """The sums of the two numbers of their digests."""


NOTHING: Final = Checksum(0, 0, 0)
"""That of no rows."""


class ByKey(NamedTuple):
    """Ranges of the column that a key consists of, one after the other."""

    column: str
    bounds: tuple[str, ...]
    """The texts of the last keys of the ranges, in their order."""
    after: str | None = None
    """The first range begins after this key; None: with the first key there is."""
    to_the_end: bool = True
    """Whether there is one more range, of all that comes after the last of the bounds."""

    def ends(self, number: int) -> tuple[str | None, str | None]:
        """Return after which key a range begins, and with which it ends; None for no bound."""
        starts = (self.after, *self.bounds)
        return starts[number], self.bounds[number] if number < len(self.bounds) else None


class ByHash(NamedTuple):
    """A table divided into buckets by the digest of its key, or of the whole row where it has none."""

    columns: tuple[str, ...]
    """Those of the key, or all."""
    buckets: int
    """How many there are."""


Division = ByKey | ByHash
