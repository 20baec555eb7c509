"""Targets: the files of a change log; damage is reported, or the result has not changed.

Two kinds: a whole file, of which checksums tell what has changed; and what such a file says, with checksums that fit,
as only somebody who means it can write it: that is refused, or can be read without harm.
"""

import io
import json
import tempfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from pgoutput_construct.changelog import ChangeLog, LogWriter
from pgoutput_construct.changelog._index.manifest import Manifest, read_manifest
from pgoutput_construct.changelog._notes.confirmation_note import NOTE_NAME, read_note
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._segment.events import LogEvent
from pgoutput_construct.changelog._segment.footer import DAMAGE, Position
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.registry import readers
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.stream import Session
from pgoutput_construct.wire import Lsn, Timestamp
from tools.fuzz.errors import same
from tools.fuzz.seeds import recordings

__all__ = [
    "SEEDS",
    "Log",
    "read_footer_text",
    "read_index",
    "read_manifest_stream",
    "read_notes",
    "read_segment_file",
    "with_footer",
    "written_log",
]

_ROWS: Final = 120
_KEYS: Final = b"pgoutput_construct", b"pgoutput_construct.crc32", b"pgoutput_construct.index"
_END: Final = b"%016x%08x"
_END_BYTES: Final = 24
_NOTES: Final = {
    NOTE_NAME: b'{"confirmed_lsn": 7, "next_seq": 3, "timeline": 1}',
    "pruned.json": b'{"first_seq": 3, "lsn": 7, "time": 9, "planned": 0}',
    "readers/r.json": b'{"name": "r", "next_seq": 3, "lsn": 7, "time": 1.5, "seconds": null}',
}

_UNSENT: Final[dict[str, Any]] = {"slot": "slot", "publications": ("pub",), "server_version": 180000,
                                  "system_identifier": "1", "database": "db"}  # fmt: skip


@dataclass(frozen=True)
class Log:
    """A log of one segment, as it was written."""

    directory: Path
    segment: str
    content: bytes
    facts: Any


@cache
def written_log() -> tuple[Log, tempfile.TemporaryDirectory[str]]:
    """Return the log, and its temporary directory; it is written once per process."""
    keeper = tempfile.TemporaryDirectory(prefix="fuzz-")
    directory = Path(keeper.name)
    recorded = next(each for each in recordings() if each.options.get("streaming") == "on")
    with LogWriter(LocalStore(directory, durable=False)) as writer:
        writer.use(LogOptions(**recorded.options, **_UNSENT))
        session = Session(**recorded.options)
        for seq, payload in enumerate(recorded.payloads[:_ROWS]):
            scope = OUTSIDE if session.stream_xid is None else session.stream_xid
            states = {name: [state] for name, state in session.state.parameters.items()}
            writer.append(Block.from_payloads([payload], [seq], [seq], session.options, states, [scope]))
            session.parse(payload)
        with patch.object(Timestamp, "now", lambda: Timestamp(9)):  # so that each process has the same bytes
            writer.append_event("connected", Lsn(7), host="h")
        writer.publish(Position(Lsn(7)))
    (path,) = directory.glob("segment-*.parquet")
    for other in directory.iterdir():
        if other != path and other.is_file():
            other.unlink()
    log = Log(directory, path.name, path.read_bytes(), _facts(ChangeLog(directory)))
    return log, keeper


def _facts(log: ChangeLog) -> Any:
    """Return the whole contents of a log."""
    segments = [(each.first_seq, each.last_seq, each.options, each.position) for each in log.segments]
    events = [(event.seq, event.name, event.details) for event in log.events()]
    return list(log.entries()), segments, log.index.whole().table.to_pylist(), events, len(log.descriptions())


def read_segment_file(data: bytes) -> None:
    """Read a segment: it is rejected, or has not changed."""
    log, _ = written_log()
    (log.directory / log.segment).write_bytes(data)
    with suppress(PgoutputError):
        same("what a segment says", [log.facts, _facts(ChangeLog(log.directory))])


def read_footer_text(data: bytes) -> None:
    """Read a segment with another footer, whose checksum is right."""
    log, _ = written_log()
    (log.directory / log.segment).write_bytes(with_footer(log.content, data))
    with suppress(PgoutputError):
        _facts(ChangeLog(log.directory))


