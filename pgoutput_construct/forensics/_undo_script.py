"""The text of an undo: one transaction of SQL, which checks each row, or comments that say why there is none."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final

from pgoutput_construct.forensics._undo_steps import UndoStep, literal, printed
from pgoutput_construct.postgres.connection import SESSION_SETTINGS

__all__ = ["comments", "script"]

_BLOCK: Final = 500
"""Statements in one block of PL/pgSQL, which is compiled as a whole."""
_PRINTING: Final = ("datestyle", "intervalstyle", "extra_float_digits", "timezone", "bytea_output")
"""Settings on which the text of values depends."""

_FOREIGN_KEYS: Final = """\
DECLARE
    undo_tables oid[] := ARRAY[{tables}]::regclass[]::oid[];
    undo_key record;
    undo_rows bigint;
BEGIN
    -- Of partitions the foreign keys are those of the tables that they are part of.
    undo_tables := undo_tables || ARRAY(
        SELECT above.relid::oid FROM unnest(undo_tables) each, pg_catalog.pg_partition_ancestors(each) above);
    FOR undo_key IN
        SELECT c.conname, c.conrelid::regclass AS referring, c.confrelid::regclass AS referred,
            string_agg(format('r.%I = t.%I', r.attname, t.attname), ' AND ') AS matching,
            string_agg(format('t.%I IS NOT NULL', t.attname), ' AND ') AS given
        FROM pg_catalog.pg_constraint c, unnest(c.conkey, c.confkey) AS pair(t, r)
            JOIN pg_catalog.pg_attribute t ON t.attnum = pair.t
            JOIN pg_catalog.pg_attribute r ON r.attnum = pair.r
        WHERE c.contype = 'f' AND c.conparentid = 0 AND c.convalidated
            AND to_jsonb(c) ->> 'conperiod' IS DISTINCT FROM 'true'
            AND t.attrelid = c.conrelid AND r.attrelid = c.confrelid
            AND (c.conrelid = ANY (undo_tables) OR c.confrelid = ANY (undo_tables))
        GROUP BY c.oid, c.conname, c.conrelid, c.confrelid
    LOOP
        EXECUTE format('SELECT count(*) FROM %s t WHERE %s AND NOT EXISTS (SELECT FROM %s r WHERE %s)',
            undo_key.referring, undo_key.given, undo_key.referred, undo_key.matching) INTO undo_rows;
        IF undo_rows > 0 THEN
            RAISE EXCEPTION 'undo: % rows of % would violate the foreign key %',
                undo_rows, undo_key.referring, undo_key.conname
                USING ERRCODE = 'foreign_key_violation', HINT = 'Later rows depend on what is taken back.';
        END IF;
    END LOOP;
END"""


def comments(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines as comments of SQL."""
    yield from (f"-- {printed(line)}" for line in lines)


def script(
    heading: Iterable[str], steps: Sequence[UndoStep], tables: Sequence[str], *, with_triggers: bool
) -> Iterator[str]:
    """Yield the lines of a script.

    Args:
        heading: Comments that come first.
        steps: The statements, in the order in which they are executed.
        tables: The tables that they write to, as SQL names them.
        with_triggers: Whether triggers fire and foreign keys cascade; otherwise foreign keys are checked at the end.
    """
    yield from comments(heading)
    yield "SET client_encoding = 'UTF8';"
    yield "BEGIN;"
    for name in _PRINTING:
        yield f"SET LOCAL {name} = {literal(SESSION_SETTINGS[name].encode())};"
    if with_triggers:
        yield "SET CONSTRAINTS ALL DEFERRED;"
    else:
        yield "-- What triggers and cascades wrote is in the log, and is taken back with the rest: they must not fire."
        yield "SET LOCAL session_replication_role = replica;"
        yield f"SET LOCAL search_path = {SESSION_SETTINGS['search_path']};"
    for first in range(0, len(steps), _BLOCK):
        yield from _block(_checked(steps[first : first + _BLOCK]))
    if not with_triggers and tables:
        names = ", ".join(literal(name.encode()) for name in tables)
        yield from _block([_FOREIGN_KEYS.replace("{tables}", names)])
    yield "COMMIT;"


def _checked(steps: Iterable[UndoStep]) -> Iterator[str]:
    """Yield a block of statements, each of which must change one row."""
    # Columns of a table may be called as the variable is.
    yield "#variable_conflict use_column"
    yield "DECLARE"
    yield "    undo_rows bigint;"
    yield "BEGIN"
    for step in steps:
        problem = literal(f"undo: {step.about}: the row is not as this change left it".encode("utf-8", "replace"))
        yield f"    -- {printed(step.about)}"
        yield f"    {step.statement};"
        yield "    GET DIAGNOSTICS undo_rows = ROW_COUNT;"
        yield f"    IF undo_rows <> 1 THEN RAISE EXCEPTION USING MESSAGE = {problem}; END IF;"
    yield "END"


def _block(lines: Iterable[str]) -> Iterator[str]:
    """Yield a DO statement, quoted so that nothing in it ends it."""
    body = [*lines]
    quotes = (f"$undo{number or ''}$" for number in count())
    quote = next(each for each in quotes if not any(each in line for line in body))
    yield f"DO {quote}"
    yield from body
    yield f"{quote};"
