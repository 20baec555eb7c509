"""The steps of random transactions: statements with a few random numbers."""

import random
from collections.abc import Callable
from typing import Any

__all__ = ["NOTE_PREFIX", "NOTE_STEP", "STEPS", "STEPS_TO_KEEP", "TICKET_STEP", "Step"]

Cursor = Any
Step = Callable[[Cursor, random.Random], None]
"""Executes statements in the transaction that is open."""

_MESSAGE_PREFIX, NOTE_PREFIX = "faults", "faults-note"
"""The prefixes of transactional logical messages, and of those that belong to no transaction."""

_ROWS = (1, 1, 1, 1, 1, 2, 2, 2, 5, 5, 5, 20, 20, 50, 300, 1000)
"""How many rows a step changes: from about 300 on a transaction is above logical_decoding_work_mem, and streamed."""
_CHANGED_COLUMNS = ("third", "fourth")
_BODY = "(SELECT string_agg(md5(random()::text), '') FROM generate_series(1, %s))"
# Rows that another transaction holds are left to it: writers wait for each other where a lock is the point only.
_CHOSEN = """WITH chosen AS MATERIALIZED (
    SELECT id FROM {table} WHERE id >= (SELECT last_value * %s FROM marks)::bigint
    ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)
"""


def _insert(columns: str, values: str) -> Step:
    def step(cursor: Cursor, chance: random.Random) -> None:
        query = f"INSERT INTO {columns} SELECT nextval('marks'), nextval('marks') {values} FROM generate_series(1, %s)"
        cursor.execute(query, (chance.choice(_ROWS),))

    return step


def _update(table: str, values: str) -> Step:
    query = f"{_CHOSEN}UPDATE {{table}} SET mark = nextval('marks'){values} FROM chosen WHERE {{table}}.id = chosen.id"

    def step(cursor: Cursor, chance: random.Random) -> None:
        cursor.execute(query.format(table=table), (chance.random(), chance.choice(_ROWS)))

    return step


def _delete(table: str) -> Step:
    query = f"{_CHOSEN}DELETE FROM {{table}} USING chosen WHERE {{table}}.id = chosen.id"

    def step(cursor: Cursor, chance: random.Random) -> None:
        cursor.execute(query.format(table=table), (chance.random(), chance.choice(_ROWS)))

    return step


def _document(cursor: Cursor, chance: random.Random) -> None:
    query = (
        f"INSERT INTO document SELECT nextval('marks'), nextval('marks'), 'new', {_BODY} FROM generate_series(1, %s)"
    )
    cursor.execute(query, (chance.randint(70, 300), chance.randint(1, 5)))


def _body(table: str) -> Step:
    query = f"{_CHOSEN}UPDATE {{table}} SET mark = nextval('marks'), body = {_BODY} FROM chosen"

    def step(cursor: Cursor, chance: random.Random) -> None:
        arguments = (chance.random(), chance.randint(1, 3), chance.randint(70, 300))
        cursor.execute(f"{query.format(table=table)} WHERE {table}.id = chosen.id", arguments)

    return step


def _upsert(cursor: Cursor, chance: random.Random) -> None:
    cursor.execute(
        """INSERT INTO ledger SELECT coalesce((SELECT max(id) FROM ledger), 0) - g, nextval('marks'), g, 'upserted'
           FROM generate_series(-1, %s) g ON CONFLICT (id) DO UPDATE SET mark = excluded.mark""",
        (chance.randint(0, 3),),
    )


def _truncate(cursor: Cursor, chance: random.Random) -> None:
    cursor.execute(chance.choice(("TRUNCATE emptied", "TRUNCATE emptied, emptied_too", "TRUNCATE emptied_too CASCADE")))


def _schema(cursor: Cursor, chance: random.Random) -> None:
    name = chance.choice(_CHANGED_COLUMNS)
    cursor.execute(
        chance.choice(
            (
                f"ALTER TABLE evolving ADD COLUMN IF NOT EXISTS {name} text DEFAULT '{name}'",
                f"ALTER TABLE evolving ADD COLUMN IF NOT EXISTS {name} bigint",
                f"ALTER TABLE evolving DROP COLUMN IF EXISTS {name}",
                "ALTER TABLE evolving ALTER COLUMN first TYPE varchar(200)",
                "ALTER TABLE evolving ALTER COLUMN first TYPE text",
                "ALTER TABLE evolving ALTER COLUMN second TYPE bigint",  # rewrites the table, which is not decoded
                "ALTER TABLE evolving ALTER COLUMN second TYPE int",
                "ALTER TABLE evolving REPLICA IDENTITY FULL",
                "ALTER TABLE evolving REPLICA IDENTITY DEFAULT",
            )
        )
    )


def _said(op: str, transactional: bool, prefix: str) -> Step:
    query = """WITH said AS (INSERT INTO witness (op, relation, new)
                   SELECT %s, '', jsonb_build_object('mark', nextval('marks')::text) RETURNING new ->> 'mark' AS mark)
               SELECT pg_logical_emit_message(%s, %s, mark) FROM said"""

    def step(cursor: Cursor, _chance: random.Random) -> None:
        cursor.execute(query, (op, transactional, prefix))

    return step


def _ticket(cursor: Cursor, chance: random.Random) -> None:
    cursor.execute("UPDATE ticket SET mark = mark + 1 WHERE id = %s", (chance.randint(1, 3),))


_ITEM = ", 'item ' || generate_series, generate_series"
_KEY = ", id = nextval('marks')"

STEPS: dict[str, Step] = {
    "insert": _insert("item", _ITEM),
    "update": _update("item", ", amount = amount + 1"),
    "change keys": _update("item", f"{_KEY}, name = 'moved'"),
    "delete": _delete("item"),
    "insert TOASTed": _document,
    "update, TOAST unsent": _update("document", ", note = 'seen ' || clock_timestamp()"),
    "update TOAST": _body("document"),
    "change keys, TOAST unsent": _update("document", _KEY),
    "delete TOASTed": _delete("document"),
    "insert, full identity": _insert("ledger", ", generate_series, 'body'"),
    "update TOAST, full identity": _body("ledger"),
    "update, full identity": _update("ledger", ", amount = amount - 1"),
    "delete, full identity": _delete("ledger"),
    "upsert, full identity": _upsert,
    "insert to empty": _insert("emptied", ""),
    "insert to empty too": _insert("emptied_too", ""),
    "truncate": _truncate,
    "schema": _schema,
    "insert after schema": _insert("evolving (id, mark)", ""),
    "update after schema": _update("evolving", ", first = 'changed'"),
    "delete after schema": _delete("evolving"),
}
"""What a transaction is made of, by name."""

STEPS_TO_KEEP: dict[str, Step] = {"message": _said("message", True, _MESSAGE_PREFIX)}
"""What stands outside savepoints only: in a stream a logical message carries the xid of the whole transaction, so
that one of a subtransaction that was rolled back cannot be told from others (pgoutput_message())."""

NOTE_STEP: Step = _said("note", False, NOTE_PREFIX)
"""A message that is sent when it is decoded, whatever becomes of the transaction."""

TICKET_STEP: Step = _ticket
"""The last step of a transaction: waits for those that changed the same ticket, so that commits have an order."""
