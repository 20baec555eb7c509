"""A manifest: the footers of many segments in one file, so that a log of 10,000 segments opens with a few reads.

Opening a log needs the footer of every segment: its options, position and index. On an object store each one is a
request of tens of milliseconds. So a capture also writes the footers of each 128 segments into a small manifest, and
merges each 128 small manifests into a large one (``indexes.ManifestKeeper``): opening a log reads at most 128 footers
and 128 small manifests, and a footer is copied twice in its life.

A manifest is a cache. A segment counts by its manifest only while the file has the same name and size; a damaged
manifest is skipped; deleting all of them costs time, and nothing else. It is checked against the footers by
``changelog.verify``.

The file has two parts. First blocks: the transactions that ended, compressed, some segments each, which are read when
a reader asks for them (``Blocks``), so that opening a log of a million transactions takes no memory for them. Then an
Arrow stream with a row per segment: everything else. It ends with the length of the stream and its CRC-32.

What is open and in force at the end of a segment is not included (LEFT_OUT): only the last segment's is ever needed,
and that is read from its own footer.
"""

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._index.log_index import LISTS, LOG_SCHEMA, Ended, LogIndex, parts_of
from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.footer import DAMAGE, FileName, Position, Segment, footer_content, options_of
from pgoutput_construct.changelog._segment.segment_index import COLUMNS, SegmentIndex, check_entries
from pgoutput_construct.changelog._segment.size_limits import read_stream
from pgoutput_construct.changelog._store.json_notes import from_json, parse_json
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn

__all__ = ["LEFT_OUT", "Blocks", "Manifest", "manifest_names", "read_manifest"]


_BLOCK_COLUMNS: Final = ("block_start", "block_bytes", "block_check")
"""The offset of a segment's block in the file, its size in bytes, and its CRC-32."""

_SCHEMA: Final = pa.schema([("transactions", LISTS)])


def _write_blocks(file: BinaryIO, ended: Ended, counts: Numbers) -> dict[str, Numbers]:
    """Write transactions at the beginning of a file, ``counts`` per segment; return each segment's _BLOCK_COLUMNS."""
    columns = {name: np.zeros(len(ended), np.int64) for name in _BLOCK_COLUMNS}
    start = 0
    for first, end in parts_of(counts):
        content = _packed(pa.table([ended[first:end].lists()], _SCHEMA))
        file.write(content)
        for name, number in zip(_BLOCK_COLUMNS, (start, len(content), zlib.crc32(content)), strict=True):
            columns[name][first:end] = number
        start += len(content)
    return columns


@dataclass(frozen=True)
class Blocks:
    """The blocks of a manifest's file: the ``Source`` of the transactions of its segments."""

    store: LogStore
    name: str
    table: pa.Table
    """_BLOCK_COLUMNS, one row per segment."""

    def read(self, first: int, end: int) -> pa.ChunkedArray:
        """Return the transactions of segments ``first`` to ``end`` (exclusive).

        Raises ChangeLogError if the file is damaged or missing.
        """
        starts, sizes, checks = (self.table[name].to_numpy() for name in _BLOCK_COLUMNS)
        chunks = []
        while first < end:
            begin, stop = (int(np.searchsorted(starts, starts[first], side)) for side in ("left", "right"))
            block = _block(self.store, self.name, int(starts[first]), int(sizes[first]), int(checks[first]))
            until = min(stop, end)
            chunks.append(block.slice(first - begin, until - first))
            first = until
        return pa.chunked_array(chunks, LISTS)


@lru_cache(maxsize=1)  # segments are requested one after the other
def _block(store: LogStore, name: str, start: int, size: int, check: int) -> pa.ListArray:
    with store.explained("cannot be read", name), store.open(name) as file:
        file.seek(start)
        content = file.read(size)
    try:
        if zlib.crc32(content) != check:
            raise ValueError(f"the checksum of {size} bytes at offset {start} does not match")
        table = read_stream(content, _SCHEMA)
        check_entries(table)
        (lists,) = table["transactions"].chunks
    except DAMAGE as error:
        path = store.path_of(name)
        raise ChangeLogError(f"{path}: damaged: {error}; remove it: it is a cache of the segments' footers") from error
    return lists


