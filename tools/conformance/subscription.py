"""PostgreSQL's own subscription as a client: a server that subscribes, and triggers that write down what is applied.

What they wrote is read by the server's own logical decoding, in the order of the commits: timestamps would not do,
since those of applied transactions are the publisher's. Tables are created as a case describes them, with the columns
of all their descriptions: those that not all have contain a mark where nothing was sent, and are then not reported.
"""

import json
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any, Final

import psycopg
from psycopg.sql import SQL, Composed, Identifier, Literal

import pgoutput_construct as pgo
from pgoutput_construct.conformance.conformance_client import ClientTask, ConformanceClient, RunningClient
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.wire.messages import Relation
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity

__all__ = ["SUBSCRIBER_SETTINGS", "SubscriptionClient"]

SUBSCRIBER_SETTINGS: Final[Mapping[str, str]] = {
    "wal_retrieve_retry_interval": "20ms",
    "wal_receiver_timeout": "2s",
    "wal_receiver_status_interval": "1s",
    "max_logical_replication_workers": "20",
    "max_worker_processes": "40",
    "client_min_messages": "error",
}
"""Those of its servers: a worker that has failed is started again at once, and a silent publisher is soon lost."""

_ATTEMPTS: Final = 5
_RETRY_SECONDS: Final = 0.1
_STOP_SECONDS: Final = 5.0
_MARK: Final = "(not sent)"
_IDENTITIES: Final = (RelationReplicaIdentity.FULL, RelationReplicaIdentity.NOTHING)


class SubscriptionClient(ConformanceClient):
    """Subscribes in a database of its own for each case, at one server."""

    def __init__(self, server: EmbeddedServer) -> None:
        """Take a server that runs, with SUBSCRIBER_SETTINGS."""
        self.name = f"PostgreSQL {server.version}"
        self._server = server

    def start(self, task: ClientTask) -> RunningClient:
        """See ConformanceClient."""
        return _Subscription(self._server, task)


class _Subscription(RunningClient):
    def __init__(self, server: EmbeddedServer, task: ClientTask) -> None:
        self._server, self._task = server, task
        self._logged = len(server.log)
        self._lock = RLock()
        self._failed = ""
        with server.connect() as admin:
            _drop_database(admin)
            admin.execute("CREATE DATABASE suite STRATEGY file_copy")
        self._connection = server.connect(dbname="suite")
        self._connection.execute(_LOG)
        self._connection.execute("SELECT pg_create_logical_replication_slot('log_of_suite', 'pgoutput')")
        for statement in _tables(task.tables):
            self._connection.execute(statement)
        self._subscribe()

    def _subscribe(self) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                self._connection.execute(_creation(self._task, self._server.version))
                return
            except psycopg.Error as error:
                self._failed = str(error)
                time.sleep(_RETRY_SECONDS * (attempt + 1))

    def read(self) -> list[str]:
        """See RunningClient."""
        with self._lock:
            try:
                payloads = [bytes(data) for (data,) in self._connection.execute(_CHANGES)]
            except psycopg.OperationalError:
                return []  # the server has crashed, see ``status``
        rows: Any = (message.new for message in map(pgo.parse, payloads) if isinstance(message, pgo.Insert))
        return [json.dumps(_line(*(value and value.decode() for value in row))) for row in rows]

    @property
    def status(self) -> int | None:
        """See RunningClient: a subscription tries again for ever, unless it could not be created."""
        known = "SELECT FROM pg_subscription WHERE subname = 'suite'"
        with self._lock:
            try:
                return 1 if self._failed and self._connection.execute(known).fetchone() is None else None
            except psycopg.OperationalError:
                return -signal.SIGSEGV

    @property
    def errors(self) -> str:
        """See RunningClient."""
        lines = self._server.log[self._logged :].splitlines()
        said = [line for line in lines if "ERROR" in line or "CONTEXT" in line or "WARNING" in line]
        return "\n".join([self._failed, *said[-10:]]).strip()

    def stop(self) -> None:
        """See RunningClient."""
        with self._lock:
            if self._connection.closed:
                self._connection = self._after_crash()
            with suppress(psycopg.Error):
                self._connection.execute("ALTER SUBSCRIPTION suite DISABLE")
                self._connection.execute("ALTER SUBSCRIPTION suite SET (slot_name = NONE)")
                self._connection.execute("DROP SUBSCRIPTION suite")
            self._wait_for_workers()
            self._connection.execute(_DROP_SLOT)
            for (gid,) in self._connection.execute("SELECT gid FROM pg_prepared_xacts WHERE database = 'suite'"):
                self._connection.execute(SQL("ROLLBACK PREPARED {}").format(Literal(gid)))
            self._connection.close()
        with self._server.connect() as admin:
            _drop_database(admin)

    def _after_crash(self) -> "psycopg.Connection[Any]":
        deadline = time.monotonic() + _STOP_SECONDS
        while True:
            try:
                return self._server.connect(dbname="suite")
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)

    def _wait_for_workers(self) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        query = "SELECT FROM pg_stat_activity WHERE datname = 'suite' AND backend_type LIKE 'logical replication %'"
        while self._connection.execute(query).fetchone() is not None and time.monotonic() < deadline:
            time.sleep(0.01)


def _drop_database(admin: "psycopg.Connection[Any]") -> None:
    admin.execute(_DROP_SLOT)
    admin.execute("DROP DATABASE IF EXISTS suite WITH (FORCE)")


