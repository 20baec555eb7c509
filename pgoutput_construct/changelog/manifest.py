"""The footers of many segments in one file, so that a log of very many opens with few reads.

A manifest is a cache: what it says of a segment counts when the segment is there with the size that it had, whatever
became of the others; a damaged one is left out. It is written whole and never changed. What only matters of the last
segment of a log (``LEFT_OUT``) is in its own footer alone.
"""

import json
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog.footer import DAMAGE, Position, Segment, footer_content, options_of
from pgoutput_construct.changelog.index import COLUMNS, INDEX_SCHEMA, SegmentIndex
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
_OWN: Final = ("name", "size", "payload_bytes")
"""Fields of a segment that are columns."""
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

    @classmethod
    def of(cls, segments: Sequence[Segment], index: SegmentIndex) -> "Manifest":
        """Put together what is known of segments; ``index`` has a row for each."""
        contents = [footer_content(segment) for segment in segments]
        columns = {name: pa.array([getattr(segment, name) for segment in segments]) for name in _OWN}
        columns["checks"] = pa.array([list(segment.checks.values()) for segment in segments], pa.list_(pa.int64()))
        columns["options"] = pa.array([json.dumps(content.pop("options"), sort_keys=True) for content in contents])
        columns["footer"] = pa.array([_rest(content) for content in contents])
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

    @property
    def sizes(self) -> dict[str, int]:
        """The bytes of each segment's file, by name, in the order of the log."""
        names, sizes = (self.table[name].to_pylist() for name in ("name", "size"))
        return dict(zip(names, sizes, strict=True))

    def segments(self, store: LogStore) -> list[Segment]:
        """Return the segments as their footers describe them, without their indexes."""
        options = {text: options_of(json.loads(text)) for text in self.table["options"].unique().to_pylist()}
        rest = {text: json.loads(text) for text in self.table["footer"].unique().to_pylist()}
        names = ("options", "footer", "checks", "complete_lsn", "first_seq", "last_seq", "events", *_OWN)
        found = []
        for text, footer, checks, lsn, first, last, events, *own in zip(*map(self._column, names), strict=True):
            numbers = dict(zip(_OWN, own, strict=True), first_seq=first, last_seq=last, events=events)
            said = rest[footer]
            position = Position(Lsn(lsn), said["prepared"], tuple(said["finished"]))
            found.append(
                Segment(
                    store,
                    options=options[text],
                    position=position,
                    checks=dict(zip(said["columns"], checks, strict=True)),
                    said_options=tuple(said["said_options"]),
                    **numbers,
                )
            )
        return found

    def _column(self, name: str) -> list[Any]:
        column = self.table[name]
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


def _rest(content: dict[str, Any]) -> str:
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
    return Manifest(table)
