"""The footer of a segment's file: options, position, checksums and index in Parquet's metadata; and the file's name.

A name has the first and the last seq, so a directory listing alone says which segments cover others (``chosen``).
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.changelog._segment.segment_index import check_index
from pgoutput_construct.changelog._segment.size_limits import open_parquet
from pgoutput_construct.changelog._store.json_notes import from_json, parse_json
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.log_options import LOG_FORMAT, LogOptions
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn

__all__ = [
    "DAMAGE",
    "FileName",
    "NamedSegments",
    "Position",
    "Segment",
    "chosen",
    "chosen_segments",
    "damaged",
    "footer_content",
    "footer_index",
    "footer_pairs",
    "options_of",
    "read_footer",
    "read_tail",
    "segment_name",
]


_KEY = b"pgoutput_construct"
_CHECK = b"pgoutput_construct.crc32"
_INDEX = b"pgoutput_construct.index"
DAMAGE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError)


@dataclass(frozen=True)
class Position:
    """How far the log is complete: where a capture resumes."""

    complete_lsn: Lsn = field(default_factory=Lsn)
    """All transactions that end before this LSN are in the log."""
    prepared: Mapping[str, int] = field(default_factory=dict)
    """Prepared transactions that are neither committed nor rolled back in the log: gid -> end LSN of the PREPARE."""
    finished: tuple[int, ...] = ()
    """The end LSNs of PREPAREs whose transactions were committed or rolled back most recently."""


_ELSEWHERE: Final = {"store", "name", "size", "index"}
_TAIL_BYTES: Final = 2**16
_ENDING_BYTES: Final = 8
"""A Parquet file ends with the footer's length and the magic bytes."""


@dataclass(frozen=True)
class Segment:
    """One file of the log, as its own footer describes it."""

    store: LogStore
    """The store of the log."""
    name: str
    """The file's name."""
    options: LogOptions
    """The options of the capture."""
    first_seq: int
    """The seq of its first row."""
    last_seq: int
    """The seq of its last row; there are no gaps between."""
    position: Position
    """How far the log is complete with this segment."""
    checks: dict[str, int]
    """CRC-32 of each column's values."""
    events: int = 0
    """The number of rows that are events."""
    said_options: tuple[str, ...] = ()
    """The options whose change is recorded by an event in it."""
    payload_bytes: int = 0
    """The sum of the payloads' sizes, in bytes."""
    size: int = 0
    """The size of the file, in bytes."""
    index: bytes | None = field(default=None, repr=False, compare=False)
    """Its index as in the footer; None if it is in a manifest."""

    @property
    def path(self) -> str:
        """Its path or URL, without credentials, for messages."""
        return self.store.path_of(self.name)

    @property
    def rows(self) -> int:
        """The number of rows: messages and events."""
        return self.last_seq - self.first_seq + 1


def footer_content(segment: Segment) -> dict[str, Any]:
    """Return the footer of a segment without its index, as values of JSON."""
    content = {known.name: getattr(segment, known.name) for known in fields(segment) if known.name not in _ELSEWHERE}
    return content | {"options": asdict(segment.options), "position": asdict(segment.position)}


def footer_pairs(segment: Segment) -> dict[bytes, bytes]:
    """Return the footer of a segment as key-value metadata of Parquet."""
    text = json.dumps(footer_content(segment)).encode()
    index = {} if segment.index is None else {_INDEX: segment.index}
    return {_KEY: text, _CHECK: b"%08x" % zlib.crc32(text), **index}


def footer_index(metadata: Mapping[bytes, bytes] | None) -> bytes:
    """Return the index in the metadata of a segment's file; raise KeyError if it has none."""
    return (metadata or {})[_INDEX]


def read_footer(store: LogStore, name: "FileName", size: int) -> Segment:
    """Read the footer of a segment's file.

    Args:
        store: The store of the log.
        name: The file, and the seqs that its name promises.
        size: The size of the file, in bytes.

    Raises:
        ChangeLogError: The footer is damaged, or is that of another segment.
        MissingFileError: The file does not exist.
    """
    tail = read_tail(store, name.name)
    try:
        metadata = open_parquet(pa.BufferReader(tail)).metadata
        pairs = metadata.metadata or {}
        if _KEY not in pairs or _CHECK not in pairs:
            raise ValueError("it has no footer of a change log")
        if pairs[_CHECK] != b"%08x" % zlib.crc32(pairs[_KEY]):
            raise ValueError("the checksum of its footer does not match")
        content = from_json(_Content, parse_json(pairs[_KEY]))
        if _INDEX not in pairs:
            raise ValueError("its footer has no index")
        check_index(pairs[_INDEX])
        given = vars(content) | {"options": options_of(content.options)}
        segment = Segment(store, name.name, size=size, index=pairs[_INDEX], **given)
        bounds = segment.first_seq, segment.last_seq
        if (name.first_seq, name.last_seq) != bounds or metadata.num_rows != segment.rows:
            is_of = segment_name(*bounds)
            raise ValueError(f"its footer is that of {is_of} with {segment.rows} rows")
        if not (0 <= segment.events <= segment.rows and segment.payload_bytes >= 0):
            raise ValueError(f"its footer has {segment.events} events and {segment.payload_bytes} bytes of payloads")
    except DAMAGE as error:
        raise damaged(store.path_of(name.name), error) from error
    return segment


