"""The file format of the change log: one Parquet segment, written so that damage cannot go unnoticed."""

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pgoutput_construct.changelog.columns import SCHEMA, checksums, upgraded
from pgoutput_construct.changelog.events import OPTIONS_CHANGED, log_events
from pgoutput_construct.changelog.names import PRUNED, SegmentName, chosen, segment_name
from pgoutput_construct.changelog.options import LOG_FORMAT, READABLE_FORMATS, LogOptions
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn

__all__ = ["Position", "Segment", "durable_file", "list_segments", "read_segment", "write_segment"]

_KEY = b"pgoutput_construct"
_CHECK = b"pgoutput_construct.crc32"
_DAMAGE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError)


@dataclass(frozen=True)
class Position:
    """How far the log is complete, which is where a capture resumes."""

    complete_lsn: Lsn = field(default_factory=Lsn)
    """Everything that the server sends before this position is in the log."""
    prepared: Mapping[str, int] = field(default_factory=dict)
    """Prepared transactions of the log that are neither committed nor rolled back: gid -> end of prepare."""
    finished: tuple[int, ...] = ()
    """Ends of the prepares of the latest prepared transactions that are committed or rolled back."""


GROUP_ROWS = 2048
"""Rows in a group of a segment: damage is found in one of them, and the others stay readable."""


@dataclass(frozen=True)
class Segment:
    """One file of the log, as its own footer describes it."""

    path: Path
    """Where it is."""
    options: LogOptions
    """The options of the capture."""
    first_seq: int
    """``seq`` of its first row."""
    last_seq: int
    """``seq`` of its last row; the rows between are without gaps."""
    position: Position
    """How far the log is complete with this segment."""
    checks: dict[str, int]
    """CRC-32 of each column's values."""
    events: int = 0
    """How many of its rows are events."""
    said_options: tuple[str, ...] = ()
    """The options of which its events say that they changed."""

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def rows(self) -> int:
        """How many rows it has: messages and events."""
        return self.last_seq - self.first_seq + 1


def list_segments(directory: Path) -> tuple[Segment, ...]:
    """Read the footers of all segments in order; raise ChangeLogError for a damaged or missing one."""
    names, _ = chosen(path.name for path in directory.glob("segment-*"))
    segments = tuple(_read_footer(directory / segment.name, segment) for segment in names)
    if segments and segments[0].first_seq > (kept := first_kept(directory)):
        raise ChangeLogError(f"{directory}: {_missing(kept, segments[0].first_seq)} before {segments[0].name}")
    for before, after in pairwise(segments):
        if after.first_seq != before.last_seq + 1:
            missing = _missing(before.last_seq + 1, after.first_seq)
            raise ChangeLogError(f"{directory}: {missing} between {before.name} and {after.name}")
        if differences := before.options.differences(after.options, after.said_options):
            raise ChangeLogError(f"{after.path}: not of the same log as {before.name}: {'; '.join(differences)}")
    return segments


def first_kept(directory: Path) -> int:
    """Return the seq at which a log begins, or may begin: 0, or more where older segments were removed on purpose."""
    path = directory / PRUNED
    try:
        return int(json.loads(path.read_text("ascii"))["first_seq"]) if path.exists() else 0
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ChangeLogError(f"{path}: damaged: it says from which seq on the log is kept") from error


def _missing(first: int, end: int) -> str:
    return f"the seqs {first} to {end - 1} are missing: restore the segments that were removed"


def read_segment(segment: Segment) -> pa.Table:
    """Read one segment with its checks; raise ChangeLogError when a byte of what it says has changed."""
    try:
        table = pq.read_table(segment.path, page_checksum_verification=True, use_threads=False, partitioning=None)
        table = upgraded(table)
        if not table.schema.equals(SCHEMA):
            raise ValueError(f"its columns are {table.schema.names}")
        table.validate(full=True)
        if not np.array_equal(table["seq"].to_numpy(), np.arange(segment.first_seq, segment.last_seq + 1)):
            raise ValueError(f"its seqs are not {segment.first_seq} to {segment.last_seq}")
        checks = checksums(table)
        if changed := [name for name, check in segment.checks.items() if checks.get(name) != check]:
            raise ValueError(f"the checksum of {', '.join(changed)} does not match")
    except _DAMAGE as error:
        raise _damaged(_damaged_place(segment), error) from error
    return table


