"""The rows of a part of a table, by COPY ... TO STDOUT: as the stream would have them, as payloads."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import pq, sql

from pgoutput_construct.columnar.copied import CopyFormat, binary_copy_start
from pgoutput_construct.postgres.copying.tables import Leaf, PublishedTable
from pgoutput_construct.postgres.frames import FrameReader
from pgoutput_construct.postgres.waiting import ANSWER_SECONDS, PatientConnection, result_of

__all__ = ["copy_format", "copy_statement", "read_rows", "selected"]

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

_SLICE: Final = 0.1  # seconds: how long a wish to end may go unnoticed
_GATHER: Final = 0.002  # seconds: for how long rows are gathered
_TRAILER: Final = b"\xff\xff"  # the last message in binary format: the count -1


def copy_format(table: PublishedTable, layout: Mapping[str, Any], binary: bool) -> CopyFormat:
    """Return how rows of a table are read: in the format in which the stream has them."""
    kinds = [column.has_send for column in table.columns] if binary else None
    return CopyFormat(table.oid, len(table.columns), layout, kinds)


def selected(table: PublishedTable, leaf: Leaf, binary: bool) -> str:
    """Return the columns to select, and from what, as SQL."""
    # Of a type without a send function the stream has the text, also among binary values; format() takes the type's
    # output function, as it does. IS NULL would be true of a row of NULLs.
    columns = [
        name if column.has_send or not binary else f"CASE WHEN num_nulls({name}) = 0 THEN format('%s', {name}) END"
        for column, name in ((column, sql.Identifier(column.name).as_string(None)) for column in table.columns)
    ]
    return f"SELECT {', '.join(columns)} FROM ONLY {sql.Identifier(leaf.namespace, leaf.name).as_string(None)}"


def copy_statement(table: PublishedTable, leaf: Leaf, pages: tuple[int | None, int | None], binary: bool) -> bytes:
    """Return the COPY of the published rows on some pages of a leaf: from the first one, and before the last one.

    None instead of a page sets no bound.
    """
    bounds = [f"ctid {sign} '({page},0)'" for sign, page in zip((">=", "<"), pages, strict=True) if page is not None]
    conditions = [*bounds, *([f"({table.filter})"] if table.filter else [])]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    form = " WITH (FORMAT binary)" if binary else ""
    return f"COPY ({selected(table, leaf, binary)}{where}) TO STDOUT{form}".encode()


def read_rows(connection: PatientConnection, statement: bytes, binary: bool) -> Iterator[tuple[Bytes, Numbers]]:
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
