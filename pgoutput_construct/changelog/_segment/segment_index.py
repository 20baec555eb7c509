"""The index of segments: everything that a reader needs to plan, without the payloads.

It is a table with one row per segment, whose columns are lists: concatenating the tables of many segments gives the
index of all of them, and a footer holds a table of one row. ``index_builder`` builds it.
"""

import re
import threading
import zlib
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pgoutput_construct.changelog._segment.size_limits import decompressed, read_stream
from pgoutput_construct.stream.transaction_reader import COMMITTED
from pgoutput_construct.wire import Lsn

__all__ = [
    "COLUMNS",
    "INDEX_SCHEMA",
    "MOST_FAULTS",
    "BinaryValues",
    "InheritedEvent",
    "SegmentIndex",
    "check_entries",
    "check_index",
    "first_faults",
    "struct_array",
]

_SPANS: Final = pa.list_(pa.struct([("first", pa.int64()), ("last", pa.int64())]))
_XIDS: Final = pa.list_(pa.int64())

COLUMNS: Final[Mapping[str, pa.StructType]] = {
    "transactions": pa.struct(
        [
            ("seq", pa.int64()),  # of the message that ended it
            ("xid", pa.int64()),
            ("gid", pa.string()),
            ("streamed", pa.bool_()),
            ("outcome", pa.string()),
            ("commit_lsn", pa.int64()),
            ("end_lsn", pa.int64()),
            ("commit_time", pa.int64()),
            ("spans", _SPANS),
            ("aborted", _XIDS),
        ]
    ),
    "open": pa.struct(
        [
            ("xid", pa.int64()),
            ("gid", pa.string()),
            ("streamed", pa.bool_()),
            ("final_lsn", pa.int64()),
            ("since", pa.int64()),  # first seq of the span that is open
            ("first_seq", pa.int64()),
            ("since_lsn", pa.int64()),
            ("since_time", pa.int64()),
            ("spans", _SPANS),
            ("aborted", _XIDS),
        ]
    ),
    "descriptions": pa.struct(
        [
            ("seq", pa.int64()),
            ("stream_xid", pa.int64()),
            ("oid", pa.int64()),
            ("payload", pa.binary()),
            ("keywords", pa.string()),  # of parse, as JSON
        ]
    ),
    "inherited": pa.struct(
        [
            ("seq", pa.int64()),
            ("stream_xid", pa.int64()),  # the scope in which it is in force, not in which it was sent
            ("oid", pa.int64()),
            ("payload", pa.binary()),
            ("keywords", pa.string()),
        ]
    ),
    "in_force": pa.struct([("seq", pa.int64()), ("stream_xid", pa.int64()), ("oid", pa.int64())]),
    "changes": pa.struct(
        [("seq", pa.int64()), ("stream_xid", pa.int64()), ("oid", pa.int64()), ("description", pa.int64())]
    ),
    "rows": pa.struct(
        [
            ("span", pa.int64()),
            ("xid", pa.int64()),
            ("oid", pa.int64()),
            ("description", pa.int64()),
            ("tag", pa.uint8()),
            ("count", pa.int64()),
            ("first_seq", pa.int64()),
            ("last_seq", pa.int64()),
        ]
    ),
    "events": pa.struct(
        [
            ("seq", pa.int64()),
            ("name", pa.string()),
            ("lsn", pa.int64()),
            ("time", pa.int64()),
            ("payload", pa.binary()),
        ]
    ),
    "faults": pa.struct([("seq", pa.int64()), ("problem", pa.string())]),
    "snapshots": pa.struct([("number", pa.int32()), ("oid", pa.int64()), ("rows", pa.int64())]),
}
"""The list columns, and the type of their entries."""

INDEX_SCHEMA: Final = pa.schema(
    [
        ("first_seq", pa.int64()),
        ("last_seq", pa.int64()),
        ("complete_lsn", pa.int64()),
        *((name, pa.list_(kind)) for name, kind in COLUMNS.items()),
    ]
)
"""The schema of the index: one row per segment."""


_NULLABLE: Final = frozenset(("gid", "stream_xid", "commit_lsn", "end_lsn", "commit_time", "final_lsn", "since"))
_OWN: Final = frozenset(("transactions", "marked", "events", "descriptions", "faults"))
"""Lists of what is at a seq of the segment itself, in order."""
_ENDED: Final = frozenset(("transactions", "marked"))
_OF_COMMITS: Final = ("commit_lsn", "end_lsn", "commit_time")
_WITH_SPANS: Final = frozenset(("transactions", "marked", "open"))
_ANY_NUMBER: Final = re.compile(r".*(time|xid|walk)")
_LEAST: Final = -3
_MOST: Final = 2**62
"""Seqs, LSNs, OIDs and counts have room for sums. ``span`` and ``description`` have some numbers below 0 for others."""


