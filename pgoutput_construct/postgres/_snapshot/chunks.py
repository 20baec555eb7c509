"""Reading one chunk of a table with COPY, after checking that the table is still what the snapshot has."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import pq

from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.columnar.copy_format import CopiedRows, CopyFormat, binary_copy_start
from pgoutput_construct.postgres._frames import FrameReader
from pgoutput_construct.postgres._patience import ANSWER_SECONDS, Patience, PatientConnection, failed_result, result_of
from pgoutput_construct.postgres._snapshot.copied_tables import Leaf, PublishedTable
from pgoutput_construct.postgres._snapshot.jobs import Chunk, Piece
from pgoutput_construct.postgres.connection import Connection, encode_sql, fetch_row
from pgoutput_construct.stream.identifiers import full_name, quote_identifier
from pgoutput_construct.wire import Timestamp

__all__ = ["ByteRate", "ChangedTableError", "ChunkReader", "was_changed"]


_PIECE_BYTES: Final = 5 * 2**20  # payload buffer: large enough for the system to use large pages
_CHANGED: Final = frozenset({"42P01", "42703", "42704", "3F000", "42P17", "42804", "42883", "XX000"})
"""SQLSTATEs for a table, column or type that was dropped or altered (XX000: no relation has the OID any more)."""
_UNCHANGED: Final = """SELECT coalesce(to_regclass(%s) = c.oid AND c.relfilenode = pg_relation_filenode(c.oid), false)
    FROM pg_class c WHERE c.oid = %s"""
"""The query sees pg_class under the snapshot, the functions its current state (syscache)."""


class ChangedTableError(Exception):
    """A table was rewritten, altered or dropped since its snapshot: it is copied again. Never leaves the room."""


def was_changed(error: BaseException) -> bool:
    """Return whether an error means that a table is no longer what the snapshot has."""
    return isinstance(error, ChangedTableError) or (isinstance(error, psycopg.Error) and error.sqlstate in _CHANGED)


class ByteRate:
    """Limits how many bytes a second are read, over all connections together."""

    def __init__(self, bytes_per_second: float | None) -> None:
        """Take the limit; None for no limit."""
        self._rate = bytes_per_second
        self._due = 0.0
        self._lock = threading.Lock()

    def wait(self, size: int, patience: Patience) -> None:
        """Wait until some more bytes may have been read; raise Stopped if the end is requested meanwhile."""
        if self._rate is None:
            return
        with self._lock:
            due = self._due = max(self._due, time.monotonic()) + size / self._rate
        while (left := due - time.monotonic()) > 0:
            patience.check(np.inf)
            time.sleep(min(left, _SLICE))


class ChunkReader:
    """Reads chunks under the options of one capture."""

    def __init__(self, put: Callable[[Piece], None], rate: ByteRate) -> None:
        """Pass pieces to ``put``, which may block, and read at most at a ``rate``."""
        self._put, self._rate = put, rate
        self._layout: Mapping[str, Any] = {}
        self._binary = False

    def set_options(self, layout: Mapping[str, Any], binary: bool) -> None:
        """Write rows under the options of a stream (``StreamOptions.layout``), in ``binary`` format or as text."""
        self._layout, self._binary = layout, binary

    def read(self, connection: PatientConnection, chunk: Chunk) -> None:
        """Read a chunk in the current transaction of ``connection``, which has the snapshot.

        Rows that an earlier, interrupted call has handed over are skipped.

        Raises:
            ChangedTableError: The table was altered since the snapshot.
            psycopg.Error: The server refuses the query, or the connection is lost.
            Stopped: The end was requested.
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
        """Yield the rows that were not handed over; a chunk has the same rows in the same order each time."""
        if leaf is None or not (chunk.all_others or _has_xids(chunk)):
            return
        self._check(connection, chunk, leaf)
        passed, statement = chunk.handed, _copy_statement(chunk, leaf, self._binary)
        is_first = chunk.xids is None or chunk.all_others  # else the pages were read, and counted, before
        unsent = chunk.pages_read * _PAGE_BYTES if is_first else 0
        for data, ends in _read_rows(connection, statement, self._binary):
            self._rate.wait(len(data), connection.patience)
            unsent -= len(data)
            known = min(passed, len(ends))
            passed -= known
            start = int(ends[known - 1]) if known else 0
            if known < len(ends):
                yield data[start:], ends[known:] - start
        self._rate.wait(max(unsent, 0), connection.patience)  # the server has read it, whatever it has sent

    def _check(self, connection: Connection, chunk: Chunk, leaf: Leaf) -> None:
        """Lock a table against rewriting, and check that its file and columns are still those of the snapshot.

        COPY reads the file that the table has now, and resolves columns by their current names. Xids of rows are
        compared as long as the first one is fewer than 2**31 before the next one.
        """
        table, name = chunk.job.table, full_name(leaf)
        connection.execute(encode_sql(f"LOCK TABLE ONLY {name} IN ACCESS SHARE MODE"))
        found = connection.execute(_UNCHANGED.encode(), [name, leaf.oid]).fetchone()
        if found is None or not found[0]:
            raise ChangedTableError(f"{full_name(leaf)} was rewritten")
        if chunk.xids is not None:
            oldest = f"SELECT age('{_normal(chunk.xids[0], 1)}'::xid)"
            if fetch_row(connection, oldest, doing="the age of an xid cannot be read")[0] < 0:
                raise ChangedTableError(f"too many transactions have begun since {full_name(leaf)} was read")
        result = connection.execute(encode_sql(f"{_select_clause(table, leaf, False)} LIMIT 0")).pgresult
        assert result is not None
        now = [(result.ftablecol(i), result.ftype(i)) for i in range(result.nfields)]
        # The server reports the base type of a domain here. A new type modifier changes values only by a rewrite.
        if now != [(number, column.base_oid) for number, column in zip(leaf.numbers, table.columns, strict=True)]:
            raise ChangedTableError(f"{full_name(leaf)} was altered")

    def _hand_over(self, chunk: Chunk, rows: CopiedRows, is_last: bool) -> None:
        block = None
        # An attempt that reads nothing new is to have its Relation in the log, too.
        if rows.rows or not chunk.was_read or chunk is chunk.job.chunks[0]:
            lsn = chunk.job.snapshot.lsn
            block = Block.copied(rows.payloads(), chunk.number, lsn, Timestamp.now(), self._layout)
        self._put(Piece(chunk, block, rows.rows, is_last))
        chunk.handed += rows.rows


Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

