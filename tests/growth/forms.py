"""Run in a copy of the project with kinds of values that are text, binary format, or neither: readers follow.

python forms.py    writes a log, and its rows as hexadecimal digits; with --spark prints the rows that Spark finds
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

import pgoutput_construct as pgo
from pgoutput_construct.changelog import LogOptions, LogWriter, Position
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.columnar import BatchDecoder
from pgoutput_construct.stream.rows import RowReader

OPTIONS: Final[dict[str, Any]] = {"proto_version": 5, "streaming": "on"}
TIME: Final = pgo.Timestamp(800_000_000_000_000)
COLUMNS: Final = tuple(
    pgo.RelationColumn(name == "id", name, oid, -1)
    for name, oid in (("id", 23), ("note", 25), ("counts", 1007), ("due", 1082))
)
ARRAY: Final = bytes.fromhex("00000001 00000000 00000017 00000002 00000001 00000004 00000005 00000004 00000006")


def texts(kind: Any, number: int) -> tuple[Any, ...]:
    """Return a row in text format, in one kind of values."""
    return tuple(kind(value) for value in (b"%d" % number, b"a", b"{5,6}", b"2000-01-03"))


def plain(value: bytes) -> pgo.Plain:
    """Return a value of the kind that is text."""
    return pgo.Plain(value, origin_number=1)


def opaque(value: bytes) -> pgo.Opaque:
    """Return a value of the kind that is neither."""
    return pgo.Opaque(value, place=2)


def binaries(kind: Any, number: int) -> tuple[Any, ...]:
    """Return a row in binary format."""
    return tuple(kind(value) for value in (number.to_bytes(4, "big"), b"a", ARRAY, b"\0\0\0\2"))


ROWS: Final = [
    texts(bytes, 1),
    binaries(pgo.Binary, 2),
    texts(plain, 3),
    binaries(pgo.Native, 4),
    (b"5", opaque(b"\1\2"), opaque(b""), opaque(b"\3")),
    (plain(b"6"), b"a", pgo.Native(ARRAY), pgo.Binary(b"\0\0\0\2")),
    (b"7", plain(b"a"), plain(b"none"), pgo.Native(b"\0")),
]
FOUND: Final = [
    *((number, "a", [5, 6], "2000-01-03") for number in range(1, 5)),
    (5, None, None, None),
    (6, "a", [5, 6], "2000-01-03"),
    (7, "a", None, None),
]
UNTYPED: Final = {
    5: {"note": "opaque \\x0102", "counts": "opaque \\x", "due": "opaque \\x03"},
    7: {"counts": "none", "due": "\\x00"},
}
MESSAGES: Final[list[Any]] = [
    pgo.Begin(pgo.Lsn(16), TIME, 700),
    pgo.Relation(None, 7, "public", "t", "d", COLUMNS),
    *(pgo.Insert(None, 7, row) for row in ROWS),
    pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME),
]


def payloads() -> list[bytes]:
    """Return the bytes of the stream."""
    session = pgo.Session(**OPTIONS)
    return [session.build(message) for message in MESSAGES]


def line(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a row as FOUND has it."""
    due = row["due"]
    return row["id"], row["note"], row["counts"], None if due is None else str(due)


def check_arrow() -> None:
    """Arrow's columns have what a kind that is text, or binary format, holds; nothing else is lost."""
    for size in (1, 3, len(MESSAGES)):
        decoder, found = BatchDecoder(**OPTIONS), []
        for start in range(0, len(MESSAGES), size):
            decoded = decoder.decode(payloads()[start : start + size])
            assert not decoded.errors, decoded.errors
            found += [row for table in decoded.tables for row in table.batch.to_pylist()]
        assert [line(row) for row in found] == FOUND, found
        assert {row["id"]: dict(row["_untyped"]) for row in found if row["_untyped"]} == UNTYPED, found


def check_rows() -> None:
    """So have Python's rows, in which values of the other kind stay as they came."""
    reader = RowReader()
    found = [change.new or {} for message in MESSAGES for change in reader.read(message)]
    assert [line(row) for row in found[:4]] == FOUND[:4], found
    assert found[4]["note"] == opaque(b"\1\2") and type(found[4]["note"]) is pgo.Opaque


def write_log() -> None:
    """Write the stream as a log."""
    with LogWriter(Path("forms")) as writer:
        given = {"database": "test", "system_identifier": "1"}
        writer.use(LogOptions(slot="slot", publications=("pub",), server_version=200000, **given, **OPTIONS))
        states = {name: [state] for name, state in pgo.Session(**OPTIONS).state.parameters.items()}
        for seq, payload in enumerate(payloads()):
            writer.append(Block.from_payloads([payload], [seq], [TIME], OPTIONS, states, [-1]))
        writer.publish(Position())


def spark_rows() -> list[tuple[Any, ...]]:
    """Return the rows that Spark finds."""
    from pgoutput_construct.spark import open_log, spark_session

    spark = spark_session("local[1]", {"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"}, "growth")
    try:
        rows = open_log(spark, "forms").changes("public.t").orderBy("id").collect()
        assert {row["id"]: dict(row["_untyped"]) for row in rows if row["_untyped"]} == UNTYPED, rows
        return [line(row.asDict()) for row in rows]
    finally:
        spark.stop()


if __name__ == "__main__":
    if "--spark" in sys.argv:
        assert spark_rows() == FOUND
    else:
        check_arrow()
        check_rows()
        write_log()
        print(json.dumps(FOUND))