class InheritedEvent(NamedTuple):
    """An event of a segment that was pruned, whose facts are in force where the log begins now."""

    seq: int
    """Its seq, which is before the first one of the log."""
    name: str
    """What happened."""
    lsn: int
    """The LSN that it is about."""
    time: int
    """When: microseconds since 2000-01-01 UTC."""
    payload: str
    """Its name and details as JSON."""


@dataclass(frozen=True)
class SegmentIndex:
    """The index of consecutive segments."""

    table: pa.Table
    """One row per segment, with INDEX_SCHEMA."""
    inherited_events: tuple[InheritedEvent, ...] = field(default=(), kw_only=True)
    """The events of pruned segments that count in these; empty if they do not begin where a pruned log does."""

    @classmethod
    def from_lists(cls, first_seq: int, last_seq: int, complete_lsn: int, **lists: pa.Array) -> "SegmentIndex":
        """Return the index of one segment.

        Args:
            first_seq: The seq of the segment's first row.
            last_seq: The seq of its last row.
            complete_lsn: The LSN up to which the log is complete with it.
            lists: The entries of each list column; those left out are empty.
        """
        numbers = [pa.array([number], pa.int64()) for number in (first_seq, last_seq, complete_lsn)]
        entries = (lists.get(name, pa.array([], kind)) for name, kind in COLUMNS.items())
        columns = [pa.ListArray.from_arrays(pa.array([0, len(array)], pa.int32()), array) for array in entries]
        return cls(pa.Table.from_arrays([*numbers, *columns], schema=INDEX_SCHEMA))

    @classmethod
    def concat(cls, indexes: Iterable["SegmentIndex"]) -> "SegmentIndex":
        """Concatenate the indexes of consecutive segments."""
        return cls(pa.concat_tables([pa.Table.from_batches([], INDEX_SCHEMA), *(index.table for index in indexes)]))

    @classmethod
    def from_bytes(cls, content: bytes) -> "SegmentIndex":
        """Parse the result of ``to_bytes``; raise ValueError or an Arrow error for anything else."""
        index = _recent.get(content)
        if index is None:
            table = read_stream(decompressed(b64decode(check_index(content))), INDEX_SCHEMA)
            check_entries(table)
            index = cls(table)
            _remember(content, index)
        return index

    def to_bytes(self) -> bytes:
        """Return the index as text for a Parquet footer: an Arrow stream, compressed, in base64, and its CRC-32."""
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as packed, pa.ipc.new_stream(packed, INDEX_SCHEMA) as stream:
            stream.write_table(self.table)
        text = b64encode(sink.getvalue())
        return b"%s %08x" % (text, zlib.crc32(text))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def first_seq(self) -> int:
        """The seq of the first row."""
        return int(self.table["first_seq"][0].as_py())

    @property
    def last_seq(self) -> int:
        """The seq of the last row."""
        return int(self.table["last_seq"][-1].as_py())

    @property
    def complete_lsn(self) -> Lsn:
        """All transactions that end before this LSN are in the log."""
        return Lsn(self.table["complete_lsn"][-1].as_py())

    def entries(self, name: str, of: slice | None = None) -> pa.Table:
        """Return the entries of a list column (``COLUMNS``) as a table, of all segments or of some."""
        return pa.Table.from_struct_array(pc.list_flatten(self._lists(name, of)))

    def located(self, name: str) -> tuple[pa.Table, NDArray[np.int64]]:
        """Return the entries of a list column as a table, and the index of the segment that each belongs to."""
        # The entries stay in the chunks of their segments: combining the chunks would copy them.
        lists = self._lists(name, None)
        counts = pc.list_value_length(lists).fill_null(0).to_numpy()
        return pa.Table.from_struct_array(pc.list_flatten(lists)), np.repeat(np.arange(len(self)), counts)

    def _lists(self, name: str, of: slice | None) -> pa.ChunkedArray:
        return self.table[name] if of is None else self.table[name][of]

    @property
    def transactions(self) -> pa.Table:
        """The transactions that ended in these segments, with the spans of their messages, in the order of their ends.

        Times are microseconds since 2000-01-01 UTC. Transactions that a lost connection left incomplete are not
        included: the server sends them again.
        """
        return self.entries("transactions")

    @property
    def marked(self) -> pa.Table:
        """The transactions that planning needs, possibly with others: see ``LogIndex.marked``."""
        return self.transactions

    @property
    def open(self) -> pa.Table:
        """The transactions without an outcome at the end of the last segment: open, streamed, or prepared (``gid``).

        Transactions that a lost connection left incomplete are not included.
        """
        return self.entries("open", slice(len(self) - 1, None))

    @property
    def counts(self) -> pa.Table:
        """The number of rows by relation OID and tag, committed or not; a truncate counts once per table."""
        rows = self.entries("rows").group_by(["oid", "tag"], use_threads=False).aggregate([("count", "sum")])
        return rows.rename_columns(["oid", "tag", "rows"]).sort_by([("oid", "ascending"), ("tag", "ascending")])


