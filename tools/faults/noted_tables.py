"""Contents of tables as text from the server, recorded during a run and compared exactly with rows from Arrow."""

import math
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import psycopg
import pyarrow as pa
from psycopg import sql

from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.postgres import SESSION_SETTINGS, current_lsn
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire import Lsn

__all__ = ["Moment", "NotedTable", "list_elements", "mismatch", "note_tables", "sent_value", "stored_rows"]

Row = tuple[Any, ...]
_SHOWN: Final = 3
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_LONG: Final = 160

_PUBLISHED: Final = """
    SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, p.attnames::text[], p.rowfilter,
           (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attname = ANY (p.attnames) AND {sent}),
           (SELECT array_agg(a.attnum::int ORDER BY a.attnum) FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attname = ANY (p.attnames) AND {sent}),
           (SELECT array_agg(format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum) FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attname = ANY (p.attnames) AND {sent})
    FROM pg_publication_tables p JOIN pg_namespace n ON n.nspname = p.schemaname
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
    WHERE p.pubname = %s
""".format(sent="(a.attgenerated = '' OR current_setting('server_version_num')::int >= 180000)")
"""The published columns; servers before 18 list generated columns, too, though they do not send them."""


@dataclass(frozen=True)
class NotedTable:
    """The published contents of a table."""

    oid: int
    name: str
    """``schema.table``, as SQL writes it."""
    columns: Mapping[str, int]
    """The published columns, in their order, and their numbers, which renaming does not change."""
    types: Mapping[str, str]
    """Their types, as SQL writes them."""
    rows: tuple[tuple[str | None, ...], ...]
    """The rows that pass the filter: PostgreSQL's texts."""


@dataclass(frozen=True)
class Moment:
    """All published tables at a time when nothing was being committed."""

    lsn: Lsn
    """All commits included have LSNs before this."""
    time: datetime
    """By the server's clock, after those commits, and before all others."""
    tables: Mapping[int, NotedTable]
    """By their OIDs."""
    xmax: int = 0
    """What was committed of transactions before this is in the tables, but for"""
    xip: frozenset[int] = frozenset()
    """those that were open."""

    def has_all_of(self, snapshot: Snapshot) -> bool:
        """Return whether all that a snapshot contains was committed by then."""
        open_columns = {xid for xid in self.xip if xid < snapshot.xmax}
        return self.lsn >= snapshot.lsn and self.xmax >= snapshot.xmax and open_columns <= {*snapshot.xip}


def note_tables(connection: "psycopg.Connection[Any]", publication: str) -> Moment:
    """Record the published contents now; the caller ensures that nobody writes meanwhile."""
    for name, value in SESSION_SETTINGS.items():
        connection.execute("SELECT set_config(%s, %s, false)", [name, value])
    tables = {}
    for row in connection.execute(_PUBLISHED.encode(), [publication]).fetchall():
        oid, schema, name, kind, _, where, columns, numbers, types = row
        rows = tuple(_rows(connection, sql.Identifier(schema, name), columns or [], where, is_root=kind == "p"))
        numbered = dict(zip(columns or [], numbers or [], strict=True))
        typed = dict(zip(columns or [], types or [], strict=True))
        tables[oid] = NotedTable(oid, qualified_name(schema, name), numbered, typed, rows)
    row = connection.execute("SELECT clock_timestamp(), pg_current_snapshot()::text").fetchone()
    assert row is not None
    _, xmax, open_columns = row[1].split(":")
    return Moment(
        current_lsn(connection), row[0], tables, int(xmax), frozenset(map(int, filter(None, open_columns.split(","))))
    )


def _rows(
    connection: "psycopg.Connection[Any]",
    table: sql.Composable,
    columns: Sequence[str],
    where: str | None,
    is_root: bool,
) -> Iterator[tuple[str | None, ...]]:
    source = sql.SQL("FROM {}{} WHERE {}").format(
        sql.SQL("" if is_root else "ONLY "),
        table,
        sql.SQL(where or "true"),
    )
    if not columns:
        row = connection.execute(sql.SQL("SELECT count(*) ") + source).fetchone()
        yield from [()] * (row[0] if row else 0)
        return
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    with connection.cursor().copy(sql.SQL("COPY (SELECT {} {}) TO STDOUT").format(names, source)) as copy:
        for row in copy.rows():
            yield tuple(row)


