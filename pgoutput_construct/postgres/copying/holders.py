"""Who keeps a copy waiting, in words: sessions and prepared transactions, with what they hold."""

from collections.abc import Collection
from typing import Final

from pgoutput_construct.postgres.queries import Connection, fetch

__all__ = ["lock_holders", "writers"]

_SESSION: Final = """concat_ws(', ', 'pid ' || pid, 'user ' || usename, 'application ' || nullif(application_name, ''),
        state, 'open since ' || xact_start)"""
_PREPARED: Final = "format('prepared transaction %%L of %%s, since %%s', gid, owner, prepared)"

_WRITERS: Final = f"""SELECT {_SESSION} FROM pg_stat_activity
    WHERE backend_xid IS NOT NULL AND backend_xid::text::bigint = ANY(%s)
    UNION ALL SELECT {_PREPARED} FROM pg_prepared_xacts WHERE transaction::text::bigint = ANY(%s) ORDER BY 1"""

# Only ACCESS EXCLUSIVE keeps a reader out; who waits for it does so, too. A prepared transaction has no process: the
# lock on its xid says which it is.
_LOCKS: Final = f"""WITH RECURSIVE tree AS (
        SELECT %s::oid AS oid UNION ALL SELECT inhrelid FROM tree JOIN pg_inherits ON inhparent = oid),
    locks AS (SELECT pid, virtualtransaction FROM pg_locks JOIN tree ON tree.oid = relation
        JOIN pg_database d ON d.oid = database AND datname = current_database() WHERE mode = 'AccessExclusiveLock')
    SELECT {_SESSION} FROM pg_stat_activity WHERE pid IN (SELECT pid FROM locks)
    UNION ALL SELECT {_PREPARED} FROM pg_prepared_xacts
    WHERE transaction IN (SELECT x.transactionid FROM pg_locks x JOIN locks USING (virtualtransaction)
        WHERE x.pid IS NULL AND x.locktype = 'transactionid') ORDER BY 1"""


def writers(connection: Connection, xids: Collection[int]) -> str:
    """Describe who runs some transactions, given by their 32-bit xids; empty where nobody does any more."""
    listed = list(xids)
    return _words(fetch(connection, _WRITERS, [listed, listed]))


def lock_holders(connection: Connection, oid: int) -> str:
    """Describe who keeps readers out of a table or its partitions (ACCESS EXCLUSIVE), or is about to."""
    return _words(fetch(connection, _LOCKS, [oid]))


def _words(rows: list[tuple[str, ...]]) -> str:
    return "; ".join(row[0] for row in rows)
