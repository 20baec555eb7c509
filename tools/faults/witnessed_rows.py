"""What triggers recorded of each row, compared with what ``blame`` says of it."""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.forensics import RowTouch, blame
from pgoutput_construct.stream.identifiers import qualified_name
from pgoutput_construct.wire.messages import Binary

if TYPE_CHECKING:
    import psycopg

__all__ = ["WitnessedRows"]

# Unlogged: FOR ALL TABLES does not publish it. The triggers also fire where session_replication_role is replica.
_SETUP: Final = """
    CREATE UNLOGGED TABLE witnessed (n serial, xid bigint, oid oid, op text, old text[], new text[], names text[]);
    CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        columns text[] := ARRAY(SELECT attname::text FROM pg_attribute
            WHERE attrelid = tg_relid AND attnum > 0 AND NOT attisdropped ORDER BY attnum);
        texts text := 'ARRAY(SELECT CASE WHEN num_nulls(v) = 0 THEN v END FROM unnest(ARRAY[';
        before text[];
        after text[];
    BEGIN
        SELECT texts || string_agg(format('CASE WHEN num_nulls(($1).%1$I) = 0 THEN concat(($1).%1$I) END', c), ', ')
            || ']::text[]) v)' FROM unnest(columns) c INTO texts;
        IF tg_op IN ('UPDATE', 'DELETE') THEN EXECUTE 'SELECT ' || texts USING old INTO before; END IF;
        IF tg_op IN ('UPDATE', 'INSERT') THEN EXECUTE 'SELECT ' || texts USING new INTO after; END IF;
        INSERT INTO public.witnessed (xid, oid, op, old, new, names) VALUES
            (mod(pg_current_xact_id()::text::numeric, 4294967296), tg_relid, lower(tg_op), before, after, columns);
        RETURN NULL;
    END $$;
    ALTER FUNCTION witness SET datestyle = 'ISO';
    ALTER FUNCTION witness SET intervalstyle = 'postgres';
    ALTER FUNCTION witness SET timezone = 'UTC';
    ALTER FUNCTION witness SET extra_float_digits = 3;
    ALTER FUNCTION witness SET bytea_output = 'hex';
    ALTER FUNCTION witness SET search_path = pg_catalog;
"""
_UNWATCHED: Final = """
    SELECT c.oid::bigint, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND c.oid >= 16384 AND n.nspname IN ('public', 'other')
    AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND tgname = 'zz_witness')
"""
_KEY: Final = """
    SELECT array_agg(a.attname::text ORDER BY array_position(i.indkey::int[], a.attnum::int))
    FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid AND i.indimmediate
        AND CASE c.relreplident WHEN 'i' THEN i.indisreplident WHEN 'd' THEN i.indisprimary ELSE false END
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) WHERE c.oid = %s
"""
_MOST: Final = 40
"""Rows that are compared."""


class _Touch(NamedTuple):
    xid: int
    op: str
    new: dict[str, str | None] | None


@dataclass(eq=False)
class _WitnessedRow:
    row: dict[str, str | None]
    rows: list[dict[str, str | None]] = field(default_factory=list)
    touches: list[_Touch] = field(default_factory=list)


@dataclass
class _Findings:
    compared: int = 0
    touches: int = 0
    untold: int = 0
    """Rows whose key has no text in the log: ``blame`` refuses them."""
    problems: list[str] = field(default_factory=list)


