"""A program that follows a slot, as one writes it with psycopg2: its replication cursor, and a parser by hand.

The parser knows protocol version 1 in text format, and the types of its table CONVERTERS; it trusts its input, and
raises ValueError for what Python's types cannot represent, such as a date ``infinity``.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import date, datetime, time
from decimal import Decimal
from struct import Struct
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg2  # type: ignore[import-untyped]
from psycopg2.extras import (  # type: ignore[import-untyped]
    LogicalReplicationConnection,
    StopReplication,
)

__all__ = ["HandwrittenParser", "ParsedChange", "consume"]

CONVERTERS: Final[Mapping[int, Callable[[str], Any]]] = {
    16: "t".__eq__,  # bool
    17: lambda text: bytes.fromhex(text[2:]),  # bytea
    **dict.fromkeys((20, 21, 23, 26), int),  # int8, int2, int4, oid
    **dict.fromkeys((114, 3802), json.loads),  # json, jsonb
    **dict.fromkeys((700, 701), float),  # float4, float8
    1082: date.fromisoformat,
    1083: time.fromisoformat,
    **dict.fromkeys((1114, 1184), datetime.fromisoformat),  # timestamp, timestamptz
    1700: Decimal,  # numeric
    2950: UUID,
}
"""What makes a Python value of a text, by the OID of the type; values of other types remain str."""

_SHORT: Final = Struct(">H").unpack_from
_INT: Final = Struct(">I").unpack_from
_LONG: Final = Struct(">Q").unpack_from
_COLUMN_END: Final = Struct(">Ii").unpack_from
_NULL, _TEXT, _KEY, _NEW = b"ntKN"


class ParsedChange(NamedTuple):
    """One change of one row; of a whole table for a truncate."""

    table: str
    op: str
    new: dict[str, Any] | None
    old: dict[str, Any] | None
    unchanged: tuple[str, ...]
    lsn: int


class ParsedTable(NamedTuple):
    """A table as its Relation message describes it."""

    name: str
    columns: list[tuple[str, Callable[[str], Any]]]
    keys: frozenset[str]


class HandwrittenParser:
    """Parses the messages of one connection."""

    def __init__(self, converters: Mapping[int, Callable[[str], Any]] = CONVERTERS) -> None:
        """Take what converts the texts of types, by their OIDs; others stay texts."""
        self._converters = converters
        self._tables: dict[int, ParsedTable] = {}

    def changes(self, data: bytes, lsn: int) -> Iterator[ParsedChange]:
        """Yield the changes of a message: none, one, or for a truncate one for each table.

        Args:
            data: The message.
            lsn: The LSN with which it was sent.
        """
        kind = data[:1]
        if kind == b"R":
            self._describe(data)
        elif kind == b"T":
            for at in range(6, len(data), 4):
                yield ParsedChange(self._tables[_INT(data, at)[0]].name, "truncate", None, None, (), lsn)
        elif kind in b"IUD":
            table = self._tables[_INT(data, 1)[0]]
            if kind == b"I":
                new, unchanged, _ = self._row(table, data, 6)
                yield ParsedChange(table.name, "insert", new, None, unchanged, lsn)
            elif kind == b"D":
                yield ParsedChange(table.name, "delete", None, self._old(table, data)[0], (), lsn)
            else:
                old, at = (None, 5) if data[5] == _NEW else self._old(table, data)
                new, unchanged, _ = self._row(table, data, at + 1)
                yield ParsedChange(table.name, "update", new, old, unchanged, lsn)

    def _old(self, table: ParsedTable, data: bytes) -> tuple[dict[str, Any], int]:
        row, _, at = self._row(table, data, 6)
        if data[5] == _KEY:
            row = {name: value for name, value in row.items() if name in table.keys}
        return row, at

    def _row(self, table: ParsedTable, data: bytes, at: int) -> tuple[dict[str, Any], tuple[str, ...], int]:
        row: dict[str, Any] = {}
        unchanged: tuple[str, ...] = ()
        at += 2
        for name, convert in table.columns:
            kind = data[at]
            if kind == _TEXT:
                start = at + 5
                at = start + _INT(data, at + 1)[0]
                row[name] = convert(data[start:at].decode())
            else:
                at += 1
                if kind == _NULL:
                    row[name] = None
                else:
                    unchanged += (name,)
        return row, unchanged, at

    def _describe(self, data: bytes) -> None:
        schema, name, _ = data[5:].split(b"\0", 2)
        at = 5 + len(schema) + 1 + len(name) + 1 + 1
        (count,) = _SHORT(data, at)
        at += 2
        columns, keys = [], []
        for _ in range(count):
            end = data.index(b"\0", at + 1)
            column = data[at + 1 : end].decode()
            if data[at] & 1:
                keys.append(column)
            type_oid, _ = _COLUMN_END(data, end + 1)
            columns.append((column, self._converters.get(type_oid, str)))
            at = end + 9
        full_name = f"{schema.decode()}.{name.decode()}"
        self._tables[_INT(data, 1)[0]] = ParsedTable(full_name, columns, frozenset(keys))


def consume(dsn: str, slot: str, publication: str, transactions: int, take: Callable[[Any], None]) -> None:
    """Pass each change of a slot on, and confirm each transaction, until there were enough.

    Args:
        dsn: The connection string.
        slot: The name of the slot.
        publication: The name of the publication.
        transactions: The number of transactions after which it ends.
        take: Called with each change.
    """
    parser, left = HandwrittenParser(), transactions

    def read(message: Any) -> None:
        nonlocal left
        data = message.payload
        if data[:1] == b"C":
            left -= 1
            message.cursor.send_feedback(flush_lsn=_LONG(data, 10)[0], force=left == 0)
            if left == 0:
                raise StopReplication
        for change in parser.changes(data, message.data_start):
            take(change)

    with closing(psycopg2.connect(dsn, connection_factory=LogicalReplicationConnection)) as connection:
        cursor = connection.cursor()
        options = {"proto_version": "1", "publication_names": publication}
        cursor.start_replication(slot_name=slot, options=options, decode=False)
        with suppress(StopReplication):
            cursor.consume_stream(read)