_RECENT_INDEXES: Final = 256
_RECENT_BYTES: Final = 2**16
_recent: dict[bytes, SegmentIndex] = {}
"""Small indexes that were parsed last: planning asks for each twice, and for those of the last footers, which no
manifest has yet, again with each batch."""
_lock: Final = threading.Lock()


def _remember(content: bytes, index: SegmentIndex) -> None:
    if len(content) + index.table.nbytes <= _RECENT_BYTES:
        with _lock:
            while len(_recent) >= _RECENT_INDEXES:
                del _recent[next(iter(_recent))]
            _recent[content] = index


class BinaryValues:
    """The values of a binary or string column as views of its buffers; a scalar of Arrow would be a copy."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        """Take a column without nulls."""
        self._chunks = column.chunks
        self._starts = [*accumulate(map(len, self._chunks), initial=0)]
        self._open: dict[int, tuple[memoryview, memoryview]] = {}

    def __getitem__(self, index: int) -> memoryview:
        number = bisect_right(self._starts, index) - 1
        if number not in self._open:
            chunk = self._chunks[number]
            _, offsets, values = chunk.buffers()
            self._open[number] = memoryview(offsets).cast("i")[chunk.offset :], memoryview(values or b"")
        bounds, content = self._open[number]
        index -= self._starts[number]
        return content[bounds[index] : bounds[index + 1]]


def check_index(content: bytes) -> bytes:
    """Return the text of an index without its checksum; raise ValueError if that does not match."""
    text, _, check = content.rpartition(b" ")
    if check != b"%08x" % zlib.crc32(text):
        raise ValueError("the checksum of its index does not match")
    return text


def check_entries(table: pa.Table) -> None:
    """Raise ValueError where numbers and lists of an index are missing, or beyond what a log can have.

    Whoever plans computes with them without a check of each.
    """
    for name in table.schema.names:
        for chunk in table[name].chunks:
            _check_values(name, chunk)
    if "first_seq" in table.schema.names:
        _check_seqs(table)


def _check_seqs(table: pa.Table) -> None:
    firsts, lasts = (table[name].to_numpy() for name in ("first_seq", "last_seq"))
    for name in (_OWN | _WITH_SPANS).intersection(table.schema.names):
        begin = 0
        for chunk in table[name].chunks:
            entries, begin, before = chunk.flatten(), begin + len(chunk), begin
            if not len(entries):
                continue
            counts = np.diff(chunk.offsets.to_numpy())
            first, last = (np.repeat(seqs[before:begin], counts) for seqs in (firsts, lasts))
            seqs = entries.field("seq").to_numpy() if name in _OWN else first
            if ((seqs < first) | (seqs > last)).any() or (seqs[1:] < seqs[:-1]).any():
                raise ValueError(f"the seqs of {name} are not in order, or not in their segments")
            if name in _ENDED:
                _check_commits(name, entries)
            if name in _WITH_SPANS:
                _check_spans(name, entries.field("spans").flatten(), int(last.max()))


def _check_commits(name: str, entries: pa.StructArray) -> None:
    missing = [each for each in _OF_COMMITS if entries.field(each).null_count]
    committed = pc.equal(entries.field("outcome"), COMMITTED) if missing else None
    for each in missing:
        if pc.any(pc.and_(committed, entries.field(each).is_null())).as_py():
            raise ValueError(f"{each} of committed {name} is missing")


def _check_spans(name: str, spans: pa.StructArray, end: int) -> None:
    first, last = (spans.field(bound).to_numpy() for bound in ("first", "last"))
    if ((first < 0) | (first > last) | (last > end)).any():
        raise ValueError(f"{name} have spans that are not in the log")


def _check_values(name: str, values: pa.Array) -> None:
    if values.null_count and name not in _NULLABLE:
        raise ValueError(f"{name} is missing")
    if not len(values):
        return
    if pa.types.is_list(values.type):
        _check_values(f"an entry of {name}", values.flatten())
    elif pa.types.is_struct(values.type):
        for number, part in enumerate(values.type):
            _check_values(part.name, values.field(number))
    elif pa.types.is_integer(values.type) and not _ANY_NUMBER.fullmatch(name):
        numbers = values.drop_null().to_numpy() if values.null_count else values.to_numpy()
        if len(numbers) and not _LEAST <= int(numbers.min()) <= int(numbers.max()) <= _MOST:
            raise ValueError(f"{name} is {numbers.min()} to {numbers.max()}")


def struct_array(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Array:
    """Return entries of a list column as an Arrow array."""
    return pa.array(list(rows), COLUMNS[name])


MOST_FAULTS: Final = 100
"""Of a segment with as many, readers of tables read the rest themselves: see ``reader.refuse_unread``."""


def first_faults(seqs: Mapping[str, int]) -> pa.Array:
    """Return the first MOST_FAULTS entries of ``faults``, given the first seq of each problem."""
    found = sorted((seq, problem) for problem, seq in seqs.items())
    return struct_array("faults", ({"seq": seq, "problem": problem} for seq, problem in found[:MOST_FAULTS]))
