"""The footers of many segments in one file, so that a log of very many opens with few reads."""

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._index.log_index import LISTS, LOG_SCHEMA, Ended, LogIndex, parts_of
from pgoutput_construct.changelog._index.segment_index import COLUMNS, SegmentIndex
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.footer import DAMAGE, Position, Segment, footer_content, of_kinds, options_of
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn

__all__ = ["LEFT_OUT", "Blocks", "Manifest", "ManifestName", "manifest_names", "read_manifest"]


_PLACES: Final = ("block_start", "block_bytes", "block_check")
"""Where the block of a segment stands in the file, how long it is, and its CRC-32."""

_SCHEMA: Final = pa.schema([("transactions", LISTS)])


def _write_blocks(file: BinaryIO, ended: Ended, counts: Numbers) -> dict[str, Numbers]:
    """Write transactions to the begin of a file; return the PLACES of each segment. ``counts`` says how many it has."""
    places = {name: np.zeros(len(ended), np.int64) for name in _PLACES}
    start = 0
    for first, end in parts_of(counts):
        content = _packed(ended[first:end].lists())
        file.write(content)
        for name, number in zip(_PLACES, (start, len(content), zlib.crc32(content)), strict=True):
            places[name][first:end] = number
        start += len(content)
    return places


@dataclass(frozen=True)
class Blocks:
    """The blocks of a file: ``Source`` of its segments."""

    store: LogStore
    name: str
    table: pa.Table
    """PLACES, a row a segment."""

    def read(self, first: int, end: int) -> pa.ChunkedArray:
        """Return the transactions of some segments; raise ChangeLogError for damage, and where the file is gone."""
        starts, sizes, checks = (self.table[name].to_numpy() for name in _PLACES)
        chunks = []
        while first < end:
            begin, stop = (int(np.searchsorted(starts, starts[first], side)) for side in ("left", "right"))
            block = _block(self.store, self.name, int(starts[first]), int(sizes[first]), int(checks[first]))
            until = min(stop, end)
            chunks.append(block.slice(first - begin, until - first))
            first = until
        return pa.chunked_array(chunks, LISTS)


@lru_cache(maxsize=1)  # one segment after another is asked for
def _block(store: LogStore, name: str, start: int, size: int, check: int) -> pa.ListArray:
    with store.explained("cannot be read", name), store.open(name) as file:
        file.seek(start)
        content = file.read(size)
    try:
        if zlib.crc32(content) != check:
            raise ValueError(f"the checksum of {size} bytes from {start} on does not match")
        (batch,) = pa.ipc.open_stream(pa.BufferReader(content))
        batch.validate(full=True)
    except DAMAGE as error:
        place = store.path_of(name)
        raise ChangeLogError(f"{place}: damaged: {error}; remove it: the log's segments say the same") from error
    return batch.column(0)


def _packed(lists: pa.ChunkedArray) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_batch(pa.record_batch([pa.concat_arrays(lists.chunks)], _SCHEMA))
    content: bytes = sink.getvalue().to_pybytes()
    return content


LEFT_OUT: Final = ("open", "in_force")
"""Columns of the index that a manifest does not have."""

_NAME: Final = re.compile(r"index-(\d{20})-(\d{20})\.arrow")
_MANIFEST_SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()),
        ("size", pa.int64()),
        ("payload_bytes", pa.int64()),
        ("checks", pa.list_(pa.int64())),
        ("options", pa.string()),
        ("footer", pa.string()),
        *((name, pa.int64()) for name in _PLACES),
        *(field for field in LOG_SCHEMA if field.name not in LEFT_OUT),
    ]
)
_OWN: Final = ("name", "size", "payload_bytes", "first_seq", "last_seq")
"""Fields of a segment that are columns."""
_FILLED: Final = (*_OWN, "checks", "options", "footer", *_PLACES, "complete_lsn")
"""Columns that have something of each segment."""
_REST: Final = {"prepared": dict, "finished": list, "columns": list, "said_options": list}
"""What is in the column ``footer``."""
_SEGMENT: Final = r"^segment-\d{20}(-\d{20})?\.parquet$"
_DESCRIBED: Final = ("footer", "checks", "complete_lsn", "events", *_OWN)
"""Columns that describe a segment, beside its options."""
_END: Final = b"%016x%08x"
"""What a file ends with: the length of Arrow's stream before it, and its CRC-32."""
_END_BYTES: Final = 24
_CHECK_BYTES: Final = 8
_TAIL_BYTES: Final = 2**16
"""What is read of a file at first; mostly it is enough."""