def read_tail(store: LogStore, name: str) -> bytes:
    """Read the end of a segment's file, which contains the footer, without reading the rows."""
    tail = store.read(name, last=_TAIL_BYTES)
    footer = int.from_bytes(tail[-_ENDING_BYTES:-4], "little") + _ENDING_BYTES
    return store.read(name, last=footer) if footer > len(tail) == _TAIL_BYTES else tail


@dataclass(frozen=True)
class _Content:
    """The JSON of a footer."""

    options: Mapping[str, Any]
    first_seq: int
    last_seq: int
    position: Position
    checks: dict[str, int]
    events: int
    said_options: tuple[str, ...]
    payload_bytes: int


def options_of(content: Mapping[str, Any]) -> LogOptions:
    """Return the options in a footer; raise ValueError for a log format that this version cannot read."""
    if content.get("log_format") != LOG_FORMAT:
        found = f"{content.get('log_format')!r:.40}"
        raise ValueError(f"it has log format {found}, this version reads {LOG_FORMAT}")
    return from_json(LogOptions, {key: value for key, value in content.items() if value is not None})


def damaged(path: str, error: BaseException) -> ChangeLogError:
    """Return the error for a damaged segment: where, why, and what to do."""
    return ChangeLogError(
        f"segment {path}: damaged, or not of a change log: {error}. Restore it from a backup, or begin a "
        "new log in an empty directory with an initial copy of the tables"
    )


_DIGITS: Final = 20
_ZEROS: Final = 2
"""The leading digits that are always zero, since a seq fits into 64 bits."""
_BASE: Final = 10
_POWERS: Final = _BASE ** np.arange(_DIGITS - _ZEROS, dtype=np.int64)[::-1]


class FileName(NamedTuple):
    """The name of a segment's file, or of a manifest's, and the first and the last seq in it."""

    first_seq: int
    last_seq: int
    name: str


@dataclass(frozen=True, eq=False)
class NamedSegments:
    """Segments in the order of the log, known by their file names only."""

    first_seq: Numbers
    last_seq: Numbers
    size: Numbers
    """Bytes of the files."""

    def __len__(self) -> int:
        return len(self.first_seq)

    def __getitem__(self, selected: NDArray[Any]) -> "NamedSegments":
        """Return a selection, by indices or by a boolean mask."""
        return NamedSegments(self.first_seq[selected], self.last_seq[selected], self.size[selected])

    def name(self, segment_index: int) -> FileName:
        """Return one segment with its file name."""
        first, last = int(self.first_seq[segment_index]), int(self.last_seq[segment_index])
        return FileName(first, last, segment_name(first, last))

    def names(self) -> list[FileName]:
        """Return all segments with their file names."""
        return [self.name(segment_index) for segment_index in range(len(self))]


def segment_name(first_seq: int, last_seq: int) -> str:
    """Return the file name of a segment."""
    return f"segment-{first_seq:0{_DIGITS}d}-{last_seq:0{_DIGITS}d}.parquet"


def chosen(names: Iterable[str]) -> tuple[list[FileName], list[FileName]]:
    """Return the segments among files, in order, and those covered by a larger one, which a compaction left."""
    counted, covered = chosen_segments(dict.fromkeys(names, 0))
    return counted.names(), covered.names()


def chosen_segments(files: Mapping[str, int]) -> tuple[NamedSegments, NamedSegments]:
    """As ``chosen``, as columns; ``files`` maps names to sizes in bytes."""
    found = _segments(files)
    # Of two with the same first seq, the longer one counts.
    found = found[np.lexsort((-found.last_seq, found.first_seq))]
    ends = np.maximum(found.first_seq, found.last_seq)
    earlier = np.maximum.accumulate(np.concatenate([[-1], ends]))[:-1]
    return found[ends > earlier], found[ends <= earlier]


def _segments(files: Mapping[str, int]) -> NamedSegments:
    """Return the segments among files, unordered: a name is that of seqs 0 to 0 with other digits instead of zeros."""
    template = segment_name(0, 0)
    width = len(template)
    alike = [name for name in files if len(name) == width]
    # As arrays of characters: a regular expression takes half a second for 100,000 names.
    characters = np.array(alike, f"U{width}").view(np.int32).reshape(-1, width) - ord("0")
    expected = np.array(list(template)).view(np.int32) - ord("0")
    is_digit = expected == 0
    fits = np.where(is_digit, (characters >= 0) & (characters < _BASE), characters == expected).all(axis=1)
    digits = characters[:, is_digit].reshape(len(alike), 2, _DIGITS)
    fits &= ~digits[:, :, :_ZEROS].any(axis=(1, 2))
    first, last = (digits[fits, number, _ZEROS:] @ _POWERS for number in range(2))
    return NamedSegments(first, last, np.array([files[name] for name in alike], np.int64)[fits])