class WitnessedRows:
    """The rows of a database's tables, as triggers saw them change."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        """Create what records them."""
        self._connection = connection
        self._names: dict[int, str] = {}
        connection.execute(_SETUP.encode())

    def watch(self) -> None:
        """Watch tables that were created since."""
        for oid, schema, name in self._connection.execute(_UNWATCHED).fetchall():
            self._names[oid] = table = qualified_name(schema, name)
            call = f"ON {table} FOR EACH {{}} EXECUTE FUNCTION public.witness()"
            rows, whole = call.format("ROW"), call.format("STATEMENT")
            for trigger in (
                f"CREATE TRIGGER zz_witness AFTER INSERT OR UPDATE OR DELETE {rows}",
                f"CREATE TRIGGER zz_truncates AFTER TRUNCATE {whole}",
                f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER zz_witness, ENABLE ALWAYS TRIGGER zz_truncates",
            ):
                self._connection.execute(trigger.encode())

    def compare(self, log: Path, chance: random.Random) -> _Findings:
        """Compare some rows with what ``blame`` says of them."""
        found, opened = _Findings(), ChangeLog(log)
        tables = [(oid, name, key) for oid, name in self._names.items() for key in self._keys(oid)]
        for oid, name, key in tables:
            rows = self._rows(oid)
            keys = sorted({tuple(each[column] for column in key) for row in rows for each in row.rows}, key=str)
            for values in chance.sample(keys, min(len(keys), max(_MOST // len(tables), 2))):
                if None not in values:
                    self._compare(opened, name, dict(zip(key, values, strict=True)), rows, found)
        return found

    def _keys(self, oid: int) -> Iterator[Sequence[str]]:
        """Yield the columns by which rows of a table are looked for: of REPLICA IDENTITY FULL any one."""
        row = self._connection.execute(_KEY, [oid]).fetchone()
        if row is not None and row[0]:
            yield row[0]
            return
        query = "SELECT names FROM public.witnessed WHERE oid = %s ORDER BY n DESC LIMIT 1"
        latest = self._connection.execute(query, [oid]).fetchone()
        full = "SELECT FROM pg_class WHERE oid = %s AND relreplident = 'f'"
        if latest is not None and latest[0] and self._connection.execute(full, [oid]).fetchone() is not None:
            yield latest[0][:1]

    def _rows(self, oid: int) -> list[_WitnessedRow]:
        """Return all rows that a table had."""
        query = "SELECT xid, op, old, new, names FROM public.witnessed WHERE oid = %s ORDER BY n"
        rows, present = list[_WitnessedRow](), list[_WitnessedRow]()
        for xid, op, old, new, names in self._connection.execute(query, [oid]).fetchall():
            before, after = (None if each is None else dict(zip(names, each, strict=True)) for each in (old, new))
            if op == "truncate":
                for row in present:
                    row.touches.append(_Touch(xid, op, None))
                present = []
                continue
            row = _found(present, before) or _WitnessedRow(after or {})
            if before is None:
                rows.append(row)
            row.touches.append(_Touch(xid, op, after))
            if before is not None:
                present.remove(row)
            if after is not None:
                # Of equal rows, which nobody tells apart, the one changes first that has been so for longest.
                present.append(row)
                row.row = after
                row.rows.append(after)
        return rows

    def _compare(
        self, log: ChangeLog, table: str, key: dict[str, Any], rows: list[_WitnessedRow], found: _Findings
    ) -> None:
        expected = [
            touch for row in rows if any(key.items() <= each.items() for each in row.rows) for touch in row.touches
        ]
        try:
            touches = [each for each in blame(log, table, key) if each.op not in ("snapshot", "missing")]
        except PgoutputError as error:
            if "in binary format" not in str(error):
                raise
            found.untold += 1
            return
        # Those of the log, but for values in binary format that have no text here.
        known = {column.name for each in touches if each.relation for column in each.relation.columns}
        known -= {name for each in touches for name, value in (each.new or {}).items() if isinstance(value, Binary)}
        told = Counter(str((each.xid, each.op, _texts(each, known))) for each in touches)
        seen = Counter(str((each.xid, each.op, _some(each.new, known))) for each in expected)
        found.compared += 1
        found.touches += len(touches)
        if told != seen:
            lines = [f"    only told: {each}" for each in told - seen] + [
                f"    not told: {each}" for each in seen - told
            ]
            found.problems.append("\n".join([f"blame of {table} {key}:", *lines])[:5000])


def _found(present: Sequence[_WitnessedRow], before: dict[str, str | None] | None) -> _WitnessedRow | None:
    """Return the first row that is this one, as far as it had the columns: a generated one may be new."""
    for each in present if before is not None else ():
        if all(each.row.get(name, value) == value for name, value in (before or {}).items()):
            return each
    return None


def _texts(touch: RowTouch, names: Collection[str]) -> dict[str, str | None] | None:
    new = None if touch.new is None else {name: touch.new[name] for name in touch.new if name in names}
    texts = None if new is None else {name: None if each is None else each.decode() for name, each in new.items()}
    return _some(texts, names)


def _some(row: dict[str, str | None] | None, names: Collection[str]) -> dict[str, str | None] | None:
    return None if row is None else {name: row[name] for name in sorted(row) if name in names}