def _damaged_place(segment: Segment) -> str:
    """Say which rows and columns cannot be read: each group of rows has checksums of its own."""
    first, bad = segment.first_seq, []
    try:
        with pq.ParquetFile(segment.path, page_checksum_verification=True) as file:
            for group in range(file.num_row_groups):
                end = first + file.metadata.row_group(group).num_rows
                names = (name for name in file.schema_arrow.names if not _is_readable(file, group, name))
                bad += [(first, end - 1, name) for name in names]
                first = end
    except _DAMAGE:
        return f"{segment.path}"
    if not bad:
        return f"{segment.path}, seq {segment.first_seq} to {segment.last_seq}"
    return f"{segment.path}, seq {bad[0][0]} to {bad[-1][1]}, field {', '.join(sorted({name for *_, name in bad}))}"


def _is_readable(file: pq.ParquetFile, group: int, name: str) -> bool:
    try:
        file.read_row_group(group, columns=[name])
    except _DAMAGE:
        return False
    return True


def write_segment(directory: Path, table: pa.Table, options: LogOptions, position: Position) -> Segment:
    """Write one segment so that it is either complete and durable or not there: beside, fsync, rename, fsync.

    ``table`` has the columns of ``SCHEMA`` and at least one row. Raises ChangeLogError when the file exists.
    """
    first, last = table["seq"][0].as_py(), table["seq"][-1].as_py()
    path = directory / segment_name(first, last)
    options = replace(options, log_format=LOG_FORMAT)
    segment = Segment(path, options, first, last, position, checksums(table), *_told(table))
    if path.exists():
        raise ChangeLogError(f"{path}: exists already, another program writes into this directory")
    settings = {"compression": "zstd", "use_dictionary": False, "write_page_checksum": True}
    try:
        with durable_file(path) as file, pq.ParquetWriter(file, SCHEMA, store_schema=False, **settings) as parquet:
            parquet.write_table(table, row_group_size=GROUP_ROWS)
            parquet.add_key_value_metadata(_footer(segment))
    except (OSError, pa.ArrowException) as error:
        raise ChangeLogError(f"segment {path} cannot be written: {error}") from error
    return segment


@contextmanager
def durable_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that is there under its name, complete and durable, when the block ends, and not before."""
    temporary = path.with_name(f".{path.name.lstrip('.')}.tmp")
    with temporary.open("wb") as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    fsync_directory(path.parent)


def fsync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _footer(segment: Segment) -> dict[bytes, bytes]:
    content = {key: value for key, value in asdict(segment).items() if key != "path"}
    text = json.dumps(content).encode()
    return {_KEY: text, _CHECK: b"%08x" % zlib.crc32(text)}


def _told(table: pa.Table) -> tuple[int, tuple[str, ...]]:
    """Return how many rows are events, and of which options they say that they changed."""
    events = table.filter(table["tag"].is_null())
    named = {name for event in log_events(events) if event.name == OPTIONS_CHANGED for name in event.details}
    return events.num_rows, tuple(sorted(named))


def _read_footer(path: Path, name: SegmentName) -> Segment:
    try:
        metadata = pq.read_metadata(path)
        pairs = metadata.metadata or {}
        if _KEY not in pairs or _CHECK not in pairs:
            raise ValueError("it is not a segment of a change log")
        if pairs[_CHECK] != b"%08x" % zlib.crc32(pairs[_KEY]):
            raise ValueError("the checksum of its footer does not match")
        segment = _segment(path, json.loads(pairs[_KEY]))
        last_named = segment.last_seq if name.last_seq is None else name.last_seq
        if (name.first_seq, last_named) != (segment.first_seq, segment.last_seq) or metadata.num_rows != segment.rows:
            is_of = segment_name(segment.first_seq, segment.last_seq)
            raise ValueError(f"its footer is of {is_of} with {segment.rows} rows")
    except _DAMAGE as error:
        raise _damaged(path, error) from error
    return segment


def _segment(path: Path, content: dict[str, Any]) -> Segment:
    options = content.pop("options")
    if options["log_format"] not in READABLE_FORMATS:
        raise ValueError(f"its format is {options['log_format']}, this program reads {sorted(READABLE_FORMATS)}")
    names = {known.name for known in fields(LogOptions)}
    given = {key: value for key, value in options.items() if key in names and value is not None}
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    position = content.pop("position")
    content["said_options"] = tuple(content.get("said_options", ()))
    lsn, finished = Lsn(position["complete_lsn"]), tuple(position["finished"])
    return Segment(path, LogOptions(**options), position=Position(lsn, position["prepared"], finished), **content)


def _damaged(place: Path | str, error: BaseException) -> ChangeLogError:
    return ChangeLogError(
        f"segment {place}: damaged, or not of a change log: {error}. Restore it from a copy, or begin a "
        "new log in an empty directory with a new copy of the tables"
    )