class ManifestName(NamedTuple):
    """A manifest's file, and which segments it has: those from one seq to another."""

    first_seq: int
    last_seq: int
    name: str


@dataclass(frozen=True)
class Manifest:
    """What is known of consecutive segments."""

    table: pa.Table = field(repr=False)
    """A row a segment: what its footer says, options and what is rarely there as JSON, and its index."""
    ended: Ended
    """The transactions of the segments."""
    size: int = 0
    """Bytes of the file that it was read from, 0 for none."""

    @classmethod
    def of(cls, described: Iterable[Segment], index: SegmentIndex) -> "Manifest":
        """Put together what is known of segments; ``index`` has a row for each."""
        segments = list(described)
        contents = [footer_content(segment) for segment in segments]
        columns = {name: pa.array([getattr(segment, name) for segment in segments]) for name in _OWN}
        columns["checks"] = pa.array([list(segment.checks.values()) for segment in segments], pa.list_(pa.int64()))
        columns["options"] = pa.array([json.dumps(content.pop("options"), sort_keys=True) for content in contents])
        columns["footer"] = pa.array([_rest_of(content) for content in contents])
        columns |= {name: pa.array(np.zeros(len(segments), np.int64)) for name in _PLACES}  # it is in no file yet
        known = LogIndex.over(index)
        arrays = (
            columns[field.name] if field.name in columns else known.table[field.name] for field in _MANIFEST_SCHEMA
        )
        return cls(pa.table(list(arrays), _MANIFEST_SCHEMA), known.ended)

    @classmethod
    def concat(cls, manifests: Iterable["Manifest"]) -> "Manifest":
        """Put manifests of consecutive segments together."""
        parts = list(manifests)
        return cls(pa.concat_tables([part.table for part in parts]), Ended.concat(part.ended for part in parts))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def name(self) -> ManifestName:
        """The name of its file."""
        first, last = self.table["first_seq"][0].as_py(), self.table["last_seq"][-1].as_py()
        return ManifestName(first, last, f"index-{first:020d}-{last:020d}.arrow")

    def numbers(self, name: str) -> Numbers:
        """Return one of its columns of numbers."""
        numbers: Numbers = self.table[name].to_numpy()
        return numbers

    def events(self, rows: slice) -> int:
        """Return how many events the segments in some rows have."""
        return int(pc.sum(pc.list_value_length(self.table["events"][rows])).as_py())

    def options(self, rows: slice) -> list[tuple[int, LogOptions]]:
        """Return the options of the segments in some rows, each with the place among these from which on it holds."""
        codes, options = self._options
        places = np.flatnonzero(np.diff(codes[rows], prepend=-1)).tolist()
        return [(place, options[codes[rows][place]]) for place in places]

    @cached_property
    def _options(self) -> tuple[Numbers, list[LogOptions]]:
        """The options that occur, and which of them each segment has."""
        column = self.table["options"].combine_chunks().dictionary_encode()
        codes: Numbers = column.indices.to_numpy()
        return codes, [options_of(json.loads(text)) for text in column.dictionary.to_pylist()]

    @cached_property
    def _rest(self) -> dict[str, dict[str, Any]]:
        """What is the same in most footers, by its text."""
        return {text: of_kinds(json.loads(text), _REST) for text in self.table["footer"].unique().to_pylist()}

    def check(self) -> None:
        """Raise ValueError, or another error of DAMAGE, where what was read cannot be what was written."""
        self.table.validate(full=True)
        if nulls := [name for name in _FILLED if self.table[name].null_count]:
            raise ValueError(f"it does not say {', '.join(nulls)} of each segment")
        if not pc.all(pc.match_substring_regex(self.table["name"], _SEGMENT)).as_py():
            raise ValueError("it names files that are no segments")
        starts, sizes = self.numbers("block_start"), self.numbers("block_bytes")
        if starts.min() < 0 or sizes.min() < 0 or (starts > self.size - sizes).any():
            raise ValueError("it has blocks that are not in its file")
        _, options = self._options
        if not options or any(rest.keys() != _REST.keys() for rest in self._rest.values()):
            raise ValueError("it does not say what footers say")
        footers = self.table["footer"].combine_chunks().dictionary_encode()
        columns = np.array([len(self._rest[text]["columns"]) for text in footers.dictionary.to_pylist()])
        if (columns[footers.indices.to_numpy()] != pc.list_value_length(self.table["checks"]).to_numpy()).any():
            raise ValueError("it has not a checksum for each column")

    def segments(self, store: LogStore, rows: slice) -> Iterator[Segment]:
        """Yield the segments in some rows as their footers describe them, without their indexes."""
        codes, options = self._options
        columns = (self._values(name, rows) for name in _DESCRIBED)
        for code, footer, checks, lsn, events, *own in zip(codes[rows].tolist(), *columns, strict=True):
            rest = self._rest[footer]
            yield Segment(
                store,
                options=options[code],
                position=Position(Lsn(lsn), rest["prepared"], tuple(rest["finished"])),
                checks=dict(zip(rest["columns"], checks, strict=True)),
                said_options=tuple(rest["said_options"]),
                events=events,
                **dict(zip(_OWN, own, strict=True)),
            )

    def _values(self, name: str, rows: slice) -> list[Any]:
        column = self.table[name][rows]
        values: list[Any] = (pc.list_value_length(column) if name == "events" else column).to_pylist()
        return values

    def index(self, rows: slice) -> LogIndex:
        """Return the index of some of the segments; the columns LEFT_OUT have nothing."""
        part = self.table[rows]
        nothing = {name: pa.nulls(part.num_rows, pa.list_(COLUMNS[name])) for name in LEFT_OUT}
        columns = [nothing[name] if name in nothing else part[name] for name in LOG_SCHEMA.names]
        return LogIndex(pa.table(columns, LOG_SCHEMA), self.ended[rows])

    def write(self, store: LogStore) -> ManifestName:
        """Write it, with its checksums; of the transactions only some are in memory at a time."""
        with store.writing(self.name.name) as file:
            places = _write_blocks(file, self.ended, self.numbers("ended"))
            columns = [places.get(name, self.table[name]) for name in _MANIFEST_SCHEMA.names]
            content = _stream(pa.table(columns, _MANIFEST_SCHEMA))
            file.write(content)
            file.write(_END % (len(content), zlib.crc32(content)))
        return self.name


