"""One chunk of a table: checked to be what the snapshot has, read, and handed over in pieces."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import psycopg
from psycopg import sql

from pgoutput_construct.changelog.block import Block
from pgoutput_construct.columnar.copied import CopiedRows
from pgoutput_construct.postgres.copying.jobs import Chunk, Piece
from pgoutput_construct.postgres.copying.rows import Bytes, Numbers, copy_format, copy_statement, read_rows, selected
from pgoutput_construct.postgres.copying.tables import Leaf, PublishedTable
from pgoutput_construct.postgres.queries import Connection
from pgoutput_construct.postgres.waiting import PatientConnection
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.wire import Timestamp

__all__ = ["ChangedTableError", "ChunkReader", "was_changed"]

_PIECE_BYTES: Final = 5 * 2**20  # room for payloads: the system gives that much in large pages
_CHANGED: Final = frozenset({"42P01", "42703", "42704", "3F000", "42P17", "42804", "42883", "XX000"})
"""What a server says of a table, a column or a type that is no longer what it was (XX000: its OID is gone)."""
_UNCHANGED: Final = """SELECT coalesce(to_regclass(%s) = c.oid AND c.relfilenode = pg_relation_filenode(c.oid), false)
    FROM pg_class c WHERE c.oid = %s"""
"""The query sees pg_class as the snapshot does; the functions see it as it is now."""


class ChangedTableError(Exception):
    """A table was rewritten, altered or dropped since its snapshot: it is copied anew. Never leaves the copying."""


def was_changed(error: BaseException) -> bool:
    """Tell whether an error says that a table is no longer what the snapshot has."""
    return isinstance(error, ChangedTableError) or (isinstance(error, psycopg.Error) and error.sqlstate in _CHANGED)


class ChunkReader:
    """Reads chunks under the options of one capture."""

    def __init__(self, put: Callable[[Piece], None]) -> None:
        """Give the pieces to ``put``."""
        self._put = put
        self._layout: Mapping[str, Any] = {}
        self._binary = False

    def use(self, layout: Mapping[str, Any], binary: bool) -> None:
        """Read under these options (``StreamOptions.layout``), in ``binary`` format or as text."""
        self._layout, self._binary = layout, binary

    def read(self, connection: PatientConnection, chunk: Chunk) -> None:
        """Read a chunk in the transaction of ``connection``, which has the snapshot; what was handed over, but once.

        Raises ChangedTableError, psycopg.Error, Stopped.
        """
        table = chunk.job.table
        form, described = copy_format(table, self._layout, self._binary), table.descriptions(self._layout)
        gathered = CopiedRows(form, described, _PIECE_BYTES)
        for rows in self._rows(connection, chunk, chunk.leaf):
            if not gathered.has_room(*rows):
                self._hand_over(chunk, gathered, is_last=False)
                gathered = CopiedRows(form, described, _PIECE_BYTES)
            gathered.add(*rows)
        self._hand_over(chunk, gathered, is_last=True)

    def _rows(self, connection: PatientConnection, chunk: Chunk, leaf: Leaf | None) -> Iterator[tuple[Bytes, Numbers]]:
        """Yield the rows that were not handed over; the same rows come in the same order each time."""
        if leaf is None:
            return
        self._check(connection, chunk.job.table, leaf)
        passed, statement = chunk.handed, copy_statement(chunk.job.table, leaf, chunk.pages, self._binary)
        for data, ends in read_rows(connection, statement, self._binary):
            known = min(passed, len(ends))
            passed -= known
            start = int(ends[known - 1]) if known else 0
            if known < len(ends):
                yield data[start:], ends[known:] - start

    def _check(self, connection: Connection, table: PublishedTable, leaf: Leaf) -> None:
        """Lock a table against what rewrites it, and see whether its rows and columns are still those of the snapshot.

        The server finds the rows in the file that the table has now, and the columns by the names that they have now.
        """
        name = sql.Identifier(leaf.namespace, leaf.name).as_string(None)
        connection.execute(f"LOCK TABLE ONLY {name} IN ACCESS SHARE MODE".encode())
        found = connection.execute(_UNCHANGED.encode(), [name, leaf.oid]).fetchone()
        if found is None or not found[0]:
            raise ChangedTableError(f"{full_name(leaf)} was rewritten")
        result = connection.execute(f"{selected(table, leaf, False)} LIMIT 0".encode()).pgresult
        assert result is not None
        now = [(result.ftablecol(i), result.ftype(i)) for i in range(result.nfields)]
        # The server names the type below a domain here. Modifiers change what a value is only when it is rewritten.
        if now != [(number, column.base_oid) for number, column in zip(leaf.numbers, table.columns, strict=True)]:
            raise ChangedTableError(f"{full_name(leaf)} was altered")

    def _hand_over(self, chunk: Chunk, rows: CopiedRows, is_last: bool) -> None:
        lsn = chunk.job.snapshot.lsn
        block = Block.copied(rows.payloads(), chunk.number, lsn, Timestamp.now(), self._layout)
        self._put(Piece(chunk, block, rows.rows, is_last))
        chunk.handed += rows.rows