def with_footer(content: bytes, text: bytes) -> bytes:
    """Return a segment's file with another footer and its checksum."""
    table, sink = pq.read_table(io.BytesIO(content)), io.BytesIO()
    index = pq.read_metadata(io.BytesIO(content)).metadata[_KEYS[2]]
    with pq.ParquetWriter(sink, table.schema, use_dictionary=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(dict(zip(_KEYS, (text, b"%08x" % zlib.crc32(text), index), strict=True)))
    return sink.getvalue()


def read_index(data: bytes) -> None:
    """Read the index of a segment from an Arrow stream, whose checksum is right."""
    text = b64encode(pa.compress(data, "zstd", asbytes=True)) if data else b""
    content = b"%s %08x" % (text, zlib.crc32(text))
    with suppress(*DAMAGE):
        index = SegmentIndex.from_bytes(content)
        _each(
            index.table.to_pylist,
            lambda: index.transactions,
            lambda: index.open,
            lambda: index.counts,
            lambda: SegmentIndex.from_bytes(index.to_bytes()),
        )


def read_manifest_stream(data: bytes) -> None:
    """Read a manifest from an Arrow stream, whose checksum is right, after the original blocks."""
    log, _ = written_log()
    blocks, _ = _manifest()
    name = f"index-{0:020d}-{9:020d}.arrow"
    (log.directory / name).write_bytes(blocks + data + _END % (len(data), zlib.crc32(data)))
    store = LocalStore(log.directory, durable=False)
    try:
        with suppress(PgoutputError):
            manifest = read_manifest(store, name)
            everything = slice(0, len(manifest))
            list(manifest.segments(store, everything))
            index = manifest.index(everything)
            _each(lambda: index.transactions)
    finally:
        (log.directory / name).unlink()


def read_notes(data: bytes) -> None:
    """Read the small files of a log, and the payload of an event."""
    log, _ = written_log()
    store = LocalStore(log.directory, durable=False)
    (log.directory / "readers").mkdir(exist_ok=True)
    for name, read in ((NOTE_NAME, read_note), ("pruned.json", read_pruned), ("readers/r.json", readers)):
        (log.directory / name).write_bytes(data)
        with suppress(PgoutputError):
            read(store)
        (log.directory / name).unlink()
    with suppress(ValueError):
        LogEvent.parse(1, 2, 3, data)


def _each(*reads: Callable[[], object]) -> None:
    for read in reads:
        with suppress(*DAMAGE):
            read()


def _whole() -> Log:
    """Return the log, with its segment as it was written."""
    log, _ = written_log()
    (log.directory / log.segment).write_bytes(log.content)
    return log


def _footers() -> list[bytes]:
    text = pq.read_metadata(io.BytesIO(_whole().content)).metadata[_KEYS[0]]
    return [text, json.dumps(json.loads(text), indent=1).encode()]


def _indexes() -> list[bytes]:
    text = pq.read_metadata(io.BytesIO(_whole().content)).metadata[_KEYS[2]].rpartition(b" ")[0]
    return [pa.CompressedInputStream(pa.BufferReader(b64decode(text)), "zstd").read()]


@cache
def _manifest() -> tuple[bytes, bytes]:
    """Return the blocks and the stream of a manifest."""
    log = _whole()
    known = ChangeLog(log.directory)
    store = LocalStore(log.directory, durable=False)
    path = log.directory / Manifest.from_segments(known.segments, known.index.whole()).write(store).name
    content = path.read_bytes()
    path.unlink()
    begin = -_END_BYTES - int(content[-_END_BYTES:-8], 16)
    return content[:begin], content[begin:-_END_BYTES]


SEEDS: Final[Mapping[str, Callable[[], Iterable[bytes]]]] = {
    "segment": lambda: [_whole().content],
    "footer": _footers,
    "index": _indexes,
    "manifest": lambda: [_manifest()[1]],
    "notes": lambda: [*_NOTES.values(), b'{"event": "connected", "host": "h"}'],
}
"""The functions that return the seeds of each target."""