def _packed(table: pa.Table) -> pa.Buffer:
    """Return a table as a compressed Arrow stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(table.combine_chunks())
    return sink.getvalue()


LEFT_OUT: Final = ("open", "in_force")
"""Columns of the index that a manifest does not contain."""

_NAME: Final = re.compile(r"index-(\d{20})-(\d{20})\.arrow")
_MANIFEST_SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()),
        ("size", pa.int64()),
        ("payload_bytes", pa.int64()),
        ("checks", pa.list_(pa.int64())),
        ("options", pa.string()),
        ("footer", pa.string()),
        *((name, pa.int64()) for name in _BLOCK_COLUMNS),
        *(field for field in LOG_SCHEMA if field.name not in LEFT_OUT),
    ]
)
_OWN: Final = ("name", "size", "payload_bytes", "first_seq", "last_seq")
"""Fields of a segment that are columns."""
_FILLED: Final = (*_OWN, "checks", "options", "footer", *_BLOCK_COLUMNS, "complete_lsn")
"""Columns that are never null."""
_SEGMENT: Final = r"^segment-\d{20}-\d{20}\.parquet$"
_DESCRIBED: Final = ("footer", "checks", "complete_lsn", "events", *_OWN)
"""Columns that describe a segment, without its options."""
_END: Final = b"%016x%08x"
"""The end of a file: the length of the preceding Arrow stream in bytes, and its CRC-32."""
_END_BYTES: Final = 24
_CHECK_BYTES: Final = 8
_TAIL_BYTES: Final = 2**16
"""Bytes read from the end of a file first; mostly they contain the whole stream."""


@dataclass(frozen=True)
class _Rest:
    """The JSON in the column ``footer``."""

    prepared: Mapping[str, int]
    finished: tuple[int, ...]
    columns: tuple[str, ...]
    said_options: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """The footers of consecutive segments."""

    table: pa.Table = field(repr=False)
    """One row per segment: its footer, with options and rare fields as JSON, and its index."""
    ended: Ended
    """The transactions of the segments."""
    size: int = 0
    """The size in bytes of the file that it was read from; 0 for none."""

    @classmethod
    def from_segments(cls, described: Iterable[Segment], index: SegmentIndex) -> "Manifest":
        """Return the manifest of segments; ``index`` has a row for each."""
        segments = list(described)
        contents = [footer_content(segment) for segment in segments]
        columns = {name: pa.array([getattr(segment, name) for segment in segments]) for name in _OWN}
        columns["checks"] = pa.array([list(segment.checks.values()) for segment in segments], pa.list_(pa.int64()))
        columns["options"] = pa.array([json.dumps(content.pop("options"), sort_keys=True) for content in contents])
        columns["footer"] = pa.array([_rest_of(content) for content in contents])
        columns |= {name: pa.array(np.zeros(len(segments), np.int64)) for name in _BLOCK_COLUMNS}  # not in a file yet
        known = LogIndex.over(index)
        arrays = (
            columns[field.name] if field.name in columns else known.table[field.name] for field in _MANIFEST_SCHEMA
        )
        return cls(pa.table(list(arrays), _MANIFEST_SCHEMA), known.ended)

    @classmethod
    def concat(cls, manifests: Iterable["Manifest"]) -> "Manifest":
        """Concatenate manifests of consecutive segments."""
        parts = list(manifests)
        return cls(pa.concat_tables([part.table for part in parts]), Ended.concat(part.ended for part in parts))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def name(self) -> FileName:
        """The name of its file."""
        first, last = self.table["first_seq"][0].as_py(), self.table["last_seq"][-1].as_py()
        return FileName(first, last, f"index-{first:020d}-{last:020d}.arrow")

    def numbers(self, name: str) -> Numbers:
        """Return one of its integer columns."""
        numbers: Numbers = self.table[name].to_numpy()
        return numbers

    def events(self, rows: slice) -> int:
        """Return the number of events in the segments of some rows."""
        return int(pc.sum(pc.list_value_length(self.table["events"][rows])).as_py())

    def options(self, rows: slice) -> list[tuple[int, LogOptions]]:
        """Return the options of the segments in some rows, each with the index of the first row that has them."""
        codes, options = self._options
        starts = np.flatnonzero(np.diff(codes[rows], prepend=-1)).tolist()
        return [(start, options[codes[rows][start]]) for start in starts]

    @cached_property
    def _options(self) -> tuple[Numbers, list[LogOptions]]:
        """The index of each segment's options, and the distinct options."""
        column = self.table["options"].combine_chunks().dictionary_encode()
        codes: Numbers = column.indices.to_numpy()
        texts = map(parse_json, column.dictionary.to_pylist())
        return codes, [options_of(from_json(dict[str, Any], text)) for text in texts]

    @cached_property
    def _rest(self) -> dict[str, "_Rest"]:
        """The parsed ``footer`` column, by its text: most segments have the same."""
        return {text: from_json(_Rest, parse_json(text)) for text in self.table["footer"].unique().to_pylist()}

    def check(self) -> None:
        """Raise ValueError, or another error of DAMAGE, if the content is inconsistent."""
        if nulls := [name for name in _FILLED if self.table[name].null_count]:
            raise ValueError(f"{', '.join(nulls)} is missing for some segments")
        if not pc.all(pc.match_substring_regex(self.table["name"], _SEGMENT)).as_py():
            raise ValueError("it contains file names that are not those of segments")
        check_entries(self.table)
        starts, sizes = self.numbers("block_start"), self.numbers("block_bytes")
        if starts.min() < 0 or sizes.min() < 0 or (starts > self.size - sizes).any():
            raise ValueError("it has block offsets beyond the end of the file")
        _ = self._options
        footers = self.table["footer"].combine_chunks().dictionary_encode()
        columns = np.array([len(self._rest[text].columns) for text in footers.dictionary.to_pylist()])
        if (columns[footers.indices.to_numpy()] != pc.list_value_length(self.table["checks"]).to_numpy()).any():
            raise ValueError("it is missing column checksums")

    def segments(self, store: LogStore, rows: slice) -> Iterator[Segment]:
        """Yield the segments in some rows, without their indexes."""
        codes, options = self._options
        columns = (self._values(name, rows) for name in _DESCRIBED)
        for code, footer, checks, lsn, events, *own in zip(codes[rows].tolist(), *columns, strict=True):
            rest = self._rest[footer]
            yield Segment(
                store,
                options=options[code],
                position=Position(Lsn(lsn), rest.prepared, rest.finished),
                checks=dict(zip(rest.columns, checks, strict=True)),
                said_options=rest.said_options,
                events=events,
                **dict(zip(_OWN, own, strict=True)),
            )

    def _values(self, name: str, rows: slice) -> list[Any]:
        column = self.table[name][rows]
        values: list[Any] = (pc.list_value_length(column) if name == "events" else column).to_pylist()
        return values

    def index(self, rows: slice) -> LogIndex:
        """Return the index of the segments in some rows; the columns LEFT_OUT are empty."""
        part = self.table[rows]
        nothing = {name: pa.nulls(part.num_rows, pa.list_(COLUMNS[name])) for name in LEFT_OUT}
        columns = [nothing[name] if name in nothing else part[name] for name in LOG_SCHEMA.names]
        return LogIndex(pa.table(columns, LOG_SCHEMA), self.ended[rows])

    def write(self, store: LogStore) -> FileName:
        """Write the file, with its checksums; only one block of transactions is in memory at a time."""
        with store.writing(self.name.name) as file:
            blocks = _write_blocks(file, self.ended, self.numbers("ended"))
            columns = [blocks.get(name, self.table[name]) for name in _MANIFEST_SCHEMA.names]
            content = _packed(pa.table(columns, _MANIFEST_SCHEMA))
            file.write(content)
            file.write(_END % (len(content), zlib.crc32(content)))
        return self.name


