"""The tables of generated streams: their Relation and Types, and strategies of their rows."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pgoutput_construct.pgtypes.builtin_types import FIRST_USER_OID, TYPE_NAMES
from pgoutput_construct.wire.messages import UNCHANGED, Binary, RelationColumn
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity

__all__ = ["RandomTable", "tables"]

_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)

_VALUES: Final[Mapping[str, tuple[SearchStrategy[Any], Callable[[Any], str], Callable[[Any], bytes]]]] = {
    "bool": (st.booleans(), lambda value: "t" if value else "f", lambda value: bytes([value])),
    "int4": (st.integers(-(2**31), 2**31 - 1), str, struct.Struct(">i").pack),
    "int8": (st.integers(-(2**63), 2**63 - 1), str, struct.Struct(">q").pack),
    "bytea": (st.binary(max_size=8), lambda value: "\\x" + value.hex(), bytes),
    "text": (_TEXT, str, str.encode),
}
"""By type: a strategy of values, and functions to text and to binary format."""
_TOASTED = ("bytea", "text")
"""The types whose values may be stored out of line, so that an update need not send them."""


@dataclass(frozen=True)
class RandomTable:
    """A table as one Relation describes it."""

    oid: int
    namespace: str
    name: str
    replica_identity: RelationReplicaIdentity
    types: tuple[str, ...]
    """Type of each column by name; ``custom`` for one that a Type message names."""
    key: frozenset[int]
    """The columns of its replica identity, by position."""

    @property
    def full(self) -> bool:
        """Whether old rows are sent in full."""
        return self.replica_identity == RelationReplicaIdentity.FULL

    @property
    def custom_oid(self) -> int:
        """OID of its own type."""
        return self.oid + 1

    @property
    def columns(self) -> tuple[RelationColumn, ...]:
        """The columns as the Relation describes them."""
        key = int(RelationColumnFlags.KEY)
        oids = [self.custom_oid if name == "custom" else TYPE_NAMES[name].oid for name in self.types]
        return tuple(
            RelationColumn(flags=key * (at in self.key), name=f"column {at}", type_oid=oid, type_modifier=-1)
            for at, oid in enumerate(oids)
        )

    @lru_cache(maxsize=1000)  # noqa: B019 - tables are few, and building strategies is what takes the time
    def row(self, binary: bool, updated: bool = False) -> SearchStrategy[tuple[Any, ...]]:
        """Return the rows of this table; ``updated`` rows may omit TOASTed values."""
        return st.tuples(*(self._value(at, binary, updated) for at in range(len(self.types))))

    @lru_cache(maxsize=1000)  # noqa: B019 - as above
    def old(self, binary: bool) -> SearchStrategy[tuple[Any, ...]]:
        """Return old rows: the key columns, or full rows if the replica identity is full."""
        if self.full:
            return self.row(binary)
        return st.tuples(*(self._value(at, binary) if at in self.key else st.none() for at in range(len(self.types))))

    def _value(self, at: int, binary: bool, updated: bool = False) -> SearchStrategy[Any]:
        values, as_text, as_bytes = _VALUES.get(self.types[at], _VALUES["text"])
        # A type without a send function is sent as text even with the option binary.
        if binary and self.types[at] != "custom":
            sent: SearchStrategy[Any] = values.map(lambda value: Binary(as_bytes(value)))
        else:
            sent = values.map(lambda value: as_text(value).encode())
        absent = [st.none()] * (self.full or at not in self.key)
        return st.one_of(sent, *absent, *([st.just(UNCHANGED)] * (updated and self.types[at] in _TOASTED)))


@st.composite
def tables(draw: st.DrawFn, number: int) -> RandomTable:
    """Return tables for a number; their OIDs and names differ from those for other numbers."""
    types = draw(st.lists(st.sampled_from([*_VALUES, "custom"]), min_size=1, max_size=4))
    identity = draw(st.sampled_from(RelationReplicaIdentity))
    positions = range(len(types))
    some = draw(st.sets(st.sampled_from(positions), min_size=1))
    # PostgreSQL marks all columns under REPLICA IDENTITY FULL, and none under NOTHING.
    key = {RelationReplicaIdentity.FULL: positions, RelationReplicaIdentity.NOTHING: ()}.get(identity, some)
    return RandomTable(FIRST_USER_OID + 2 * number, "public", f"table {number}", identity, tuple(types), frozenset(key))
