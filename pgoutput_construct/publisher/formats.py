"""Values in the format that a client asked for, whatever the format is in which they were captured.

A text client gets of each value in binary format the text that PostgreSQL's output function writes, under the settings
that a subscription asks for and in UTC. A binary client gets text in binary format where that is sure to be what the
send function writes: of types that are built in, if their text comes out of it again. Other text stays text, as that of
types without a send function does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.pgtypes.codec import CODEC_ERRORS, Codec
from pgoutput_construct.pgtypes.loader import base_oid
from pgoutput_construct.pgtypes.registry import CODECS, writer
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.stream.identifiers import full_name, quote_identifier
from pgoutput_construct.stream.relations import Description, RelationCache
from pgoutput_construct.wire import messages as m

__all__ = ["Formats"]

_Convert = Callable[[bytes], bytes]
_Types = Mapping[int, m.Type]

_ROWS: Final[Mapping[type, tuple[str, ...]]] = {m.Insert: ("new",), m.Update: ("old", "new"), m.Delete: ("old",)}
"""Fields that hold rows."""


class Formats:
    """Converts what one client is sent, in order, into the format that it asked for."""

    def __init__(self, binary: bool) -> None:
        """Begin with nothing sent.

        Args:
            binary: The client asked for binary format.
        """
        self._other: Any = bytes if binary else m.Binary
        self._make = _to_binary if binary else _to_text
        self.relations = RelationCache()
        """What describes the rows of the message that comes next."""
        self._columns: dict[int, tuple[Description, list[_Convert]]] = {}

    def asked(self, message: m.PgoutputMessage) -> m.PgoutputMessage:
        """Return the next message as the client asked for it.

        Raises Refusal for a value that has no text here, ProtocolError for one that nothing describes.
        """
        fields = _ROWS.get(type(message))
        if fields is None:
            self.relations.update(message)
            return message
        changed: Any = message
        rows = {name: row for name in fields if (row := getattr(changed, name)) and self._other in map(type, row)}
        if not rows:
            return message
        try:
            converted = {name: self._row(changed.relation_oid, row) for name, row in rows.items()}
        except ProtocolError:
            if self._other is m.Binary:
                raise
            return message  # a client takes text for any value, and an undescribed row is sent on purpose
        asked: m.PgoutputMessage = replace(changed, **converted)
        return asked

    def _row(self, relation_oid: int, row: Sequence[Any]) -> m.TupleData:
        columns = self._of(relation_oid)
        if len(columns) != len(row):
            problem = f"a row of {len(row)} values, of a table that has {len(columns)} columns"
            raise ProtocolError(f"relation OID {relation_oid}: {problem}")
        pairs = zip(row, columns, strict=True)
        return tuple(convert(value) if type(value) is self._other else value for value, convert in pairs)

    def _of(self, relation_oid: int) -> list[_Convert]:
        described = self.relations.description(relation_oid)
        known, columns = self._columns.get(relation_oid, (None, []))
        if known is not described:
            types = self.relations.types
            columns = [self._make(described.relation, column, types) for column in described.relation.columns]
            self._columns[relation_oid] = described, columns
        return columns


def _to_text(relation: m.Relation, column: m.RelationColumn, types: _Types) -> _Convert:
    write = writer(column.type_oid, types)

    def convert(value: bytes) -> bytes:
        try:
            return write(value).encode()
        except CODEC_ERRORS as error:
            raise _no_text(relation, column, types) from error

    return convert


def _no_text(relation: m.Relation, column: m.RelationColumn, types: _Types) -> Refusal:
    title = f"{full_name(relation)}.{quote_identifier(column.name)}"
    kind = _type_name(column.type_oid, types)
    return Refusal(
        "0A000",
        f"{title}: a value of the type {kind} is served in binary format, and has no text here",
        hint="Ask for binary: binary 'true' (CREATE SUBSCRIPTION ... WITH (binary = true)), or capture as text.",
    )


def _type_name(oid: int, types: _Types) -> str:
    if oid in BUILTIN_TYPES:
        return BUILTIN_TYPES[oid].name
    return full_name(types[oid]) if oid in types else f"of OID {oid}"


def _to_binary(relation: m.Relation, column: m.RelationColumn, types: _Types) -> _Convert:
    builtin = BUILTIN_TYPES.get(base_oid(column.type_oid, types))
    codec = CODECS.get(builtin.name) if builtin is not None else None
    return bytes if codec is None else lambda value: _binary(codec, value)


def _binary(codec: Codec, value: bytes) -> bytes:
    try:
        text = value.decode()
        data = codec.binary(text) if codec.binary is not None else None
        return value if data is None or codec.text(data) != text else m.Binary(data)
    except CODEC_ERRORS:
        return value