def _rest_of(content: dict[str, Any]) -> str:
    """Return the rare fields of a footer as JSON; equal texts are parsed once."""
    position = content["position"]
    rest = {"prepared": position["prepared"], "finished": position["finished"], "columns": list(content["checks"])}
    return json.dumps(rest | {"said_options": content["said_options"]}, sort_keys=True)


def manifest_names(names: Iterable[str]) -> list[FileName]:
    """Return the manifests among files by first seq, the longest of those with the same first seq first."""
    matches = (_NAME.fullmatch(name) for name in names)
    found = [FileName(int(match[1]), int(match[2]), match[0]) for match in matches if match]
    return sorted(found, key=lambda name: (name.first_seq, -name.last_seq))


def read_manifest(store: LogStore, name: str) -> Manifest:
    """Read a manifest without its blocks; raise ChangeLogError for damage, MissingFileError if it does not exist."""
    content, check, size = _read(store, name)
    try:
        if b"%08x" % zlib.crc32(content) != check:
            raise ValueError("its checksum does not match")
        table = read_stream(content, _MANIFEST_SCHEMA)
        if not table.num_rows:
            raise ValueError("it has no segments")
        manifest = Manifest(table, Ended.of(Blocks(store, name, table.select(_BLOCK_COLUMNS)), table.num_rows), size)
        manifest.check()
    except DAMAGE as error:
        path = store.path_of(name)
        raise ChangeLogError(f"{path}: damaged: {error}; remove it: it is a cache of the segments' footers") from error
    return manifest


def _read(store: LogStore, name: str) -> tuple[bytes, bytes, int]:
    """Return the stream in a file, the checksum stored for it, and the size of the file in bytes."""
    with store.explained("cannot be read", name), store.open(name) as file:
        size = file.size()
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
        try:
            length = int(tail[-_END_BYTES:-_CHECK_BYTES], 16)
        except ValueError:  # not a manifest: the checksum will not match
            length = 0
        if len(tail) < length + _END_BYTES <= size:
            file.seek(size - length - _END_BYTES)
            tail = file.read()
    return tail[-length - _END_BYTES : -_END_BYTES], tail[-_CHECK_BYTES:], size