def mismatch(
    noted: NotedTable,
    found: pa.Table,
    names: Mapping[str, str] | None = None,
    *,
    skipped: Sequence[str] = (),
    untyped: str = "_untyped",
) -> str:
    """Return how rows differ from the recorded ones; empty if they do not.

    ``names`` are what noted columns are called in ``found``, None for all of them by their own names; rows of the two
    are compared in these columns. ``skipped`` are columns of ``found`` that are not the table's own, ``untyped`` the
    one that has values which the types of columns cannot hold.
    """
    own = [name for name in found.column_names if name not in skipped]
    if names is None:
        if own != list(noted.columns):
            return f"columns {_short(own)} instead of {_short(list(noted.columns))}"
        names = {name: name for name in own}
    if not names:
        same = len(noted.rows) == found.num_rows
        return "" if same else f"{found.num_rows} rows instead of {len(noted.rows)}"
    order = {name: place for place, name in enumerate(noted.columns)}
    places = [order[name] for name in names]
    kinds = [found.schema.field(name).type for name in names.values()]
    source = Counter(
        tuple(sent_value(row[place], kind) for place, kind in zip(places, kinds, strict=True)) for row in noted.rows
    )
    stored = Counter(stored_rows(found, list(names.values()), untyped))
    more, less = stored - source, source - stored
    if not more and not less:
        return ""
    return "; ".join(
        f"{sum(rows.values())} rows {what}: {', '.join(_short(row) for row in list(rows)[:_SHOWN])}"
        for what, rows in (("too many", more), ("missing", less))
        if rows
    )


def _short(row: object) -> str:
    text = repr(row)
    return text if len(text) <= _LONG else f"{text[:_LONG]}... ({len(text)} characters)"


def sent_value(text: str | None, kind: pa.DataType) -> Any:
    """Return what a value of PostgreSQL's text is as one of an Arrow type, so that equal ones are equal texts.

    Floating-point numbers are their bits, since other programs write them otherwise; NaN is one value. A column that
    had another type, also in a table of its name, may have a wider one: digits after the point, or the hour.
    """
    if text is None:
        return None
    if pa.types.is_decimal(kind) and _NUMBER.fullmatch(text) and len(text.partition(".")[2]) < kind.scale:
        return f"{Decimal(text):.{kind.scale}f}"
    if pa.types.is_timestamp(kind) and _DAY.fullmatch(text):
        return f"{text} 00:00:00"
    if pa.types.is_floating(kind):
        return _bits(float(text), kind)
    if (
        pa.types.is_list(kind)
        and pa.types.is_floating(kind.value_type)
        and (elements := list_elements(text)) is not None
    ):
        return _listed(None if each is None else _bits(float(each), kind.value_type) for each in elements)
    return text


def stored_rows(table: pa.Table, columns: Sequence[str], untyped: str = "_untyped") -> Iterator[Row]:
    """Yield rows of a table that has ``untyped`` as ``sent_value`` gives those of the source."""
    texts_of_rows = table[untyped].to_pylist()
    kinds = {name: table.schema.field(name).type for name in columns}
    values = [_values(table[name], kind) for name, kind in kinds.items()]
    for texts, row in zip(texts_of_rows, zip(*values, strict=True), strict=True):
        known = {name: sent_value(text, kinds[name]) for name, text in texts or () if name in kinds}
        yield tuple(known.get(name, value) for name, value in zip(columns, row, strict=True))


def _values(column: pa.ChunkedArray, kind: pa.DataType) -> list[Any]:
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz))
    return [_text(value, kind) for value in column.to_pylist()]


def _text(value: Any, kind: pa.DataType) -> Any:  # noqa: PLR0911 - one for each type
    """Return a value as PostgreSQL writes it."""
    match value:
        case None:
            return None
        case bool():
            return "t" if value else "f"
        case float():
            return _bits(value, kind)
        case Decimal():
            return format(value, "f")
        case bytes():
            return "\\x" + value.hex()
        case datetime():
            fraction = f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
            zone = "+00" if kind.tz else ""
            return f"{value.year:04}-{value:%m-%d %H:%M:%S}{fraction}{zone}"
        case date():
            return f"{value.year:04}-{value:%m-%d}"
        case list():
            return _listed(_text(each, kind.value_type) for each in value)
        case _:
            return str(value)


def _bits(value: float, kind: pa.DataType) -> str:
    if math.isnan(value):
        return "NaN"
    return struct.pack(">d" if pa.types.is_float64(kind) else ">f", value).hex()


def _listed(elements: Iterable[str | None]) -> str:
    """Return elements as array_out() writes them."""
    return "{" + ",".join("NULL" if each is None else _quoted(each) for each in elements) + "}"


def _quoted(text: str) -> str:
    if text and text.lower() != "null" and not any(each in '"\\{},' or each in " \t\n\r\v\f" for each in text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def list_elements(text: str) -> list[str | None] | None:
    """Return the elements of a one-dimensional array of numbers; None for one of another shape."""
    if not text.startswith("{") or text.startswith("{{"):
        return None
    inside = text[1:-1]
    return [None if each == "NULL" else each for each in inside.split(",")] if inside else []