_DROP_SLOT: Final = (
    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'log_of_suite'"
)
_LOG: Final = """
CREATE SCHEMA log_of_suite;
CREATE TABLE log_of_suite.changes (
    transaction xid8 DEFAULT pg_current_xact_id(), name text, operation text, new jsonb, old jsonb
);
CREATE PUBLICATION log_of_suite FOR TABLE log_of_suite.changes
"""
_CHANGES: Final = """
SELECT data FROM pg_logical_slot_get_binary_changes(
    'log_of_suite', NULL, NULL, 'proto_version', '1', 'publication_names', 'log_of_suite')
"""


def _creation(task: ClientTask, version: int) -> Composed:
    """Return the statement that subscribes, with the options of a task as far as a subscription has them."""
    asked = {name: task.options[name] for name in ("streaming", "binary", "two_phase", "origin")}
    given = {"copy_data": False, "slot_name": task.slot, **asked}
    options = SQL(", ").join(SQL("{} = {}").format(Identifier(name), Literal(_word(v))) for name, v in given.items())
    text = SQL("CREATE SUBSCRIPTION suite CONNECTION {} PUBLICATION {} WITH ({})")
    return text.format(Literal(task.dsn), Identifier(task.publication), options)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _line(transaction: str, name: str, operation: str, new: str | None, old: str | None) -> dict[str, Any]:
    rows = {"new": new and _sent(json.loads(new)), "old": old and _sent(json.loads(old))}
    return {"transaction": transaction, "table": name, "operation": operation, **rows}


def _sent(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value != _MARK}


def _tables(relations: Sequence[Relation]) -> Iterator[Composed]:
    """Yield the statements that create the tables, and the triggers that write down their changes."""
    named: dict[tuple[str, str], list[Relation]] = {}
    for relation in relations:
        named.setdefault((relation.namespace, relation.name), []).append(relation)
    for schema in dict.fromkeys(namespace for namespace, _ in named):
        yield SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(schema))
    for number, ((namespace, name), versions) in enumerate(named.items()):
        table = Identifier(namespace, name)
        yield SQL("CREATE TABLE {} ({})").format(table, SQL(", ").join(_definitions(versions)))
        if not _key(versions):
            yield SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(table)
        yield from _triggers(table, f"{namespace}.{name}", [*_types(versions)], number)


def _types(versions: Sequence[Relation]) -> dict[str, str | None]:
    """Return the type of each column; None for text with a mark, where not all versions have the column as it is."""
    found: dict[str, set[int]] = {}
    for relation in versions:
        for column in relation.columns:
            found.setdefault(column.name, set()).add(column.type_oid)
    counts = {name: sum(any(c.name == name for c in each.columns) for each in versions) for name in found}
    return {name: None if counts[name] < len(versions) else _type(oids) for name, oids in found.items()}


def _type(oids: set[int]) -> str:
    (oid, *others) = oids
    return BUILTIN_TYPES[oid].name if not others and oid in BUILTIN_TYPES else "text"


def _definitions(versions: Sequence[Relation]) -> Iterator[Composed]:
    for name, kind in _types(versions).items():
        if kind is None:
            yield SQL("{} text DEFAULT {}").format(Identifier(name), Literal(_MARK))
        else:
            yield SQL("{} pg_catalog.{}").format(Identifier(name), Identifier(kind))
    if key := _key(versions):
        yield SQL("PRIMARY KEY ({})").format(SQL(", ").join(map(Identifier, key)))


def _key(versions: Sequence[Relation]) -> list[str]:
    """Return the columns of the key, as the last version with one has it; none where all are FULL or NOTHING."""
    for each in reversed(versions):
        if each.replica_identity not in _IDENTITIES:
            return [column.name for column in each.columns if column.flags & RelationColumnFlags.KEY]
    return []


def _triggers(table: Identifier, title: str, columns: Sequence[str], number: int) -> Iterator[Composed]:
    function = Identifier("log_of_suite", f"note{number}")
    names = SQL(", ").join(map(Literal, columns))

    def row(record: str) -> Composed:
        each = SQL("CASE WHEN {0} IS NOT NULL THEN pg_catalog.format('%s', {0}) END")
        values = SQL(", ").join(each.format(SQL(record + ".") + Identifier(name)) for name in columns)
        return SQL("jsonb_object(ARRAY[{}]::text[], ARRAY[{}]::text[])").format(names, values)

    body = SQL(
        "BEGIN INSERT INTO log_of_suite.changes (name, operation, new, old) VALUES ({}, lower(TG_OP),"
        " CASE WHEN TG_OP IN ('INSERT', 'UPDATE') THEN {} END, CASE WHEN TG_OP IN ('UPDATE', 'DELETE') THEN {} END);"
        " RETURN NULL; END"
    ).format(Literal(title), row("NEW"), row("OLD"))
    text = body.as_string(None)
    yield SQL("CREATE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql AS {}").format(function, Literal(text))
    for trigger, event in (("rows", "INSERT OR UPDATE OR DELETE"), ("all", "TRUNCATE")):
        each = "ROW" if trigger == "rows" else "STATEMENT"
        given = (Identifier(trigger), table, function)
        yield SQL(f"CREATE TRIGGER {{}} AFTER {event} ON {{}} FOR EACH {each} EXECUTE FUNCTION {{}}()").format(*given)
        yield SQL("ALTER TABLE {} ENABLE ALWAYS TRIGGER {}").format(table, Identifier(trigger))
