"""A whole stream in batches: payloads in their order in, typed rows of every table out."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar import headers
from pgoutput_construct.columnar.index import BatchIndex, index_batch, payload_array
from pgoutput_construct.columnar.kernels import READERS
from pgoutput_construct.columnar.rows import Payloads, RowError, check_names, columns_schema, rows_schema
from pgoutput_construct.columnar.table import IS_ROW, table_rows
from pgoutput_construct.columnar.versions import OUTSIDE, UNDESCRIBED, find_versions
from pgoutput_construct.errors import PgoutputError, ProtocolError
from pgoutput_construct.stream.timeline import Description, RelationTimeline
from pgoutput_construct.stream.transactions import ControlMessage
from pgoutput_construct.wire.engine import parse
from pgoutput_construct.wire.messages import (
    Relation,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Truncate,
    Type,
)
from pgoutput_construct.wire.options import options

__all__ = ["BatchDecoder", "DecodedBatch", "TableRows"]

Numbers = NDArray[np.int64]

_START, _STOP, _TRUNCATE = StreamStart.TAG[0], StreamStop.TAG[0], Truncate.TAG[0]
_UNPAIRED = "a Stream Start inside a stream, or a Stream Stop outside one: a message between them is missing"
_DESCRIBES = np.zeros(256, np.bool_)
_DESCRIBES[[cls.TAG[0] for cls in (Relation, Type, StreamStart, StreamCommit, StreamAbort, StreamPrepare)]] = True
"""The tags that change which Relation describes an OID."""


@dataclass(frozen=True)
class TableRows:
    """Rows of one table, all described by one Relation."""

    description: Description
    """The Relation, and the types of its columns; its ``seq`` counts the payloads of all batches."""
    rows: Numbers
    """The index of each row's payload in this batch."""
    batch: pa.RecordBatch
    """The rows, of ``rows_schema(columns_schema(description))``."""


@dataclass(frozen=True)
class DecodedBatch:
    """What is in one batch."""

    index: BatchIndex
    """The walk over the batch; ``index.messages()`` has a row a payload."""
    tables: tuple[TableRows, ...]
    """The rows of each table, one entry for each Relation that describes some and each block of them."""
    errors: tuple[RowError, ...]
    """Payloads that could not be decoded, with their index in this batch, explained; they stop nothing."""