_SLICE: Final = 0.1  # seconds after which a request to stop is noticed at the latest
_PAGE_BYTES: Final = 8192
_GATHER: Final = 0.002  # seconds for which rows are gathered
_TRAILER: Final = b"\xff\xff"  # the last message in binary format: the count -1


def _copy_format(table: PublishedTable, layout: Mapping[str, Any], binary: bool) -> CopyFormat:
    """Return the format of a table's rows, the same as in the stream."""
    kinds = [column.has_send for column in table.columns] if binary else None
    return CopyFormat(table.oid, len(table.columns), layout, kinds)


def _select_clause(table: PublishedTable, leaf: Leaf, binary: bool) -> str:
    """Return the SELECT of a leaf's published columns."""
    # Values of types without a send function are sent as text, also in a binary stream; format() calls the type's
    # output function, as pgoutput does. num_nulls(), since IS NULL would be true of a row of NULLs.
    columns = [
        name if column.has_send or not binary else f"CASE WHEN num_nulls({name}) = 0 THEN format('%s', {name}) END"
        for column, name in ((column, quote_identifier(column.name)) for column in table.columns)
    ]
    return f"SELECT {', '.join(columns)} FROM ONLY {full_name(leaf)}"


_AGE: Final = "age(xmin) {sign} (SELECT age('{youngest}'::xid)) AND (SELECT age('{oldest}'::xid))"
"""Whether the xid of a row is in a range. Xids have 32 bits: those that are 2**32 apart look the same (a row that was
frozen retains its own), all others are told apart, since the range ends before the next xid, and begins fewer than
2**31 before it. Special xids have the highest age (``xid_age()``)."""
_FIRST_NORMAL: Final = 3