def _stream(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _MANIFEST_SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(table.combine_chunks())
    return sink.getvalue()


def _rest_of(content: dict[str, Any]) -> str:
    """Return what is the same in most footers, as JSON: it is read once for all that have the same."""
    position = content["position"]
    rest = {"prepared": position["prepared"], "finished": position["finished"], "columns": list(content["checks"])}
    return json.dumps(rest | {"said_options": content["said_options"]}, sort_keys=True)


def manifest_names(names: Iterable[str]) -> list[ManifestName]:
    """Return the manifests among files in the order of the log, the longer ones of those that begin together first."""
    matches = (_NAME.fullmatch(name) for name in names)
    found = [ManifestName(int(match[1]), int(match[2]), match[0]) for match in matches if match]
    return sorted(found, key=lambda name: (name.first_seq, -name.last_seq))


def read_manifest(store: LogStore, name: str) -> Manifest:
    """Read a manifest but for its blocks; raise ChangeLogError for damage, MissingFileError where it is not there."""
    content, check, size = _read(store, name)
    try:
        if b"%08x" % zlib.crc32(content) != check:
            raise ValueError("its checksum does not match")
        table = pa.ipc.open_stream(pa.BufferReader(content)).read_all()
        if not table.schema.equals(_MANIFEST_SCHEMA) or not table.num_rows:
            raise ValueError(f"its columns are {table.schema.names}")
        manifest = Manifest(table, Ended.of(Blocks(store, name, table.select(_PLACES)), table.num_rows), size)
        manifest.check()
    except DAMAGE as error:
        place = store.path_of(name)
        raise ChangeLogError(f"{place}: damaged: {error}; remove it: the log's segments say the same") from error
    return manifest


def _read(store: LogStore, name: str) -> tuple[bytes, bytes, int]:
    """Return the stream in a file, the checksum that it says it has, and the size of the file."""
    with store.explained("cannot be read", name), store.open(name) as file:
        size = file.size()
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
        try:
            length = int(tail[-_END_BYTES:-_CHECK_BYTES], 16)
        except ValueError:  # it is no manifest, or of an earlier version: nothing has its checksum
            length = 0
        if len(tail) < length + _END_BYTES <= size:
            file.seek(size - length - _END_BYTES)
            tail = file.read()
    return tail[-length - _END_BYTES : -_END_BYTES], tail[-_CHECK_BYTES:], size
