"""Logs that somebody else has written: what they claim is refused before it is allocated, with the file's name."""

import io
import json
import os
import re
import subprocess
import sys
import zlib
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pgoutput_construct.changelog import ChangeLog, LogWriter, Position, SegmentLimits
from pgoutput_construct.changelog._facts.catalog_readings import table_readings
from pgoutput_construct.changelog._facts.lineage import lineage_of
from pgoutput_construct.changelog._segment.events import (
    BEGUN_ANEW,
    COPIED_TABLE,
    PUBLICATION_FACTS,
    TABLE_FACTS,
    LogEvent,
)
from pgoutput_construct.changelog._segment.segment_index import COLUMNS, INDEX_SCHEMA, SegmentIndex, struct_array
from pgoutput_construct.changelog._segment.segment_schema import SCHEMA
from pgoutput_construct.changelog._segment.segment_writer import _SETTINGS
from pgoutput_construct.changelog._segment.thrift import read_struct
from pgoutput_construct.changelog._store.json_notes import from_json, parse_json
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.compact import CompactionLimits
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn
from tests.spark.logs import log_options

KEYS = b"pgoutput_construct", b"pgoutput_construct.crc32", b"pgoutput_construct.index"
ROWS = 4_000_000
MOST = 500  # MB; the package alone has 150
READ = """
import sys
from pathlib import Path
from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog.compact import CompactionLimits
from pgoutput_construct.errors import ChangeLogError
for directory in sys.argv[1:]:
    try:
        log = ChangeLog(directory)
        log.index.whole()
        log.table(log.segments[0])
    except ChangeLogError as error:
        print(str(error).replace("\\n", " "))
(memory,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(int(memory.split()[1]) >> 10)
"""


def peak(*directories: Path) -> tuple[list[str], int]:
    """Return the errors that reading logs raises, and the peak memory of the process in MB."""
    done = subprocess.run(
        [sys.executable, "-c", READ, *directories], capture_output=True, text=True, check=True, timeout=600
    )
    *errors, memory = done.stdout.splitlines()
    return errors, int(memory)