class BatchDecoder:
    """Decodes the payloads of one replication connection, batch by batch; the Session of whole batches.

    It keeps the stream state and the relations from one batch to the next. Rows of transactions that are rolled back
    later are among the rows: their xid is in the index.
    """

    def __init__(self, proto_version: int = 1, streaming: str = "off") -> None:
        """Raise PgoutputError for options that PostgreSQL does not know."""
        options(proto_version, streaming)
        self.proto_version = proto_version
        self.streaming = streaming
        self.timeline = RelationTimeline()
        self.stream_xid: int | None = None
        """The top-level xid of the stream that is open after the last batch, None outside a stream."""
        self._next_seq = 0

    def decode(self, payloads: Payloads) -> DecodedBatch:
        """Decode the next batch: a binary array (sliced or chunked or not), or a sequence of bytes."""
        array = payload_array(payloads)
        scopes, errors = self._scopes(array)
        index = index_batch(array, scopes != OUTSIDE, proto_version=self.proto_version, streaming=self.streaming)
        errors += [RowError(row, index.error(row)) for row in index.malformed().tolist()]
        errors += self._read_relations(index, scopes)
        rows, versions = self._versions(index, scopes, errors)
        tables = []
        for version in np.unique(versions).tolist():
            tables += self._table(index, rows[versions == version], version, errors)
        self._next_seq += len(index)
        return DecodedBatch(index, tuple(tables), tuple(sorted(errors, key=lambda error: error.row)))

    def _scopes(self, array: pa.Array) -> tuple[Numbers, list[RowError]]:
        """Return the stream's xid of each payload, OUTSIDE outside; a Stream Stop still stands inside.

        A Stream Start inside a stream, and a Stream Stop outside, are errors; the state after them is what they say.
        """
        tags = headers.tags(array)
        initial = OUTSIDE if self.stream_xid is None else self.stream_xid
        places = np.flatnonzero((tags == _START) | (tags == _STOP))
        if not len(places):
            return np.full(len(array), initial, np.int64), []
        walk = index_batch(array.take(pa.array(places)), proto_version=self.proto_version, streaming=self.streaming)
        places, opened = places[walk.valid], self._opened(walk)[walk.valid]
        before = np.searchsorted(places, np.arange(len(array)), "left") - 1
        self.stream_xid = initial if not len(opened) else int(opened[-1])
        self.stream_xid = None if self.stream_xid == OUTSIDE else self.stream_xid
        open_before = np.append(initial, opened)[: len(opened)] != OUTSIDE
        wrong = places[open_before == (opened != OUTSIDE)]
        errors = [RowError(row, ProtocolError(_UNPAIRED)) for row in wrong.tolist()]
        return np.where(before >= 0, np.append(opened, initial)[before], initial), errors

    @staticmethod
    def _opened(walk: BatchIndex) -> Numbers:
        """Return the scope behind each Stream Start (its xid) and Stream Stop (OUTSIDE)."""
        opened = np.full(len(walk), OUTSIDE, np.int64)
        starts = np.flatnonzero(walk.valid & (walk.tags == _START))
        _, read, fields = READERS[_START]
        opened[starts] = dict(walk.read(starts, read, fields))["xid"].to_numpy(zero_copy_only=False)
        return opened

    def _read_relations(self, index: BatchIndex, scopes: Numbers) -> list[RowError]:
        errors = []
        for row in np.flatnonzero(index.valid & _DESCRIBES[index.tags]).tolist():
            inside = scopes[row] != OUTSIDE
            message = parse(index.payload(row), self.proto_version, self.streaming, inside)
            try:
                self.timeline.read(ControlMessage(self._next_seq + row, int(scopes[row]) if inside else None, message))
            except PgoutputError as error:
                errors.append(RowError(row, error))
        return errors

    def _versions(self, index: BatchIndex, scopes: Numbers, errors: list[RowError]) -> tuple[Numbers, Numbers]:
        """Return the rows, each as often as it has tables, and the version of each; what has none is an error."""
        changes = np.flatnonzero(index.valid & IS_ROW[index.tags] & (index.tags != _TRUNCATE))
        oids = index.rows["relation_oid"][changes].astype(np.int64)
        rows, tables = self._truncates(index, scopes)
        rows, oids = np.concatenate([changes, rows]), np.concatenate([oids, tables])
        versions = find_versions(self.timeline, oids, scopes[rows], rows + self._next_seq)
        for place in np.flatnonzero(versions == UNDESCRIBED).tolist():
            problem = f"no Relation has described the relation OID {oids[place]} before this row"
            errors.append(RowError(int(rows[place]), ProtocolError(problem)))
        known = versions != UNDESCRIBED
        order = np.argsort(rows[known], kind="stable")
        return rows[known][order], versions[known][order]

    def _truncates(self, index: BatchIndex, scopes: Numbers) -> tuple[Numbers, Numbers]:
        rows: list[int] = []
        tables: list[int] = []
        for row in np.flatnonzero(index.valid & (index.tags == _TRUNCATE)).tolist():
            message = parse(index.payload(row), self.proto_version, self.streaming, scopes[row] != OUTSIDE)
            assert isinstance(message, Truncate)
            rows += [row] * len(message.relation_oids)
            tables += message.relation_oids
        return np.array(rows, np.int64), np.array(tables, np.int64)

    def _table(self, index: BatchIndex, rows: Numbers, version: int, errors: list[RowError]) -> list[TableRows]:
        description = self.timeline.descriptions[version]
        try:
            columns = columns_schema(description)
            check_names(columns)
        except ProtocolError as error:
            errors += [RowError(row, error) for row in rows.tolist()]
            return []
        found = []
        for block in table_rows(index, rows, description, columns, rows_schema(columns)):
            errors += block.errors
            if block.batch is not None:
                found.append(TableRows(description, block.rows, block.batch))
        return found
