"""Masks: what replaces values, so that a stream of production can be given away.

The mask ``token`` replaces the n-th distinct value of a kind by the n-th token of its type: 1, 2, 3 for numbers, text1,
text2 for text, days from 2000-01-01 for dates. Equal values get equal tokens and different ones different tokens, in
all columns of a kind, so keys, old rows and foreign keys remain consistent, and nothing of a value is left but which
others are equal to it. NULL and values that were not sent stay what they are. A type whose range is exceeded begins
again, so in a smallint or a varchar(1) different values may become equal.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from pgoutput_construct.changelog._facts.catalog_readings import CatalogType
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.pgtypes.loader import base_oid
from pgoutput_construct.stream.identifiers import full_name, split_column
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.messages import Binary, RelationColumn, TupleData
from pgoutput_construct.wire.types import bare

__all__ = ["MaskMethod", "MaskRule", "StreamMasks"]


class MaskMethod(StrEnum):
    """What a mask makes of a value."""

    TOKEN = "token"
    """The n-th distinct value becomes the n-th token."""
    PLAIN = "plain"
    """It stays as it is."""
    NULL = "null"
    TEXT = "text"
    """It becomes a constant."""


_EVERY: Final = "*"
_FORM: Final = "write token, plain, null, or text(VALUE)"
_TEXT: Final = re.compile(r"text\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class MaskRule:
    """The mask of a column, of all columns of a table, or of all columns."""

    table: str | None
    """The ``qualified_name`` of the table; None for all."""
    column: str | None
    """The name of the column; None for all."""
    method: MaskMethod
    constant: str = ""

    @classmethod
    def parse(cls, columns: str, mask: str) -> "MaskRule":
        """Parse a rule; raise PgoutputError for text that is none.

        Args:
            columns: ``*``, ``schema.table.*`` or ``schema.table.column``, as in SQL.
            mask: ``token``, ``plain``, ``null`` or ``text(VALUE)``.
        """
        table, column = None, None
        if columns.strip() != _EVERY:
            is_whole = columns.rstrip().endswith(f".{_EVERY}")
            table, column = split_column(columns.rstrip().removesuffix(_EVERY) + ("x" if is_whole else ""))
            column = None if is_whole else column
        if found := _TEXT.fullmatch(mask):
            return cls(table, column, MaskMethod.TEXT, found[1])
        if mask not in (MaskMethod.TOKEN, MaskMethod.PLAIN, MaskMethod.NULL):
            raise PgoutputError(f"{mask!r} is not a mask: {_FORM}")
        return cls(table, column, MaskMethod(mask))

    def applies(self, table: str, column: str) -> bool:
        """Return whether it is about a column of a table."""
        return self.table in (None, table) and self.column in (None, column)


_ANY_COLUMN: Final = MaskRule(None, None, MaskMethod.TOKEN)


@dataclass
class StreamMasks:
    """Masks the values of a stream, from its first message to its last."""

    rules: Sequence[MaskRule] = ()
    """Of those that are about a column the last one decides; without one, its values become tokens."""
    types: Collection[CatalogType] = ()
    """The enums and composite types of the log's tables."""
    _tokens: defaultdict[str, dict[bytes, int]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def leaves_names(self) -> bool:
        """Whether what is of no column stays as it is: if that is the rule of all columns."""
        of_all = [rule.method for rule in self.rules if rule.table is None and rule.column is None]
        return of_all[-1:] == [MaskMethod.PLAIN]

    def row(self, values: TupleData, description: Description) -> TupleData:
        """Return a tuple with masked values."""
        relation = description.relation
        table = full_name(relation)
        return tuple(
            self._value(bare(value), column, self._rule(table, column.name), description)
            for value, column in zip(bare(values), relation.columns, strict=True)
        )

    def name(self, kind: str, name: str) -> str:
        """Return the token of a name, such as that of an origin."""
        return name if self.leaves_names else f"{kind}{self._number(kind, name.encode('utf-8', 'surrogateescape'))}"

    def content(self, content: bytes) -> bytes:
        """Return the content of a logical message, masked."""
        return content if self.leaves_names else b"message%d" % self._number("message", content)

    def _rule(self, table: str, column: str) -> MaskRule:
        return next((rule for rule in reversed(self.rules) if rule.applies(table, column)), _ANY_COLUMN)

    def _value(self, value: Any, column: RelationColumn, rule: MaskRule, description: Description) -> Any:
        if not isinstance(value, bytes) or rule.method is MaskMethod.PLAIN:
            return value
        if rule.method is MaskMethod.NULL:
            return None
        if rule.method is MaskMethod.TEXT:
            return rule.constant.encode("utf-8", "surrogateescape")
        return self._token(value, column, description).encode("utf-8", "surrogateescape")

    def _token(self, value: bytes, column: RelationColumn, description: Description) -> str:
        oid = base_oid(column.type_oid, description.types)
        builtin = BUILTIN_TYPES.get(oid)
        if builtin is None:
            declared = description.types.get(column.type_oid)
            is_array = declared is not None and declared.name.startswith("_")  # makeArrayTypeName()
            return "{}" if is_array else self._of_user_type(column.type_oid, value)
        if builtin.element_oid:
            return self._of_array(value, builtin.element_oid, column.type_modifier)
        kind = _KINDS.get(builtin.name)
        if kind is None:
            return _CONSTANTS.get(builtin.name, "")
        key = bytes(value) if not isinstance(value, Binary) else b"\0" + value
        return _TOKENS[kind](self._number(kind, key), builtin.name, column.type_modifier)

    def _number(self, kind: str, value: bytes) -> int:
        known = self._tokens[kind]
        return known.setdefault(value, len(known) + 1)

    def _of_array(self, value: bytes, element_oid: int, modifier: int) -> str:
        element = BUILTIN_TYPES[element_oid].name
        kind = _KINDS.get(element)
        if kind is None or kind == "json":
            return "{}"
        token = _TOKENS[kind](self._number(f"{kind}[]", bytes(value)), element, modifier)
        return '{"' + token.replace("\\", "\\\\").replace('"', '\\"') + '"}'

    def _of_user_type(self, oid: int, value: bytes) -> str:
        """Return a label of an enum, a row of NULLs, or text: of other types the log does not say what they accept."""
        known: Mapping[int, CatalogType] = {each.oid: each for each in self.types}
        found = known.get(oid)
        if found is None:
            return f"text{self._number('text', bytes(value))}"
        if found.labels:
            labels = [found.labels[key] for key in sorted(found.labels)]
            return labels[(self._number(f"enum {oid}", bytes(value)) - 1) % len(labels)]
        return f"({',' * (len(found.attributes) - 1)})"


_BASE: Final = datetime(2000, 1, 1, tzinfo=UTC)
_DAYS: Final = 365_000
_HEADER: Final = 4
"""VARHDRSZ: what the modifiers of types with a length have in addition to it."""
_INTEGERS: Final = {"int2": 2**15 - 1, "int4": 2**31 - 1, "oid": 2**32 - 1, "xid": 2**32 - 1, "cid": 2**32 - 1}
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def _number_token(number: int, name: str, modifier: int) -> str:
    if name == "numeric" and modifier >= _HEADER:
        precision, scale = (modifier - _HEADER) >> 16, (modifier - _HEADER) & 0x7FF
        scale = (scale ^ 1024) - 1024  # 11 bits, signed
        digits = max(precision - scale, 0)
        whole = number % 10**digits if digits else 0
        return f"{whole}.{'0' * scale}" if scale > 0 else str(whole // 10**-scale * 10**-scale)
    return str((number - 1) % _INTEGERS.get(name, 2**63 - 1) + 1)


def _text_token(number: int, name: str, modifier: int) -> str:
    limit = 1 if name == "char" else modifier - _HEADER if name in ("varchar", "bpchar") and modifier >= _HEADER else 63
    text = f"text{number}"
    if len(text) > limit:
        text = ""
        while len(text) < limit:
            number, digit = divmod(number, len(_DIGITS))
            text = _DIGITS[digit] + text
    return text.ljust(limit) if name == "bpchar" and modifier >= _HEADER else text


def _time_token(number: int, name: str, modifier: int) -> str:
    if name == "date":
        return f"{_BASE + timedelta(days=number % _DAYS):%Y-%m-%d}"
    shown = f"{_BASE + timedelta(seconds=number):%Y-%m-%d %H:%M:%S}"
    return {"timestamptz": f"{shown}+00", "time": shown[11:], "timetz": f"{shown[11:]}+00", "interval": shown[11:]}.get(
        name, shown
    )


def _address_token(number: int, name: str, modifier: int) -> str:
    parts = [number >> shift & 0xFF for shift in (16, 8, 0)]
    if name.startswith("macaddr"):
        pairs = [0] * (5 if name == "macaddr8" else 3) + parts
        return ":".join(f"{part:02x}" for part in pairs)
    return f"10.{'.'.join(map(str, parts))}{'/32' if name == 'cidr' else ''}"


def _bit_token(number: int, name: str, modifier: int) -> str:
    length = modifier if modifier > 0 else 64
    return f"{number % 2**length:0{length}b}"


_TOKENS: Final[Mapping[str, Callable[[int, str, int], str]]] = {
    "number": _number_token,
    "text": _text_token,
    "time": _time_token,
    "address": _address_token,
    "bit": _bit_token,
    "bool": lambda number, name, modifier: "ft"[(number - 1) % 2],
    "bytes": lambda number, name, modifier: f"\\x{number:016x}",
    "uuid": lambda number, name, modifier: f"00000000-0000-4000-8000-{number:012x}",
    "json": lambda number, name, modifier: f'{{"masked": {number}}}',
    "lsn": lambda number, name, modifier: f"0/{number:X}",
    "lexeme": lambda number, name, modifier: f"'text{number}'",
    "xml": lambda number, name, modifier: f"<masked>{number}</masked>",
    "point": lambda number, name, modifier: f"({number},0)",
}
"""The n-th token of each kind, given n, the name of the type and its modifier."""

_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int2", "int4", "int8", "oid", "oid8", "xid", "xid8", "cid"), "number"),
    **dict.fromkeys(("numeric", "float4", "float8", "money"), "number"),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "char", "refcursor"), "text"),
    **dict.fromkeys(("date", "time", "timetz", "timestamp", "timestamptz", "interval"), "time"),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8"), "address"),
    **dict.fromkeys(("bit", "varbit"), "bit"),
    **dict.fromkeys(("json", "jsonb"), "json"),
    **dict.fromkeys(("tsvector", "tsquery"), "lexeme"),
    **{"bool": "bool", "bytea": "bytes", "uuid": "uuid", "pg_lsn": "lsn", "xml": "xml", "point": "point"},
}
"""The kind of the tokens of each built-in type; those of one kind have one token for equal texts."""

_CONSTANTS: Final[Mapping[str, str]] = {
    "lseg": "[(0,0),(0,0)]",
    "path": "((0,0))",
    "box": "(0,0),(0,0)",
    "polygon": "((0,0))",
    "line": "{1,0,0}",
    "circle": "<(0,0),1>",
    "tid": "(0,1)",
    "pg_snapshot": "1:1:",
    "txid_snapshot": "1:1:",
    "jsonpath": "$",
    **dict.fromkeys(("regproc", "regprocedure", "regoper", "regoperator", "regclass", "regtype"), "-"),
    **dict.fromkeys(("regrole", "regnamespace", "regconfig", "regdictionary", "regcollation", "regdatabase"), "-"),
    **dict.fromkeys(("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"), "empty"),
    **dict.fromkeys(("int4multirange", "int8multirange", "nummultirange"), "{}"),
    **dict.fromkeys(("tsmultirange", "tstzmultirange", "datemultirange"), "{}"),
}
"""What replaces values of the other types."""
