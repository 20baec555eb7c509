"""Finds the changes of some rows in a log, without parsing the others: by the bytes of their keys.

A key that changes is in both tuples of the message, so whoever looks for one key finds the next one, and the one
before. Segments are searched forward and backward until nothing new is found; mostly once.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.forensics._row_states import SentRows, sent_rows
from pgoutput_construct.forensics._table_changes import LoggedChange, Pattern, TableChanges
from pgoutput_construct.forensics._tracked_table import ColumnId, Row
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, FIRST_USER_OID
from pgoutput_construct.pgtypes.loader import base_oid
from pgoutput_construct.pgtypes.type_registry import CODECS
from pgoutput_construct.pgtypes.value_codec import CODEC_ERRORS
from pgoutput_construct.stream.identifiers import full_name, quote_identifier
from pgoutput_construct.wire import build
from pgoutput_construct.wire.messages import Binary, Insert

__all__ = ["RowKey", "RowSearch", "row_key"]

RowKey: TypeAlias = tuple[tuple[ColumnId, bytes], ...]
"""The columns that a row is looked for by, and their values as text; or Binary, where the log has no text."""

_MANY: Final = 16
"""Keys from which on all changes of a segment are parsed, instead of looking for the bytes of each key."""


def row_key(columns: Iterable[ColumnId], row: Row | None) -> RowKey | None:
    """Return the values that a row has in some columns; None if one of them is NULL or not known."""
    pairs = tuple((column, (row or {}).get(column)) for column in columns)
    known = tuple((column, value) for column, value in pairs if value is not None)
    return known if len(known) == len(pairs) else None


class RowSearch:
    """The changes of rows that have one of some keys at any time."""

    def __init__(self, changes: TableChanges, keys: Iterable[RowKey], *, are_given: bool = False) -> None:
        """Begin to look for rows.

        Args:
            changes: The changes of their table.
            keys: The keys; each has a value for each column.
            are_given: Whether a person gave them: then rows that cannot be compared with them are an error. Those of
                rows of the log are found in the format that these have.
        """
        self._changes, self._table = changes, changes.table
        self._keys: dict[RowKey, None] = dict.fromkeys(keys)
        """All keys that the rows had, in the order in which they were found."""
        given = self._keys if are_given else ()
        self._are_binary = {column: isinstance(value, Binary) for key in given for column, value in key}
        """The columns of the keys that were given, and whether they are in binary format."""
        self._identities = {tuple(column for column, _ in key) for key in self._keys} | self._table.identities()
        self._searched = dict.fromkeys(changes.segment_indexes, 0)
        """How many keys each segment was searched for."""
        self._forms = lru_cache(maxsize=None)(self._form)

    def seqs(self) -> set[int]:
        """Return the seqs of their changes, committed or not, and of copied rows and truncates.

        Raises:
            PgoutputError: A key is given as text, and rows have it in binary format whose text only the server knows.
        """
        found, segment_indexes = set[int](), self._changes.segment_indexes
        while any(count < len(self._keys) for count in self._searched.values()):
            for segment_index in segment_indexes:
                found.update(self._search(segment_index))
            segment_indexes = segment_indexes[::-1]
        return found

    def _search(self, segment_index: int) -> Iterator[int]:
        """Search a segment until it has no other key of these rows."""
        while self._searched[segment_index] < len(self._keys):
            keys = [*self._keys][self._searched[segment_index] :]
            self._searched[segment_index] = len(self._keys)
            patterns, wanted = self._patterns(segment_index, keys), frozenset(keys)
            for change in self._changes.candidates(segment_index, patterns):
                if self._is_found(change, wanted):
                    yield change.seq

    def _is_found(self, change: LoggedChange, keys: frozenset[RowKey]) -> bool:
        sent = sent_rows(self._table, change)
        if sent is None:
            return True
        had = {key for row in _whole_rows(sent) for key in self._keys_of(row, sent.shape.is_full)}
        self._check_formats(sent)
        if not had & keys:
            return False
        self._keys |= dict.fromkeys(sorted(had, key=str))
        return True

    def _check_formats(self, sent: SentRows) -> None:
        """Raise PgoutputError where a row cannot be compared with a key: only the server knows the text of one."""
        for row in _whole_rows(sent):
            for column, is_binary in self._are_binary.items():
                value = row.get(column)
                if value is not None and isinstance(value, Binary) != is_binary:
                    table = full_name(sent.shape.description.relation)
                    name = quote_identifier(sent.shape.names()[column])
                    raise PgoutputError(
                        f"{table}: values of {name} are in binary format in the log, and only the server knows their "
                        "text: give the bytes of a key as a Binary, in Python"
                        if isinstance(value, Binary)
                        else f"{table}: values of {name} are text in the log, and one in binary format cannot be "
                        "compared with them, since only the server knows its text"
                    )

    def _keys_of(self, row: Row, is_full: bool) -> Iterator[RowKey]:
        """Yield the keys of a row; if a value is NULL, as it may be under REPLICA IDENTITY FULL, all other values."""
        for columns in self._identities:
            key = row_key(columns, row)
            if key is not None:
                yield key
            elif is_full and all(column in row for column in columns):
                others = ((column, value) for column, value in row.items() if value is not None)
                yield tuple(sorted(others, key=str))

    def _patterns(self, segment_index: int, keys: Collection[RowKey]) -> list[Pattern] | None:
        """Return the bytes to look for; None if all changes are to be parsed."""
        if len(keys) > _MANY:
            return None
        is_binary, patterns = self._changes.is_binary(segment_index), list[Pattern]()
        for key in keys:
            forms = [self._forms(column, value, is_binary) for column, value in key]
            if not all(forms):
                return None
            patterns.append(forms)
        return patterns

    def _form(self, column: ColumnId, value: bytes, is_binary: bool) -> Collection[bytes]:
        """Return the bytes that a value may have on the wire; empty if only the server knows them."""
        if isinstance(value, Binary) and not is_binary:
            return ()
        found = {_on_wire(value)}
        for description in self._table.descriptions if is_binary else ():
            shape = self._table.shape(description)
            for each, described in zip(shape.columns, description.relation.columns, strict=True):
                if each == column:
                    data = _binary(value, base_oid(described.type_oid, description.types))
                    if data is None:
                        return ()
                    found.add(_on_wire(data))
        return found


def _whole_rows(sent: SentRows) -> Iterator[Row]:
    """Yield the old and the new row, the new one with those values of the old one that were not sent again."""
    if sent.old is not None:
        yield sent.old
    if sent.new is not None:
        old = sent.old or {}
        yield {**{column: old[column] for column in sent.unsent if column in old}, **sent.new}


_EMPTY: Final = len(build(Insert(None, FIRST_USER_OID, ())))
"""The length of an Insert without columns."""


def _on_wire(value: bytes) -> bytes:
    """Return a value as it stands in a tuple, with its format and length."""
    return build(Insert(None, FIRST_USER_OID, (value,)))[_EMPTY:]


def _binary(text: bytes, type_oid: int) -> Binary | None:
    """Return a value in binary format; None if only the server can convert it."""
    builtin = BUILTIN_TYPES.get(type_oid)
    codec = CODECS.get(builtin.name) if builtin is not None else None
    if codec is None or codec.binary is None:
        return None
    try:
        return Binary(codec.binary(text.decode("utf-8")))
    except CODEC_ERRORS:
        return None
