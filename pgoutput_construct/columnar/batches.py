"""Decodes a whole stream in batches: payloads in order in, typed rows of every table out."""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar.batch_arrays import tag_table
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.descriptions import OUTSIDE, UNDESCRIBED, group_rows
from pgoutput_construct.columnar.index import BatchIndex, index_batch, payload_array
from pgoutput_construct.columnar.row_schema import Payloads, RowError, check_names, columns_schema
from pgoutput_construct.columnar.scopes import ScopeReader
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.columnar.threads import checked_threads
from pgoutput_construct.errors import PgoutputError, ProtocolError
from pgoutput_construct.stream.relations import DESCRIBING, Description, RelationHistory, undescribed_row
from pgoutput_construct.stream.rows import unread_problem
from pgoutput_construct.stream.session import Session
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.wire.protocol import UNREAD, MoreOptions, Streaming

__all__ = ["BatchDecoder", "DecodedBatch", "TableRows"]

Numbers = NDArray[np.int64]

_DESCRIBES: Final = tag_table(DESCRIBING)

_UNREAD: Final = tag_table(UNREAD)

_CACHED_PLANS: Final = 64
"""The number of tables whose DecodePlan a decoder caches."""


@dataclass(frozen=True)
class TableRows:
    """Rows of one table, all described by one Relation."""

    description: Description
    """The Relation and the types of its columns; its ``seq`` is an index over the payloads of all batches."""
    rows: Numbers
    """The index of each row's payload in this batch."""
    batch: pa.RecordBatch
    """The rows, of ``rows_schema(columns_schema(description))``."""


@dataclass(frozen=True)
class DecodedBatch:
    """The content of one batch."""

    index: BatchIndex
    """The index of the batch; ``index.messages()`` has a row for each payload."""
    tables: tuple[TableRows, ...]
    """The rows of each table, with one entry for each Relation and each block of rows."""
    errors: tuple[RowError, ...]
    """Payloads that could not be decoded, with their index in this batch; the others are decoded nevertheless."""


class BatchDecoder:
    """Decodes the payloads of one replication connection batch by batch, as Session parses them one by one.

    It carries the stream state and the relations from one batch to the next. Rows of transactions that are rolled back
    later are included; their xid is in the index.

    >>> described = bytes.fromhex("52 00004001 7075626c696300 7400 64 0001 01 696400 00000017 ffffffff")
    >>> inserted = bytes.fromhex("49 00004001 4e 0001 74 00000001 35")
    >>> decoded = BatchDecoder().decode([described, inserted])
    >>> [table.batch.select(["id", "_op"]).to_pylist() for table in decoded.tables]
    [[{'id': 5, '_op': 'insert'}]]
    """

    def __init__(
        self, proto_version: int = 1, streaming: Streaming = "off", *, threads: int = 1, **others: Unpack[MoreOptions]
    ) -> None:
        """Start at the beginning of a connection.

        Args:
            proto_version: As of Session.
            streaming: As of Session.
            threads: The number of threads that decode rows in parallel.
            others: As of Session.

        Raises:
            PgoutputError: Options that PostgreSQL refuses, or fewer threads than one.
        """
        self.threads = checked_threads(threads)
        self.history = RelationHistory()
        """The relations of all batches; their seqs are indexes over the payloads of all batches."""
        self._scopes = ScopeReader(Session(proto_version, streaming, **others))
        self._plan = lru_cache(_CACHED_PLANS)(partial(_decode_plan, self.history))
        self._next_seq = 0

    @property
    def stream_xid(self) -> int | None:
        """The top-level xid of the stream that is open after the last batch, None if none is."""
        return self._scopes.session.stream_xid

    def decode(self, payloads: Payloads) -> DecodedBatch:
        """Decode the next batch: a binary array (which may be sliced or chunked), or a sequence of bytes."""
        array = payload_array(payloads)
        scopes, states, errors = self._scopes.read(array)
        index = index_batch(array, threads=self.threads, **{**self._scopes.session.options, **states})
        errors += map(index.row_error, index.malformed().tolist())
        rows, oids = index.tables()
        errors += self._read_relations(index, scopes)
        errors += _unread(index)
        tables = []
        for description, some in group_rows(self.history, oids, scopes, rows, self._next_seq):
            if description == UNDESCRIBED:
                errors += map(_undescribed, rows[some].tolist(), oids[some].tolist())
            else:
                tables += self._table(index, rows[some], description, errors)
        self._next_seq += len(index)
        return DecodedBatch(index, tuple(tables), tuple(sorted(errors, key=lambda error: error.row)))

    def _read_relations(self, index: BatchIndex, scopes: Numbers) -> list[RowError]:
        errors = []
        for row in index.messages_without_rows(_DESCRIBES).tolist():
            stream_xid = None if scopes[row] == OUTSIDE else int(scopes[row])
            try:
                self.history.read(ControlMessage(self._next_seq + row, stream_xid, index.message(row)))
            except PgoutputError as error:
                errors.append(RowError(row, error))
        return errors

    def _table(self, index: BatchIndex, rows: Numbers, number: int, errors: list[RowError]) -> list[TableRows]:
        description = self.history.descriptions[number]
        try:
            plan = self._plan(number)
        except ProtocolError as error:
            errors += [RowError(row, error) for row in rows.tolist()]
            return []
        found = []
        for block in table_rows(index, rows, plan, self.threads):
            errors += block.errors
            if block.batch is not None:
                found.append(TableRows(description, block.rows, block.batch))
        return found


def _unread(index: BatchIndex) -> list[RowError]:
    """Return an error for each message that may change rows in a way that nothing reads."""
    rows = index.messages_without_rows(_UNREAD).tolist() if UNREAD else ()
    return [RowError(row, ProtocolError(unread_problem(type(index.message(row))))) for row in rows]


def _decode_plan(history: RelationHistory, number: int) -> DecodePlan:
    description = history.descriptions[number]
    columns = columns_schema(description)
    check_names(columns)
    return DecodePlan(description, columns)


def _undescribed(row: int, oid: int) -> RowError:
    return RowError(row, ProtocolError(f"{undescribed_row(oid)} before this row"))
