"""The footers of many segments in one file, so that a log of very many opens with few reads.

A manifest is a cache: what it says of a segment counts when the segment is there with the size that it had, whatever
became of the others; a damaged one is left out. It is written whole and never changed. What only matters of the last
segment of a log (``LEFT_OUT``) is in its own footer alone.
"""

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog.block import Numbers
from pgoutput_construct.changelog.footer import DAMAGE, Position, Segment, footer_content, options_of
from pgoutput_construct.changelog.index import COLUMNS, INDEX_SCHEMA, SegmentIndex
from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.changelog.store import LogStore
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn

__all__ = ["LEFT_OUT", "Manifest", "ManifestName", "manifest_names", "read_manifest"]

LEFT_OUT: Final = ("open", "in_force")
"""Columns of the index that a manifest does not have."""

_NAME: Final = re.compile(r"index-(\d{20})-(\d{20})\.arrow")
_SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()),
        ("size", pa.int64()),
        ("payload_bytes", pa.int64()),
        ("checks", pa.list_(pa.int64())),
        ("options", pa.string()),
        ("footer", pa.string()),
        *(field for field in INDEX_SCHEMA if field.name not in LEFT_OUT),
    ]
)
_OWN: Final = ("name", "size", "payload_bytes", "first_seq", "last_seq")
"""Fields of a segment that are columns."""
_DESCRIBED: Final = ("footer", "checks", "complete_lsn", "events", *_OWN)
"""Columns that describe a segment, beside its options."""
_CHECK_BYTES: Final = 8


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
        arrays = (columns[field.name] if field.name in columns else index.table[field.name] for field in _SCHEMA)
        return cls(pa.table(list(arrays), _SCHEMA))

    @classmethod
    def concat(cls, manifests: Iterable["Manifest"]) -> "Manifest":
        """Put manifests of consecutive segments together."""
        return cls(pa.concat_tables([manifest.table for manifest in manifests]))

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
        return {text: json.loads(text) for text in self.table["footer"].unique().to_pylist()}

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

    def index(self, rows: slice) -> SegmentIndex:
        """Return the index of some of the segments; the columns LEFT_OUT have nothing."""
        part = self.table[rows]
        nothing = {name: pa.nulls(part.num_rows, pa.list_(COLUMNS[name])) for name in LEFT_OUT}
        columns = [nothing[name] if name in nothing else part[name] for name in INDEX_SCHEMA.names]
        return SegmentIndex(pa.table(columns, INDEX_SCHEMA))

    def write(self, store: LogStore) -> ManifestName:
        """Write it, with its checksum at the end."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, _SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
            stream.write_table(self.table.combine_chunks())
        content = sink.getvalue()
        with store.writing(self.name.name) as file:
            file.write(content)
            file.write(b"%08x" % zlib.crc32(content))
        return self.name


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
    """Read a manifest; raise ChangeLogError for a damaged one, MissingFileError where it is not there."""
    content = memoryview(store.read(name))
    try:
        if bytes(content[-_CHECK_BYTES:]) != b"%08x" % zlib.crc32(content[:-_CHECK_BYTES]):
            raise ValueError("its checksum does not match")
        table = pa.ipc.open_stream(pa.BufferReader(pa.py_buffer(content[:-_CHECK_BYTES]))).read_all()
        if not table.schema.equals(_SCHEMA) or not table.num_rows:
            raise ValueError(f"its columns are {table.schema.names}")
    except DAMAGE as error:
        place = store.place(name)
        raise ChangeLogError(f"{place}: damaged: {error}; remove it: the log's segments say the same") from error
    return Manifest(table, len(content))