def _has_xids(chunk: Chunk) -> bool:
    return chunk.xids is None or chunk.xids[0] < chunk.xids[1]


def _normal(xid: int, step: int) -> int:
    """Return the 32 bits of a 64-bit xid; of a special one, of the next one that rows have, by ``step`` 1 or -1."""
    while xid % 2**32 < _FIRST_NORMAL:
        xid += step
    return xid % 2**32


def _copy_statement(chunk: Chunk, leaf: Leaf, binary: bool) -> bytes:
    """Return the COPY statement for the published rows of a leaf on the pages of a chunk.

    Args:
        chunk: The chunk.
        leaf: The table that has the rows.
        binary: Whether to copy in binary format.
    """
    table, bounds = chunk.job.table, zip((">=", "<"), chunk.pages, strict=True)
    conditions = [f"ctid {sign} '({page},0)'" for sign, page in bounds if page is not None]
    if chunk.xids is not None and _has_xids(chunk):
        first, end = chunk.xids
        sign = "NOT BETWEEN" if chunk.all_others else "BETWEEN"
        conditions.append(_AGE.format(sign=sign, youngest=_normal(end - 1, -1), oldest=_normal(first, 1)))
    if table.filter:
        conditions.append(f"({table.filter})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    form = " WITH (FORMAT binary)" if binary else ""
    return encode_sql(f"COPY ({_select_clause(table, leaf, binary)}{where}) TO STDOUT{form}")


def _read_rows(connection: PatientConnection, statement: bytes, binary: bool) -> Iterator[tuple[Bytes, Numbers]]:
    """Run a COPY and yield its rows in batches: their bytes, and the index where each row ends.

    A batch is valid until the next one is requested. After an abandoned iteration the connection is unusable.

    Raises:
        psycopg.Error: The server refuses or aborts the COPY.
        Stopped: The end was requested.
    """
    pgconn = connection.pgconn
    pgconn.send_query(statement)
    result = result_of(pgconn, connection.patience)
    if result is None or result.status != pq.ExecStatus.COPY_OUT:
        _read_results(connection, result)
        raise psycopg.OperationalError("the server did not begin the COPY")
    is_first = True
    for data, ends in _batches(connection):
        rows = _strip_framing(data, ends, is_first) if binary else (data, ends)
        is_first = False
        if len(rows[1]):
            yield rows
    _read_results(connection, result_of(pgconn, connection.patience))


def _batches(connection: PatientConnection) -> Iterator[tuple[Bytes, Numbers]]:
    reader, silent = FrameReader(connection.pgconn, _GATHER), 0.0
    try:
        while not reader.ended:
            frames = reader.read(_SLICE)
            if frames:
                yield frames.data, frames.ends
            silent = 0.0 if frames or reader.fed else silent + _SLICE
            # A row filter may exclude all rows of many pages, but not for this long.
            connection.patience.check(np.inf if silent < ANSWER_SECONDS else 0.0)
    finally:
        reader.close()


def _strip_framing(data: Bytes, ends: Numbers, is_first: bool) -> tuple[Bytes, Numbers]:
    """Return rows without the header and the trailer of binary COPY data (a row begins with its column count)."""
    start = binary_copy_start(data) if is_first else 0
    rows, bounds = data[start:], ends - start
    last = bytes(rows[int(bounds[-2]) if len(bounds) > 1 else 0 : int(bounds[-1])])
    return rows, bounds[:-1] if last == _TRAILER else bounds


def _read_results(connection: PatientConnection, result: pq.abc.PGresult | None) -> None:
    """Read all results of a statement; raise psycopg.Error for the first one that failed."""
    failed = failed_result(connection.pgconn, connection.patience, result)
    if failed is not None:
        raise psycopg.errors.error_from_result(failed, encoding="utf-8")
