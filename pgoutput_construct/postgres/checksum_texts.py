"""The canonical text of values in SQL (columnar/canonical.py), by the types of columns here and in Arrow."""

from typing import Final, NamedTuple

import pyarrow as pa
from psycopg import sql

__all__ = ["SourceColumn", "canonical"]

_PLAIN: Final = sql.SQL("CASE WHEN num_nulls({value}) = 0 THEN concat({value}) END")
"""What the output function says: a cast to text differs (bool, inet, char). A composite of NULLs IS NULL, yet none."""
_BITS: Final = sql.SQL("CASE WHEN {value} = 'NaN' THEN 'NaN' ELSE encode({send}({value}::{kind}), 'hex') END")
_DECIMAL: Final = sql.SQL(
    "CASE WHEN {value}::numeric <> 'NaN' AND abs({value}::numeric) < {limit} "
    "AND {value}::numeric = trunc({value}::numeric, {scale}) "
    "THEN {value}::numeric({precision}, {scale})::text ELSE concat({value}::numeric) END"
)
_BYTES: Final = sql.SQL("'\\x' || encode({send}({value}), 'hex')")
_UUID: Final = sql.SQL("'\\x' || replace({value}::text, '-', '')")
# Elements of one dimension that begin with 1, all of which Arrow's type holds; others have PostgreSQL's own text.
_LIST: Final = sql.SQL(
    "CASE WHEN array_ndims({value}) = 1 AND array_lower({value}, 1) = 1 {holds} THEN concat(ARRAY("
    "SELECT CASE WHEN e IS NOT NULL THEN {element} END FROM unnest({value}) WITH ORDINALITY u (e, n) ORDER BY n)) "
    "ELSE {plain} END"
)
_ALL_FINITE: Final = sql.SQL(
    "AND NOT EXISTS (SELECT FROM unnest({value}) e WHERE e::numeric = 'NaN' OR abs(e::numeric) >= {limit} "
    "OR e::numeric <> trunc(e::numeric, {scale}))"
)


class SourceColumn(NamedTuple):
    """A column of a table on the server."""

    name: str
    type_name: str
    """pg_type.typname; of a domain that of its base type."""
    element_name: str | None
    """That of the elements of an array."""
    arrow: pa.DataType
    """Its type in Arrow: what the log's reader makes of its values."""
    send: str | None = None
    """The function that makes the bytes of its values, of which the log's reader knows no text; None for others."""


def canonical(column: SourceColumn) -> sql.Composable:
    """Return an expression for the canonical text of a column, NULL for NULL."""
    value = sql.Identifier(column.name)
    if column.send is not None:
        return _BYTES.format(value=value, send=sql.Identifier("pg_catalog", column.send))
    plain = _PLAIN.format(value=value)
    if pa.types.is_list(column.arrow):
        return _list(value, plain, column.element_name or "", column.arrow.value_type)
    special = _special(value, column.type_name, column.arrow)
    # NULL::numeric <> 'NaN' is not true: what has no value must be asked for first.
    return plain if special is None else sql.SQL("CASE WHEN {} IS NOT NULL THEN {} END").format(value, special)


def _special(value: sql.Composable, type_name: str, arrow: pa.DataType) -> sql.Composable | None:
    """Return the text of a value that is not NULL, None where it is PostgreSQL's own."""
    if pa.types.is_floating(arrow):
        kind = "float4" if arrow.bit_width == 32 else "float8"
        return _BITS.format(value=value, send=sql.SQL(f"{kind}send"), kind=sql.SQL(kind))
    if pa.types.is_decimal(arrow):
        return _DECIMAL.format(value=value, **_decimal(arrow))
    if pa.types.is_binary(arrow) and type_name == "uuid":
        return _UUID.format(value=value)
    return None


def _list(value: sql.Composable, plain: sql.Composable, element: str, arrow: pa.DataType) -> sql.Composable:
    special = _special(sql.SQL("e"), element, arrow)
    if special is None:
        return plain
    holds = _ALL_FINITE.format(value=value, **_decimal(arrow)) if pa.types.is_decimal(arrow) else sql.SQL("")
    return _LIST.format(value=value, holds=holds, element=special, plain=plain)


def _decimal(arrow: pa.DataType) -> dict[str, sql.Composable]:
    numbers = {"precision": arrow.precision, "scale": arrow.scale, "limit": 10 ** (arrow.precision - arrow.scale)}
    return {name: sql.SQL(str(number)) for name, number in numbers.items()}