def written(directory: Path) -> Path:
    """Write a log of one segment, of one event."""
    with LogWriter(LocalStore(directory, durable=False)) as writer:
        writer.use(log_options())
        writer.append_fact("connected", Lsn(7), host="h")
        writer.publish(Position(Lsn(7)))
    return directory


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Such a log."""
    return written(tmp_path)


def rewrite(log: Path, table: pa.Table, index: bytes | None = None, **settings: Any) -> None:
    """Write the segment with other rows, and a footer for them whose checksum is right."""
    (path,) = log.glob("segment-*.parquet")
    known = pq.read_metadata(path).metadata
    content = json.loads(known[KEYS[0]]) | {"last_seq": len(table) - 1, "checks": {}}
    text = json.dumps(content).encode()
    index = SegmentIndex.from_lists(0, len(table) - 1, 7).to_bytes() if index is None else index
    path.unlink()
    path = log / f"segment-{0:020d}-{len(table) - 1:020d}.parquet"
    with pq.ParquetWriter(path, table.schema, store_schema=False, **(_SETTINGS | settings)) as writer:
        writer.write_table(table, row_group_size=len(table))
        writer.add_key_value_metadata(dict(zip(KEYS, (text, b"%08x" % zlib.crc32(text), index), strict=True)))


def rows(payloads: pa.Array) -> pa.Table:
    """Return rows of a segment."""
    numbers, count = {"seq": np.arange(len(payloads))}, len(payloads)
    columns = [
        payloads
        if field.name == "payload"
        else pa.nulls(count, field.type)
        if field.nullable
        else pa.array(numbers.get(field.name, np.zeros(count, np.int64))).cast(field.type)
        for field in SCHEMA
    ]
    return pa.table(columns, SCHEMA)


def packed(stream: pa.Buffer) -> bytes:
    """Return an Arrow stream as the index in a footer."""
    text = b64encode(pa.compress(stream, "zstd", asbytes=True))
    return b"%s %08x" % (text, zlib.crc32(text))


def index_of(count: int, compression: str | None = None) -> pa.Buffer:
    """Return an index with a payload of zeros, as an Arrow stream."""
    event = {"seq": 0, "name": "x", "lsn": 0, "time": 0, "payload": bytes(count)}
    events = pa.array([event], INDEX_SCHEMA.field("events").type.value_type)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, INDEX_SCHEMA, options=pa.ipc.IpcWriteOptions(compression=compression)) as stream:
        stream.write_table(SegmentIndex.from_lists(0, 0, 7, events=events).table)
    return sink.getvalue()


def zeros(count: int) -> pa.Array:
    """Return payloads of nothing."""
    return pa.array([b""]).take(pa.array(np.zeros(count, np.int32)))


def repeated(count: int) -> pa.Array:
    """Return one payload of 64 kB, again and again."""
    return pa.array([bytes(2**16)]).take(pa.array(np.zeros(count, np.int32)))


CLAIMS: dict[str, tuple[Callable[[Path], None], str]] = {
    "rows": (lambda log: rewrite(log, rows(zeros(ROWS))), "bytes claim to be"),
    "a dictionary": (
        lambda log: rewrite(log, rows(repeated(6_000)), use_dictionary=["payload"], column_encoding=None),
        "payload has a dictionary",
    ),
    "zeros": (lambda log: rewrite(log, rows(repeated(6_000)), data_page_size=2**31 - 1), "bytes claim to be"),
    "another encoding": (
        lambda log: rewrite(log, rows(repeated(6_000)), column_encoding={"payload": "DELTA_BYTE_ARRAY"}),
        "not of plain values",
    ),
    "columns": (
        lambda log: rewrite(log, rows(zeros(9)).append_column("x", pa.array([1] * 9))),
        r"it has the columns \['seq'.*'x'\]",
    ),
    "an index": (lambda log: rewrite(log, rows(zeros(1)), packed(index_of(300 * 2**20))), "bytes claim to be"),
    "an index within": (
        lambda log: rewrite(log, rows(zeros(1)), packed(index_of(300 * 2**20, "zstd"))),
        "bytes claim to be",
    ),
}


@pytest.mark.slow
def test_what_segments_claim(tmp_path: Path) -> None:
    """Rows, pages, dictionaries and indexes that are a thousand times as large as the file."""
    logs = [written(tmp_path / name) for name in CLAIMS]
    for log, (change, _) in zip(logs, CLAIMS.values(), strict=True):
        change(log)
    errors, memory = peak(*logs)
    for error, (_, reason) in zip(errors, CLAIMS.values(), strict=True):
        assert re.search(rf"segment-0.*: damaged, .*: .*{reason}", error)
    assert memory < MOST


@pytest.mark.slow
def test_large_segments_are_read(log: Path) -> None:
    """As many equal rows as a compaction puts into one segment; and columns that another program has compressed."""
    rewrite(log, rows(repeated(2_000)), compression="snappy")
    opened = ChangeLog(log)
    assert opened.table(opened.segments[0]).num_rows == 2_000


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[" * 10**5, "nested too deeply"),
        ('{"first_seq": 1e999}', "not a finite number"),
        ('{"first_seq": NaN}', "not a finite number"),
        ('{"first_seq": true}', "first_seq: expected an integer, not True"),
        (f'{{"first_seq": {2**70}}}', "does not fit into 64 bits"),
        (f'{{"first_seq": 0, "lsn": {2**70}}}', "lsn: the number does not fit into 64 bits"),
        ('{"first_seq": 0, "copied": [1, "x"]}', r"copied: \[1\]: expected an integer, not 'x'"),
        ('{"first_seq": 0, "publications": [[1]]}', r"publications: \[0\]: expected a list of 5, not list"),
        ('{"first_seq": 0, "publications": [[1, "\\ud800", 1, 1, "x"]]}', "surrogates"),
        ("{}", "first_seq is missing"),
        ("[]", "expected an object, not list"),
        (" " * 2**26 + "{}", "has 67108866 bytes"),
    ],
)
def test_notes_are_read_within_limits(content: str, reason: str, log: Path) -> None:
    """Numbers, depth, size and types of what JSON says."""
    (log / "pruned.json").write_text(content)
    with pytest.raises(ChangeLogError, match=rf"pruned\.json: .*{reason}"):
        ChangeLog(log)


@pytest.mark.parametrize("name", ["pruned.json", ".identity.json", ".file-mode", ".x.tmp"])
def test_what_is_no_regular_file(name: str, log: Path) -> None:
    """A pipe has no reader and no writer, a device no end: nobody waits for them, and no link leads out of the log."""
    (log / name).unlink(missing_ok=True)
    os.mkfifo(log / name)
    if name == ".x.tmp":
        LogWriter(log).close()
        assert not (log / name).exists()
        return
    with pytest.raises(ChangeLogError, match=f"{name}: cannot be read: it is not a regular file"):
        if name == "pruned.json":
            ChangeLog(log)
        with LogWriter(log) as writer:
            writer.append_fact("x", Lsn(7))
            writer.publish(Position(Lsn(8)))


def test_temporary_files_are_no_links(log: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whoever can create a file in a log cannot have another one overwritten."""
    other = tmp_path_factory.mktemp("other") / "file"
    other.write_text("content")
    (log / ".pruned.json.tmp").symlink_to(other)
    with pytest.raises(ChangeLogError, match=r"pruned\.json: cannot be written"):
        LocalStore(log).write("pruned.json", b"{}")
    assert other.read_text() == "content"


