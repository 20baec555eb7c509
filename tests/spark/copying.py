"""A table of a server, copied into a log by hand: by the same builders, under an ordinary snapshot."""

from pathlib import Path

import psycopg
import pyarrow as pa

import pgoutput_construct as pgo
from pgoutput_construct.changelog import Block, ChangeLog, LogWriter, Position
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.changelog._segment.events import COPIED_TABLE
from pgoutput_construct.columnar.descriptions import OUTSIDE, copy_scope

__all__ = ["copy_table"]

_TABLE = """SELECT c.oid::bigint, n.nspname, c.relname, c.relreplident FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s::regclass"""
_COLUMNS = """SELECT attname, atttypid::bigint, atttypmod, coalesce(
        (SELECT relreplident = 'f' FROM pg_class WHERE oid = attrelid) OR attnum = ANY ((SELECT indkey FROM pg_index
         WHERE indrelid = attrelid AND (indisreplident OR indisprimary) ORDER BY indisreplident DESC LIMIT 1)::int[]),
        false)::int FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_SNAPSHOT = "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text"


def copy_table(dsn: str, directory: Path, name: str) -> None:
    """Copy the rows of a table as they are now; no capture may be at the log."""
    with psycopg.connect(dsn) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        seen, lsn = connection.execute(_SNAPSHOT).fetchone() or ("", "")
        oid, namespace, table, identity = connection.execute(_TABLE, [name]).fetchone() or (0, "", "", "")
        columns = connection.execute(_COLUMNS, [name]).fetchall()
        listed = ", ".join(f'"{column[0]}"' for column in columns)
        result = connection.execute(f"SELECT {listed} FROM {name}".encode()).pgresult
        assert result is not None
        rows = [tuple(result.get_value(row, i) for i in range(len(columns))) for row in range(result.ntuples)]
    fields = tuple(pgo.RelationColumn(key, *column) for *column, key in columns)
    described = pgo.build(pgo.Relation(None, oid, namespace, table, identity, fields))
    payloads = pa.array([described, *(pgo.build(pgo.Insert(None, oid, row)) for row in rows)], pa.binary())
    snapshot = Snapshot.parse(seen, pgo.Lsn(lsn))
    contains = Visibility.at(snapshot.lsn)
    _append(directory, payloads, TableCopy(-1, oid, namespace, table, snapshot, 0, 0, len(rows), contains))


def _append(directory: Path, payloads: pa.Array, copy: TableCopy) -> None:
    log = ChangeLog(directory)
    scopes = log.index.entries("descriptions")["stream_xid"].drop_null().to_pylist()
    number = max((copy_scope(scope) for scope in scopes if scope < OUTSIDE), default=-1) + 1
    told = copy.said() | {"chunks": [number, number]}
    with LogWriter(directory) as writer:
        writer.use(log.options)
        writer.append(Block.copied(payloads, number, copy.snapshot.lsn, 0, log.options.layout()))
        writer.append_event(COPIED_TABLE, copy.snapshot.lsn, **told)
        writer.publish(Position(log.complete_lsn))
