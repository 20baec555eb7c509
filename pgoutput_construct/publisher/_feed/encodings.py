"""Values in the format that a client requested, and text in its encoding (client_encoding), as PostgreSQL has them.

What is served is UTF-8, as the capture asks for. A server converts all text on its way out: names, gids, values in text
format, and in binary format what the send function of a type writes with pq_sendtext(). The content of logical decoding
messages, and all other bytes, stay as they are. A subscriber asks for the encoding of its database.

Source: ``mbutils.c`` (pg_server_to_client()), ``encnames.c``, ``pqformat.c`` of PostgreSQL.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, BuiltinType
from pgoutput_construct.pgtypes.composites import label
from pgoutput_construct.pgtypes.loader import base_oid
from pgoutput_construct.pgtypes.type_registry import CODECS as VALUE_CODECS
from pgoutput_construct.pgtypes.type_registry import writer
from pgoutput_construct.pgtypes.value_codec import CODEC_ERRORS, Codec, split_items
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.stream.identifiers import full_name, quote_identifier
from pgoutput_construct.stream.relations import Description, RelationCache
from pgoutput_construct.wire import messages as m

__all__ = ["CODECS", "REFUSED", "UTF8", "ClientEncoding", "Formats", "StreamEncoder", "find_encoding"]

_Message = TypeVar("_Message")
_Convert = Callable[[bytes], bytes]
_Types = Mapping[int, m.Type]

CODECS: Final[Mapping[str, str]] = {
    **{f"LATIN{number}": f"iso8859-{part}" for number, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15, 16), 1)},
    **{f"ISO_8859_{part}": f"iso8859-{part}" for part in (5, 6, 7, 8)},
    **{f"WIN{page}": f"cp{page}" for page in (866, 874, *range(1250, 1259))},
    **{"KOI8R": "koi8-r", "KOI8U": "koi8-u", "EUC_CN": "gb2312"},
}
"""Python's codecs, by PostgreSQL's names of encodings: those that convert each character as PostgreSQL does."""

_UNCONVERTED: Final = ("UTF8", "SQL_ASCII")
"""A client that asks for these gets what is in the log."""
REFUSED: Final = (
    *("EUC_JP", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "MULE_INTERNAL"),
    *("SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004"),
)
"""Encodings for which Python has no codec, or one that converts some characters otherwise than PostgreSQL."""
_ALIASES: Final = {
    **{f"iso8859{part}": f"LATIN{n}" for n, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15, 16), 1)},
    **{f"windows{page}": f"WIN{page}" for page in (866, 874, *range(1250, 1259))},
    **{"unicode": "UTF8", "koi8": "KOI8R", "alt": "WIN866", "win": "WIN1251"},
    **dict.fromkeys(("abc", "tcvn", "tcvn5712", "vscii"), "WIN1258"),
    **dict.fromkeys(("mskanji", "shiftjis", "win932", "windows932"), "SJIS"),
    **{"win949": "UHC", "windows949": "UHC", "win936": "GBK", "windows936": "GBK", "win950": "BIG5"},
    "windows950": "BIG5",
}
"""Other names of encodings (pg_encname_tbl), as ``_plain`` writes them."""

_XML_DECLARATION: Final = re.compile(rb'<\?xml version="([^"]*)"(?: encoding="[^"]*")?( standalone="\w+")?\?>')
_SHORT: Final = struct.Struct("!H")
_VALUE: Final = 1
"""QI_VAL in ts_type.h: a lexeme in a tsquery, after its weights and whether it is a prefix."""
_PHRASE: Final = 4
"""OP_PHRASE: the operator that is followed by a distance."""


@dataclass(frozen=True)
class ClientEncoding:
    """An encoding that a client requested."""

    name: str
    """PostgreSQL's name, as SHOW client_encoding gives it."""
    codec: str = ""
    """Python's codec; empty: nothing is converted."""

    def encode(self, data: bytes) -> bytes:
        """Return UTF-8 text in this encoding; raise Refusal, as a server does, for what it has no character for."""
        if not self.codec or data.isascii():
            return data
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refusal("22021", f'invalid byte sequence for encoding "UTF8": {_hexadecimal(error)}') from error
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError as error:
            # report_untranslatable_char() shows the first character.
            shown = " ".join(f"0x{byte:02x}" for byte in text[error.start].encode())
            problem = f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in encoding'
            raise Refusal("22P05", f'{problem} "{self.name}"') from error

    def name_of(self, text: str) -> str:
        """Return a name whose bytes on the wire are in this encoding: messages write names as UTF-8."""
        if not self.codec or text.isascii():
            return text
        return self.encode(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def read(self, text: str) -> str:
        """Return text that a client sent in this encoding, and that was read as UTF-8; raise Refusal for no such."""
        if not self.codec or text.isascii():
            return text
        try:
            return text.encode("utf-8", "surrogateescape").decode(self.codec)
        except UnicodeDecodeError as error:
            problem = f'invalid byte sequence for encoding "{self.name}": {_hexadecimal(error)}'
            raise Refusal("22021", problem) from error

    def message(self, message: _Message) -> _Message:
        """Return a message with its names, and other strings, in this encoding."""
        if not self.codec or not is_dataclass(message) or isinstance(message, type):
            return message
        changed = {
            field.name: new
            for field in fields(message)
            if (new := self._converted(old := getattr(message, field.name))) is not old
        }
        return replace(message, **changed) if changed else message

    def _converted(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.name_of(value) if type(value) is str else value
        if isinstance(value, tuple) and value and is_dataclass(value[0]):
            return tuple(map(self.message, value))
        return value


UTF8: Final = ClientEncoding("UTF8")


def find_encoding(name: str) -> ClientEncoding:
    """Return the encoding that a client names; raise Refusal for an unknown one, or one that is not converted to."""
    plain = _plain(name)
    known = {_plain(each): each for each in (*_UNCONVERTED, *CODECS, *REFUSED)}
    found = known.get(plain) or _ALIASES.get(plain)
    if found is None:
        raise Refusal("22023", f'invalid value for parameter "client_encoding": "{name}"')
    if found in REFUSED:
        hint = "Subscribe from a database in UTF8, or set client_encoding to UTF8."
        raise Refusal("0A000", f"conversion between {found} and UTF8 is not supported", hint=hint)
    return ClientEncoding(found, CODECS.get(found, ""))


def _plain(name: str) -> str:
    """Return a name as pg_char_to_encoding() compares it: letters and digits, in lower case."""
    return "".join(c for c in name.lower() if c.isascii() and c.isalnum())


def _hexadecimal(error: UnicodeDecodeError) -> str:
    return " ".join(f"0x{byte:02x}" for byte in error.object[error.start : max(error.end, error.start + 1)])


_ROWS: Final[Mapping[type, tuple[str, ...]]] = {m.Insert: ("new",), m.Update: ("old", "new"), m.Delete: ("old",)}
"""Fields that hold rows."""


class _Converters:
    """What converts the values of tables' columns, as these are described now."""

    def __init__(
        self, relations: RelationCache, make: Callable[[m.Relation, m.RelationColumn, _Types], _Convert]
    ) -> None:
        self._relations, self._make = relations, make
        self._columns: dict[int, tuple[Description, list[_Convert]]] = {}

    def of(self, relation_oid: int) -> list[_Convert]:
        """Return those of a table; raise ProtocolError where nothing describes it."""
        described = self._relations.description(relation_oid)
        known, columns = self._columns.get(relation_oid, (None, []))
        if known is not described:
            types = self._relations.types
            columns = [self._make(described.relation, column, types) for column in described.relation.columns]
            self._columns[relation_oid] = described, columns
        return columns


class Formats:
    """Converts what one client is sent, in order, into the format that it requested."""

    def __init__(self, binary: bool) -> None:
        """Begin with nothing sent.

        Args:
            binary: The client requested binary format.
        """
        self._other: Any = bytes if binary else m.Binary
        self.relations = RelationCache()
        """What describes the rows of the message that comes next."""
        self._converters = _Converters(self.relations, _to_binary if binary else _to_text)

    def asked(self, message: m.PgoutputMessage) -> m.PgoutputMessage:
        """Return the next message as the client requested it.

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
        columns = self._converters.of(relation_oid)
        if len(columns) != len(row):
            problem = f"a row of {len(row)} values, of a table that has {len(columns)} columns"
            raise ProtocolError(f"relation OID {relation_oid}: {problem}")
        pairs = zip(row, columns, strict=True)
        return tuple(convert(value) if type(value) is self._other else value for value, convert in pairs)


def _to_text(relation: m.Relation, column: m.RelationColumn, types: _Types) -> _Convert:
    write = writer(column.type_oid, types)

    def convert(value: bytes) -> bytes:
        try:
            return write(value).encode()
        except CODEC_ERRORS as error:
            raise _no_text(relation, column, types) from error

    return convert


def _no_text(relation: m.Relation, column: m.RelationColumn, types: _Types) -> Refusal:
    title, kind = _title(relation, column), _type_name(column.type_oid, types)
    return Refusal(
        "0A000",
        f"{title}: a value of the type {kind} is served in binary format, and has no text here",
        hint="Ask for binary: binary 'true' (CREATE SUBSCRIPTION ... WITH (binary = true)), or capture as text.",
    )


def _title(relation: m.Relation, column: m.RelationColumn) -> str:
    return f"{full_name(relation)}.{quote_identifier(column.name)}"


def _type_name(oid: int, types: _Types) -> str:
    if oid in BUILTIN_TYPES:
        return BUILTIN_TYPES[oid].name
    return full_name(types[oid]) if oid in types else f"of OID {oid}"


def _to_binary(relation: m.Relation, column: m.RelationColumn, types: _Types) -> _Convert:
    builtin = BUILTIN_TYPES.get(base_oid(column.type_oid, types))
    codec = VALUE_CODECS.get(builtin.name) if builtin is not None else None
    return bytes if codec is None else lambda value: _binary(codec, value)


def _binary(codec: Codec, value: bytes) -> bytes:
    try:
        text = value.decode()
        data = codec.binary(text) if codec.binary is not None else None
        return value if data is None or codec.text(data) != text else m.Binary(data)
    except CODEC_ERRORS:
        return value


class StreamEncoder:
    """Converts what one client is sent, in order, into its encoding."""

    def __init__(self, encoding: ClientEncoding, relations: RelationCache) -> None:
        """Begin with nothing sent.

        Args:
            encoding: What the client requested.
            relations: What describes the rows of the message that comes next; who made it keeps it up to date.
        """
        self._encoding = encoding
        self._converters = _Converters(relations, self._column)

    def encoded(self, message: m.PgoutputMessage) -> m.PgoutputMessage:
        """Return the next message; raise Refusal for text that the encoding does not have."""
        if not self._encoding.codec:
            return message
        names = _ROWS.get(type(message))
        if names is None:
            return self._encoding.message(message)
        changed: Any = message
        rows = {name: self._row(changed.relation_oid, row) for name in names if (row := getattr(changed, name))}
        encoded: m.PgoutputMessage = replace(changed, **rows)
        return encoded

    def _row(self, relation_oid: int, row: m.TupleData) -> m.TupleData:
        if all(type(value) is not m.Binary and _is_ascii(value) for value in row):
            return row
        return tuple(self._value(relation_oid, at, value) for at, value in enumerate(row))

    def _value(self, relation_oid: int, at: int, value: Any) -> Any:
        if type(value) is m.Binary:
            return m.Binary(self._converters.of(relation_oid)[at](value))
        return self._encoding.encode(value) if isinstance(value, bytes) else value

    def _column(self, relation: m.Relation, column: m.RelationColumn, types: _Types) -> _Convert:
        builtin = BUILTIN_TYPES.get(base_oid(column.type_oid, types))
        if builtin is not None:
            return _converter(builtin, self._encoding)
        title, kind = _title(relation, column), _type_name(column.type_oid, types)

        def convert(value: bytes) -> bytes:
            # enum_send() and citextsend() send text alone. Of other types nobody knows where text is in the value.
            if value.isascii():
                return value
            try:
                label(value)
            except CODEC_ERRORS as error:
                problem = f"{title}: a value of the type {kind} in binary format cannot be converted to"
                hint = "Ask for text: binary 'false' (CREATE SUBSCRIPTION ... WITH (binary = false))."
                raise Refusal("0A000", f'{problem} encoding "{self._encoding.name}"', hint=hint) from error
            return self._encoding.encode(value)

        return convert


def _is_ascii(value: Any) -> bool:
    return not isinstance(value, bytes) or value.isascii()


def _converter(builtin: BuiltinType, encoding: ClientEncoding) -> _Convert:
    """Return what converts the text in values of a built-in type in binary format."""
    element = BUILTIN_TYPES.get(builtin.element_oid, builtin)
    convert = _CONVERTERS.get(element.sends_text)
    if convert is None:
        return bytes
    one = partial(convert, encoding)
    return one if element is builtin else partial(_array, one)


def _array(convert: _Convert, value: bytes) -> bytes:
    """Convert the elements of an array (array_send()): they follow the bounds of its dimensions."""
    (dimensions,) = struct.unpack_from("!i", value)
    start = 12 + 8 * dimensions
    items = (None if item is None else convert(item) for item in split_items(value[start:]))
    sized = (struct.pack("!i", -1) if item is None else struct.pack("!i", len(item)) + item for item in items)
    return value[:start] + b"".join(sized)


def _xml(encoding: ClientEncoding, value: bytes) -> bytes:
    """Convert a document, which declares an encoding other than UTF-8 (print_xml_decl()): xml_recv() goes by it."""
    found = _XML_DECLARATION.match(value)
    version, standalone = (found[1], found[2] or b"") if found else (b"1.0", b"")
    declared = b'<?xml version="%s" encoding="%s"%s?>' % (version, encoding.name.encode(), standalone)
    return declared + encoding.encode(value[found.end() :] if found else value)


def _versioned(encoding: ClientEncoding, value: bytes) -> bytes:
    return value[:1] + encoding.encode(value[1:])


def _lexemes(encoding: ClientEncoding, value: bytes) -> Iterator[bytes]:
    """Convert the lexemes of a tsvector: each ends with a zero byte, the number of its positions, and these."""
    at = 4
    yield value[:at]
    while at < len(value):
        end = value.index(b"\0", at)
        (count,) = _SHORT.unpack_from(value, end + 1)
        yield encoding.encode(value[at:end])
        at = end + 1 + _SHORT.size * (1 + count)
        yield value[end:at]


def _operands(encoding: ClientEncoding, value: bytes) -> Iterator[bytes]:
    """Convert the lexemes of a tsquery, which stand between operators."""
    at = 4
    yield value[:at]
    while at < len(value):
        if value[at] == _VALUE:
            end = value.index(b"\0", at + 3)
            yield value[at : at + 3] + encoding.encode(value[at + 3 : end]) + b"\0"
            at = end + 1
        else:
            size = 4 if value[at + 1] == _PHRASE else 2
            yield value[at : at + size]
            at += size


_CONVERTERS: Final[Mapping[str, Callable[[ClientEncoding, bytes], bytes]]] = {
    "plain": ClientEncoding.encode,
    "versioned": _versioned,
    "xml": _xml,
    "lexemes": lambda encoding, value: b"".join(_lexemes(encoding, value)),
    "operands": lambda encoding, value: b"".join(_operands(encoding, value)),
}
"""What converts values in binary format, by ``sends_text`` of their types."""
