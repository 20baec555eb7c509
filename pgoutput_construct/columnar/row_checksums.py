"""Checksums of rows that PostgreSQL and Spark compute alike: what is hashed, and how tables are divided.

Both write the canonical text of each value (pgtypes/canonical_text.py). The text of a row is PostgreSQL's text of an
array of its values (``array_out``), so a value may contain any character. Two numbers of 60 bits are taken from its MD5
digest; a checksum is the sum of each over the rows, which does not depend on their order.
"""

from typing import Final, NamedTuple

__all__ = ["BUCKET_DIGITS", "DIGITS", "NOTHING", "ByHash", "ByKey", "Checksum", "Division"]

DIGITS: Final = 15
"""Hexadecimal digits of each of the two numbers of a digest; 60 bits fit into a signed 64-bit integer."""
BUCKET_DIGITS: Final = 6
"""Hexadecimal digits at the end of a digest that determine the bucket of a row."""


class Checksum(NamedTuple):
    """The checksum of a set of rows, equal for equal rows in any order."""

    rows: int
    """The number of rows."""
    first: int
    second: int
    """The sums of the two numbers of the rows' digests."""


NOTHING: Final = Checksum(0, 0, 0)
"""The checksum of no rows."""


class ByKey(NamedTuple):
    """A table divided into consecutive ranges of its single key column."""

    column: str
    bounds: tuple[str, ...]
    """The upper bound of each range (inclusive), in PostgreSQL's text, in order."""
    after: str | None = None
    """The lower bound of the first range (exclusive); None: it starts at the first key."""
    to_the_end: bool = True
    """Whether one more range follows, of all keys after the last bound."""

    def ends(self, number: int) -> tuple[str | None, str | None]:
        """Return the lower (exclusive) and upper (inclusive) bound of a range; None for unbounded."""
        starts = (self.after, *self.bounds)
        return starts[number], self.bounds[number] if number < len(self.bounds) else None


class ByHash(NamedTuple):
    """A table divided into buckets by the digest of its key, or of the whole row if it has no key."""

    columns: tuple[str, ...]
    """The columns of the key, or all columns."""
    buckets: int
    """The number of buckets."""


Division = ByKey | ByHash
