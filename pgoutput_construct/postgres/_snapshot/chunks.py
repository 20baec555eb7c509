"""One chunk of a table: checked to be what the snapshot has, read, and handed over in pieces."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import pq, sql

from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.columnar.copy_format import CopiedRows, CopyFormat, binary_copy_start
from pgoutput_construct.postgres._frames import FrameReader
from pgoutput_construct.postgres._snapshot.copied_tables import Leaf, PublishedTable
from pgoutput_construct.postgres._snapshot.jobs import Chunk, Piece
from pgoutput_construct.postgres._waiting import ANSWER_SECONDS, PatientConnection, result_of
from pgoutput_construct.postgres.connection import Connection
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
    """Return whether an error says that a table is no longer what the snapshot has."""
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
        form, described = _copy_format(table, self._layout, self._binary), table.descriptions(self._layout)
        gathered = CopiedRows(form, described, _PIECE_BYTES)
        for rows in self._rows(connection, chunk, chunk.leaf):
            if not gathered.has_room(*rows):
                self._hand_over(chunk, gathered, is_last=False)
                gathered = CopiedRows(form, described, _PIECE_BYTES)
            gathered.add(*rows)
        self._hand_over(chunk, gathered, is_last=True)

    def _rows(
        self, connection: PatientConnection, chunk: Chunk, leaf: Leaf | None
    ) -> "Iterator[tuple[Bytes, Numbers]]":
        """Yield the rows that were not handed over; the same rows come in the same order each time."""
        if leaf is None:
            return
        self._check(connection, chunk.job.table, leaf)
        passed, statement = chunk.handed, _copy_statement(chunk.job.table, leaf, chunk.pages, self._binary)
        for data, ends in _read_rows(connection, statement, self._binary):
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
        result = connection.execute(f"{_selected(table, leaf, False)} LIMIT 0".encode()).pgresult
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


Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

_SLICE: Final = 0.1  # seconds: how long a wish to end may go unnoticed
_GATHER: Final = 0.002  # seconds: for how long rows are gathered
_TRAILER: Final = b"\xff\xff"  # the last message in binary format: the count -1


def _copy_format(table: PublishedTable, layout: Mapping[str, Any], binary: bool) -> CopyFormat:
    """Return how rows of a table are read: in the format in which the stream has them."""
    kinds = [column.has_send for column in table.columns] if binary else None
    return CopyFormat(table.oid, len(table.columns), layout, kinds)


def _selected(table: PublishedTable, leaf: Leaf, binary: bool) -> str:
    """Return the columns to select, and from what, as SQL."""
    # Of a type without a send function the stream has the text, also among binary values; format() takes the type's
    # output function, as it does. IS NULL would be true of a row of NULLs.
    columns = [
        name if column.has_send or not binary else f"CASE WHEN num_nulls({name}) = 0 THEN format('%s', {name}) END"
        for column, name in ((column, sql.Identifier(column.name).as_string(None)) for column in table.columns)
    ]
    return f"SELECT {', '.join(columns)} FROM ONLY {sql.Identifier(leaf.namespace, leaf.name).as_string(None)}"


def _copy_statement(table: PublishedTable, leaf: Leaf, pages: tuple[int | None, int | None], binary: bool) -> bytes:
    """Return the COPY of the published rows on some pages of a leaf: from the first one, and before the last one.

    None instead of a page sets no bound.
    """
    bounds = [f"ctid {sign} '({page},0)'" for sign, page in zip((">=", "<"), pages, strict=True) if page is not None]
    conditions = [*bounds, *([f"({table.filter})"] if table.filter else [])]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    form = " WITH (FORMAT binary)" if binary else ""
    return f"COPY ({_selected(table, leaf, binary)}{where}) TO STDOUT{form}".encode()


def _read_rows(connection: PatientConnection, statement: bytes, binary: bool) -> Iterator[tuple[Bytes, Numbers]]:
    """Run a COPY and yield its rows as they come: their bytes, and where each ends; they are to be used at once.

    Raises psycopg.Error when the server refuses it or breaks it off, Stopped when the end is asked for; where it is
    left before its end, the connection is of no more use.
    """
    pgconn = connection.pgconn
    pgconn.send_query(statement)
    result = result_of(pgconn, connection.patience)
    if result is None or result.status != pq.ExecStatus.COPY_OUT:
        _finish(connection, result)
        return
    is_first = True
    for data, ends in _batches(connection):
        rows = _rows_of(data, ends, is_first) if binary else (data, ends)
        is_first = False
        if len(rows[1]):
            yield rows
    _finish(connection, result_of(pgconn, connection.patience))


def _batches(connection: PatientConnection) -> Iterator[tuple[Bytes, Numbers]]:
    reader, silent = FrameReader(connection.pgconn, _GATHER), 0.0
    try:
        while not reader.ended:
            frames = reader.read(_SLICE)
            if frames:
                yield frames.data, frames.ends
            silent = 0.0 if frames or reader.fed else silent + _SLICE
            # A filter may leave out all rows of many pages, but not for as long as this.
            connection.patience.look_up(np.inf if silent < ANSWER_SECONDS else 0.0)
    finally:
        reader.close()


def _rows_of(data: Bytes, ends: Numbers, is_first: bool) -> tuple[Bytes, Numbers]:
    """Leave out what binary data begin with, and the message that ends them; in its place a row has a count."""
    start = binary_copy_start(data) if is_first else 0
    rows, bounds = data[start:], ends - start
    last = bytes(rows[int(bounds[-2]) if len(bounds) > 1 else 0 : int(bounds[-1])])
    return rows, bounds[:-1] if last == _TRAILER else bounds


def _finish(connection: PatientConnection, result: pq.abc.PGresult | None) -> None:
    """Take the results until there are no more; raise psycopg.Error for the first that says that it failed."""
    failed = None
    while result is not None:
        if result.status != pq.ExecStatus.COMMAND_OK:
            failed = failed or result
        result = result_of(connection.pgconn, connection.patience)
    if failed is not None:
        raise psycopg.errors.error_from_result(failed, encoding="utf-8")
