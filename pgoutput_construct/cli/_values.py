"""Values of rows for people and JSON: PostgreSQL's text, and JSON numbers if they are exact."""

from collections.abc import Mapping
from typing import Any, Final

from pgoutput_construct.cli._printing import printable
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.pgtypes.loader import base_oid, formatted, kind_text
from pgoutput_construct.pgtypes.numbers import Numeral, json_value
from pgoutput_construct.pgtypes.type_registry import writer
from pgoutput_construct.pgtypes.value_codec import CODEC_ERRORS, hexadecimal
from pgoutput_construct.wire.messages import Binary, Relation, Type
from pgoutput_construct.wire.types import Marker

__all__ = ["COLORS", "Values", "quoted", "told"]

COLORS: Final = {"insert": "green", "snapshot": "green", "update": "yellow"}
"""The colors of operations; all others are red."""

_LONGEST: Final = 120


class Values:
    """Converts received values to JSON values: None, bool, int, finite float, else PostgreSQL's text.

    A value in binary format is first converted to the text that the server's output function writes, so both formats of
    a row print the same. Values whose text only the server knows (``money``, which depends on its locale, ``regclass``
    and the like, which depend on its catalog) are printed as ``\\x`` and hexadecimal digits.
    """

    def __init__(self) -> None:
        self.types: dict[int, Type] = {}
        """User-defined types by OID; the reader of the messages adds them."""

    def plain(self, value: Any, type_oid: int) -> Any:
        """Return the JSON value of a tuple's value; UNCHANGED stays UNCHANGED, and an unknown kind has its name."""
        if not isinstance(value, bytes):
            return value
        plain = formatted(value)
        if plain is None:
            return kind_text(value)
        builtin = BUILTIN_TYPES.get(base_oid(type_oid, self.types))
        kind = builtin.arrow if builtin is not None else "string"
        if isinstance(plain, Binary):
            return self._from_binary(plain, type_oid, kind)
        return json_value(plain.decode("utf-8", "surrogateescape"), kind)

    def row(self, row: Mapping[str, Any] | None, relation: Relation | None) -> dict[str, Any] | None:
        """Return a row's values by column, as ``plain`` returns each; None for no row.

        Args:
            row: The values by column.
            relation: The description of the table; None if it is not known.
        """
        if row is None:
            return None
        oids = {column.name: column.type_oid for column in relation.columns} if relation else {}
        return {name: self.plain(value, oids.get(name, 0)) for name, value in row.items()}

    def _from_binary(self, value: Binary, type_oid: int, kind: str) -> Any:
        try:
            return json_value(writer(type_oid, self.types)(value), kind)
        except CODEC_ERRORS:
            return hexadecimal(value)


def quoted(value: Any, everything: bool = False) -> str:
    """Return a JSON value as SQL-like text: NULL, numbers, quoted text; long text is cut unless ``everything``."""
    if isinstance(value, Marker):
        return f"({kind_text(value)})"
    if value is None:
        return "NULL"
    if isinstance(value, Numeral) or not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else str(value)
    rest = "" if everything or len(value) <= _LONGEST else f"… ({len(value):,} characters)"
    shown = value[:_LONGEST] if rest else value
    escaped = printable(shown).replace("'", "''")
    return f"'{escaped}'{rest}"


def told(details: Mapping[str, Any], everything: bool = False) -> str:
    """Return the details of an event as text; long lists are replaced by their length unless ``everything``."""
    pairs = ((key, str(value), value) for key, value in details.items())
    return ", ".join(f"{key}={text if everything else _short(text, value)}" for key, text, value in pairs)


def _short(text: str, value: Any) -> str:
    return text if len(text) <= _LONGEST or not isinstance(value, list | dict) else f"({len(value):,} items)"
