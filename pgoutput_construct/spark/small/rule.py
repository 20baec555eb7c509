"""What must be known of a small table with a key, so that changes can be applied to its rows."""

from dataclasses import dataclass

import pyarrow as pa

from pgoutput_construct.spark.tables import Base

__all__ = ["Rule"]


@dataclass(frozen=True)
class Rule:
    """A table, for as long as nothing but its rows changes."""

    columns: pa.Schema
    """The columns that it has now, typed."""
    keys: tuple[str, ...]
    """Those that tell rows apart."""
    unsent: tuple[str, ...]
    """Those that some update left out; none of the key."""
    base: Base | None
    """The copy that it begins with."""
    reach: tuple[int, int] | None
    """How far changes are from that, as ``near`` returns it."""
    lacks_rows: bool
    """Whether the log may have changes of rows that are older than it."""