READING = {"snapshot": [1, 2, []], "since": 0, "unchanged": 0}
TABLE = {"oid": 1, "schema": "s", "name": "n", **READING}
COPY = {"oid": 1, "schema": "s", "table": "n", "chunks": [0, 0], "rows": 1, "xmin": 1, "xmax": 2, "xip": []}
COPY |= {"place_lsn": 1, "contained": [], "sees_until": 1}
EVENTS: list[tuple[str, dict[str, Any], str]] = [
    (TABLE_FACTS, TABLE | {"oid": None}, "oid: expected an integer, not None"),
    (TABLE_FACTS, {**READING, "oid": 1, "schema": "s"}, "name is missing"),
    (TABLE_FACTS, TABLE | {"snapshot": [1, 2]}, "snapshot: expected a list of 3"),
    (TABLE_FACTS, TABLE | {"columns": [{"number": 1}, {"name": "x"}]}, r"columns: \[1\]: number is missing"),
    (
        TABLE_FACTS,
        TABLE | {"columns": [{"number": 1, "missing": 7}]},
        "missing: expected null|missing: expected a string",
    ),
    (TABLE_FACTS, TABLE | {"types": [{"type": 1}]}, r"types: \[0\]: columns is missing"),
    (PUBLICATION_FACTS, READING, "publication is missing"),
    (PUBLICATION_FACTS, {"publication": "p", **READING, "tables": [{"oid": 1}]}, r"tables: \[0\]: name is missing"),
    (COPIED_TABLE, COPY | {"chunks": [0, 2**70]}, "the number does not fit into 64 bits"),
    (COPIED_TABLE, {name: value for name, value in COPY.items() if name != "place_lsn"}, "place_lsn is missing"),
    (COPIED_TABLE, {}, "chunks is missing"),
    (BEGUN_ANEW, {"reason": "", "snapshot": [1, 2, []]}, "void_after is missing"),
]


@pytest.mark.parametrize(("name", "details", "reason"), EVENTS)
def test_events_without_fields_or_with_others(name: str, details: dict[str, Any], reason: str) -> None:
    """The error has the seq, and the path of the field."""
    first = LogEvent(TABLE_FACTS, details=TABLE).payload()
    rows = [(1, TABLE_FACTS, first), (2, name, LogEvent(name, details=details).payload())]
    events = [{"seq": seq, "name": kind, "lsn": 1, "time": 0, "payload": text} for seq, kind, text in rows]
    index = SegmentIndex.from_lists(0, 9, 7, events=struct_array("events", events))
    with pytest.raises(ChangeLogError, match=rf"seq 2: .*({reason})"):
        lineage_of(index)


def test_further_fields_of_events() -> None:
    """A later version may write them."""
    details = TABLE | {"later": [{"x": None}], "columns": [{"number": 1, "later": {"x": 1}}]}
    event = {
        "seq": 1,
        "name": TABLE_FACTS,
        "lsn": 1,
        "time": 0,
        "payload": LogEvent(TABLE_FACTS, details=details).payload(),
    }
    index = SegmentIndex.from_lists(0, 9, 7, events=struct_array("events", [event]))
    assert [reading.columns[0].number for reading in table_readings(index)[1]] == [1]


@pytest.mark.parametrize(
    ("name", "entry", "reason"),
    [
        ("descriptions", {"seq": None}, "seq is missing"),
        ("descriptions", {"seq": 10}, "not in order, or not in their segments"),
        ("events", {"payload": None}, "payload is missing"),
        ("rows", {"count": 2**63 - 1}, "count is"),
        ("transactions", {"spans": [{"first": 3, "last": 2**61}]}, "spans that are not in the log"),
        ("transactions", {"spans": [None]}, "an entry of spans is missing"),
        ("open", {"since_time": None}, "since_time is missing"),
    ],
)
def test_numbers_of_an_index(name: str, entry: dict[str, Any], reason: str) -> None:
    """None is missing, and none is beyond the log."""
    whole = {field.name: 1 if pa.types.is_integer(field.type) else None for field in COLUMNS[name]}
    whole |= {"payload": b"", "keywords": "", "name": "", "problem": "", "outcome": "", "streamed": False}
    whole |= {"spans": [], "aborted": []}
    whole = {field.name: (whole | entry)[field.name] for field in COLUMNS[name]}
    content = SegmentIndex.from_lists(0, 9, 7, **{name: struct_array(name, [whole])}).to_bytes()
    with pytest.raises(ValueError, match=reason):
        SegmentIndex.from_bytes(content)


def test_structs_of_thrift() -> None:
    """Cut off, without an end, nested, or with more elements than bytes."""
    for content in (b"", b"\x15", b"\x15" + b"\xff" * 20, b"\x1c" * 4000, b"\x19\xf1" + b"\xff" * 8 + b"\x01", b"\x1d"):
        with pytest.raises(ValueError, match="Thrift"):
            read_struct(io.BytesIO(content))


def test_depth_of_unspecified_json() -> None:
    """A value of any type has at most 64 levels."""
    assert from_json(dict[str, Any], {"a": parse_json("[" * 60 + "]" * 60)})
    with pytest.raises(ValueError, match="a: it is nested too deeply"):
        from_json(dict[str, Any], {"a": parse_json("[" * 70 + "]" * 70)})


@pytest.mark.parametrize("limits", [SegmentLimits, CompactionLimits])
def test_what_is_written_can_be_read(limits: type[SegmentLimits] | type[CompactionLimits]) -> None:
    """No limits can be set by which a segment is written that is refused when it is read."""
    for given in ({"rows": 2_000_000}, {"payload_bytes": 2**28}):
        with pytest.raises(ChangeLogError, match="rows must be at most 1500000, payload_bytes at most 134217728"):
            limits(**given)
