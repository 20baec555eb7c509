"""A stream cut to some of its changes: the messages that a server would have sent, had there been no others.

A log has its messages in the order of the slot. Of that order what is retained is retained: the pieces of streamed
transactions alternate as they did, a transaction is prepared where it was, subtransactions are rolled back. What is
left without a change is left out: a segment of a stream, the abort of a subtransaction, a transaction. What describes
the tables is sent anew where the stream as it is now needs it, by the rules of ``stream.relations``.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.stream.bounds import CLOSES, OPENERS, effect_of, said
from pgoutput_construct.stream.relations import Description, RelationCache
from pgoutput_construct.stream.rows import tables_of
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.protocol import (
    CHANGES,
    RelationColumnFlags,
    RelationReplicaIdentity,
    StreamStartFirstSegment,
)

__all__ = ["CutEntry", "CutMessage", "StreamCut"]

_CONTENT: Final = (*CHANGES, m.Message)


@dataclass(frozen=True, slots=True)
class CutEntry:
    """A message of the log that may be retained."""

    seq: int
    lsn: Lsn
    message: Any
    transaction: int
    """The number of its transaction."""
    scope: int | None = None
    """The top-level xid of the stream that it is in; None outside of streams."""
    descriptions: Mapping[int, Description] = field(default_factory=dict)
    """What describes the rows of a change, by OID."""

    @property
    def is_content(self) -> bool:
        """Whether it is a change or a logical message, for which a transaction is retained."""
        return isinstance(self.message, _CONTENT)


@dataclass(frozen=True, slots=True)
class CutMessage:
    """A message of the stream that results."""

    lsn: Lsn
    message: m.PgoutputMessage
    in_stream: bool


@dataclass(frozen=True)
class StreamCut:
    """What is retained of a log, and what is left out of that."""

    entries: Sequence[CutEntry]
    """The messages in the order of the log: all that belongs to the transactions, but for descriptions."""
    without_columns: frozenset[tuple[int, str]] = frozenset()
    """Columns that are left out, by the OID of their table and name."""

    @property
    def transactions(self) -> list[int]:
        """The numbers of the transactions, in the order in which they begin."""
        return list(dict.fromkeys(entry.transaction for entry in self.entries))

    @property
    def changes(self) -> list[CutEntry]:
        """The changes and logical messages."""
        return [entry for entry in self.entries if entry.is_content]

    def only(self, transactions: Collection[int]) -> "StreamCut":
        """Return the same with some of the transactions."""
        chosen = frozenset(transactions)
        return replace(self, entries=[entry for entry in self.entries if entry.transaction in chosen]).tidied()

    def only_changes(self, seqs: Collection[int]) -> "StreamCut":
        """Return the same with some of the changes."""
        chosen = frozenset(seqs)
        return replace(
            self, entries=[entry for entry in self.entries if not entry.is_content or entry.seq in chosen]
        ).tidied()

    def columns(self) -> list[tuple[int, str]]:
        """Return the columns that can be left out: those that are no part of a key by which rows are told apart."""
        found: dict[tuple[int, str], bool] = {}
        for entry in self.entries:
            for oid, description in entry.descriptions.items():
                is_full = description.relation.replica_identity == RelationReplicaIdentity.FULL
                for column in description.relation.columns:
                    is_key = bool(column.flags & RelationColumnFlags.KEY) and not is_full
                    found[oid, column.name] = found.get((oid, column.name), False) or is_key
        return [column for column, is_key in found.items() if not is_key and column not in self.without_columns]

    def tidied(self) -> "StreamCut":
        """Return the same without pieces, aborts and transactions that have no change left."""
        filled = {entry.transaction for entry in self.entries if entry.is_content}
        pieces = [*_pieces(entry for entry in self.entries if entry.transaction in filled)]
        subxids = {
            (each.transaction, each.message.xid)
            for piece in pieces
            for each in piece
            if each.is_content and getattr(each.message, "xid", None) is not None
        }
        kept = [each for piece in pieces if not _is_left_out(piece, subxids) for each in piece]
        return replace(self, entries=_with_first_segments(kept))

    def messages(self) -> Iterator[CutMessage]:
        """Yield the messages of the stream."""
        relations = RelationCache()
        for entry in self.entries:
            for oid in tables_of(entry.message) if entry.descriptions else ():
                for message in self._describing(entry, oid, relations):
                    relations.update(message)
                    yield CutMessage(Lsn(0), message, entry.scope is not None)
            message = self._without_columns(entry)
            relations.update(message)
            yield CutMessage(entry.lsn, message, entry.scope is not None)

    def _describing(self, entry: CutEntry, oid: int, relations: RelationCache) -> Iterator[m.PgoutputMessage]:
        """Yield what describes a table, unless the stream has that already where the change is."""
        description = entry.descriptions[oid]
        xid = None if entry.scope is None else getattr(entry.message, "xid", None) or entry.scope
        columns = [each for each in description.relation.columns if (oid, each.name) not in self.without_columns]
        relation = replace(description.relation, xid=xid, columns=tuple(columns))
        used = {column.type_oid for column in columns}
        types = {key: replace(each, xid=xid) for key, each in description.types.items() if key in used}
        try:
            known = relations.description(oid)
        except ProtocolError:
            known = None
        same = known is not None and replace(known.relation, xid=xid) == relation
        if known is None or not same or {key: replace(each, xid=xid) for key, each in known.types.items()} != types:
            yield from types.values()
            yield relation

    def _without_columns(self, entry: CutEntry) -> Any:
        """Return a message without the values of columns that are left out."""
        if not self.without_columns or not entry.descriptions or hasattr(entry.message, "relation_oids"):
            return entry.message
        [(oid, description)] = entry.descriptions.items()
        kept = [(oid, column.name) not in self.without_columns for column in description.relation.columns]
        rows = {
            name: tuple(value for value, is_kept in zip(row, kept, strict=True) if is_kept)
            for name in ("old", "new")
            if (row := getattr(entry.message, name, None)) is not None
        }
        return replace(entry.message, **rows)


def _pieces(entries: Iterable[CutEntry]) -> Iterator[list[CutEntry]]:
    """Yield the messages from one that opens a piece to the one that closes it, and all others by themselves."""
    piece: list[CutEntry] = []
    for entry in entries:
        if type(entry.message) in OPENERS:
            piece = [entry]
        elif piece:
            piece.append(entry)
            if type(entry.message) in CLOSES:
                yield piece
                piece = []
        else:
            yield [entry]


def _is_left_out(piece: Sequence[CutEntry], subxids: Collection[tuple[int, int]]) -> bool:
    """Return whether a piece is a segment without a change, or the abort of a subtransaction that has none.

    Args:
        piece: The messages.
        subxids: The transactions, and in streams the subtransactions, that have changes, by number and xid.
    """
    first, effect = piece[0], effect_of(piece[0].message)
    if effect == "begin_segment":
        return not any(each.is_content for each in piece)
    if effect != "abort_streamed":
        return False
    subxid = said(first.message, "subxid")
    return bool(subxid != said(first.message, "xid")) and (first.transaction, subxid) not in subxids


def _with_first_segments(entries: Sequence[CutEntry]) -> list[CutEntry]:
    """Return messages in which the first segment of each stream says that it is the first."""
    begun, found = set[int](), list[CutEntry]()
    for entry in entries:
        if isinstance(entry.message, m.StreamStart):
            is_first = entry.transaction not in begun
            number = StreamStartFirstSegment.FIRST_SEGMENT if is_first else StreamStartFirstSegment.LATER_SEGMENT
            begun.add(entry.transaction)
            entry = replace(entry, message=replace(entry.message, first_segment=int(number)))  # noqa: PLW2901
        found.append(entry)
    return found
