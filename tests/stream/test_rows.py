"""The relation cache, and rows of Python values."""

import struct
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct import UNCHANGED, Binary, Relation, RelationColumn
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.pgtypes.column_reader import ColumnReader
from pgoutput_construct.pgtypes.family import CannotHold
from pgoutput_construct.pgtypes.kernels.cast_table import find_cast
from pgoutput_construct.stream import RelationCache, RowReader, ValueLoader
from pgoutput_construct.wire.types import Extended, FormattedBytes


def table(*columns: RelationColumn, xid: int | None = None, name: str = "t") -> Relation:
    """Return a Relation of OID 1."""
    return Relation(xid, 1, "public", name, "d", columns)


ID, NOTE = RelationColumn(1, "id", 23, -1), RelationColumn(0, "note", 25, -1)


def test_rows_have_names_and_python_values() -> None:
    """Insert, update and delete give the values by column name."""
    reader = RowReader()
    assert list(reader.read(table(ID, NOTE))) == []
    (insert,) = reader.read(pgo.Insert(None, 1, (b"5", None)))
    assert (insert.op, insert.new, insert.old, insert.unchanged) == ("insert", {"id": 5, "note": None}, None, ())
    (update,) = reader.read(pgo.Update(None, 1, "K", (b"5", None), (b"6", UNCHANGED)))
    assert (update.new, update.old, update.unchanged) == ({"id": 6}, {"id": 5}, ("note",))
    (update,) = reader.read(pgo.Update(None, 1, "O", (b"6", b"x"), (b"6", b"")))
    assert (update.new, update.old) == ({"id": 6, "note": ""}, {"id": 6, "note": "x"})
    (delete,) = reader.read(pgo.Delete(None, 1, "K", (Binary(b"\0\0\0\6"), None)))
    assert (delete.op, delete.new, delete.old) == ("delete", None, {"id": 6})


def test_values_of_another_format_stay_as_they_came() -> None:
    """A format of later versions is neither text nor binary: it is not loaded, and shown by its name and its bytes."""

    class Compressed(FormattedBytes):
        """A format of values that is no text."""

        __slots__ = ()

    value = Compressed(b"5")
    assert type(ValueLoader().load(value, TYPE_NAMES["int4"].oid)) is Compressed
    for name, kind in (("int4", pa.int32()), ("bytea", pa.binary()), ("text", pa.string())):
        column = ColumnReader(RelationColumn(0, "c", TYPE_NAMES[name].oid, -1), {}, kind)
        with pytest.raises(CannotHold):
            column.load(value)
        assert column.text(value) == r"Compressed \x35"
        assert find_cast(ord("z"), TYPE_NAMES[name].oid, kind) is None


def test_truncate_has_a_row_for_each_table() -> None:
    """A truncate returns a change for each table."""
    reader = RowReader()
    list(reader.read(table(ID)))
    list(reader.read(Relation(None, 2, "public", "u", "d", ())))
    assert [row.relation.name for row in reader.read(pgo.Truncate(None, 0, (1, 2)))] == ["t", "u"]


def test_row_before_its_relation_is_refused() -> None:
    """An Insert whose Relation was not sent cannot be read."""
    with pytest.raises(pgo.ProtocolError, match="relation OID 1"):
        list(RowReader().read(pgo.Insert(None, 1, ())))


def test_row_of_another_width_is_refused() -> None:
    """A row must have as many values as its Relation has columns."""
    reader = RowReader()
    list(reader.read(table(ID)))
    with pytest.raises(pgo.ProtocolError, match="2 values, but its Relation has 1"):
        list(reader.read(pgo.Insert(None, 1, (b"1", b"2"))))


START, STOP = pgo.StreamStart(7, 1), pgo.StreamStop()
COMMIT = pgo.StreamCommit(7, pgo.Lsn(1), pgo.Lsn(2), pgo.Timestamp(0))


def test_relation_of_a_stream_counts_after_its_commit() -> None:
    """A table altered in a stream is altered for others only when the stream commits."""
    cache = RelationCache()
    cache.update(table(ID))
    cache.update(START)
    cache.update(table(ID, NOTE, xid=7))
    assert len(cache.get(1).columns) == 2
    cache.update(STOP)
    assert len(cache.get(1).columns) == 1
    cache.update(COMMIT)
    assert len(cache.get(1).columns) == 2


@pytest.mark.parametrize("end", [pgo.StreamAbort(7, 7), pgo.StreamAbort(7, 8), START])
def test_relation_of_an_aborted_stream_is_forgotten(end: pgo.PgoutputMessage) -> None:
    """After any abort in a stream, or its new beginning, its relations are unknown, as PostgreSQL sends them again."""
    cache = RelationCache()
    for message in (table(ID), START, table(ID, NOTE, xid=7), STOP, end):
        cache.update(message)
    cache.update(STOP)
    assert len(cache.get(1).columns) == 1
    cache.update(pgo.StreamStart(7, 0))
    with pytest.raises(pgo.ProtocolError, match="stream of xid 7"):
        cache.get(1)


def test_rows_of_a_rolled_back_stream_leave_no_trace() -> None:
    """An Insert after a rolled-back stream is not read by the stream's Relation."""
    reader = RowReader()
    for message in (START, table(ID, xid=7), pgo.Insert(7, 1, (b"1",)), STOP, pgo.StreamAbort(7, 7)):
        reader.read(message)
    with pytest.raises(pgo.ProtocolError, match="relation OID 1"):
        reader.read(pgo.Insert(None, 1, (b"1",)))


def test_two_columns_of_one_name_are_refused() -> None:
    """A row has one value a name."""
    reader = RowReader()
    reader.read(table(ID, ID))
    with pytest.raises(pgo.ProtocolError, match="two columns with the same name"):
        reader.read(pgo.Insert(None, 1, (b"1", b"2")))


HUGE, LONG = Binary(struct.pack(">iiIii", 1, 0, 23, 10**8, 1)), Binary(struct.pack(">iiIiiii", 1, 0, 23, 1, 1, 4000, 7))
VALUES = [
    (b"t", 16, True),
    (b"-5", 23, -5),
    (b"1.50", 1700, Decimal("1.50")),
    (b"2026-01-02", 1082, date(2026, 1, 2)),
    (b"2026-01-02 03:04:05.6+00", 1184, datetime(2026, 1, 2, 3, 4, 5, 600000, UTC)),
    (b"{1,NULL,3}", 1007, [1, None, 3]),
    (rb"\x00ff", 17, b"\0\xff"),
    (b'{"a": [1]}', 3802, {"a": [1]}),
    (Binary(b"\0\0\0\0\0\0\0\5"), 20, 5),
    (b"infinity", 1184, "infinity"),
    (b"0044-03-15 BC", 1082, "0044-03-15 BC"),
    (b"blue", 99999, "blue"),
    (Binary(b"\1\2"), 99999, Binary(b"\1\2")),
    (Binary(b"\0"), 23, Binary(b"\0")),
    (Binary(struct.pack(">iiIiiii", 1, 0, 23, 1, 1, 4, 7)), 1007, [7]),
    (Binary(struct.pack(">iiIii", 1, 0, 23, 10**8, 1)), 1007, Binary(struct.pack(">iiIii", 1, 0, 23, 10**8, 1))),
    (
        Binary(struct.pack(">iiIiiii", 1, 0, 23, 1, 1, 4000, 7)),
        1007,
        Binary(struct.pack(">iiIiiii", 1, 0, 23, 1, 1, 4000, 7)),
    ),
    (Binary(b""), 2249, Binary(b"")),
    (Binary(b""), 869, Binary(b"")),
    (b"[" * 100_000, 114, "[" * 100_000),
    (b"", 1082, ""),
    (None, 23, None),
    (UNCHANGED, 23, UNCHANGED),
]


@pytest.mark.parametrize(("value", "oid", "expected"), VALUES, ids=[str(number) for number in range(len(VALUES))])
def test_values_become_python(value: bytes | None, oid: int, expected: object) -> None:
    """Built-in types become Python values; what a type cannot hold stays what PostgreSQL sent."""
    loaded = ValueLoader().load(value, oid)
    assert loaded == expected
    assert type(loaded) is type(expected)


def test_domain_is_loaded_as_its_base_type() -> None:
    """The Type of a domain names its base type in pg_catalog; an enum of that name elsewhere stays text."""
    types = {90001: pgo.Type(None, 90001, "", "int4"), 90002: pgo.Type(None, 90002, "public", "int4")}
    assert ValueLoader(types).load(b"5", 90001) == 5
    assert ValueLoader(types).load(b"5", 90002) == "5"


def test_type_that_comes_later_counts() -> None:
    """A value is loaded by the latest Type of its OID, even after values under an earlier one."""
    types: dict[int, pgo.Type] = {}
    loader = ValueLoader(types)
    assert loader.load(b"5", 90001) == "5"
    types[90001] = pgo.Type(None, 90001, "", "int4")
    assert loader.load(b"5", 90001) == 5


def test_domain_over_an_array() -> None:
    """The Type of a domain over an array names the array type."""
    assert ValueLoader({90001: pgo.Type(None, 90001, "", "_int4")}).load(b"{1,2}", 90001) == [1, 2]


def test_name_has_any_length_in_binary_format() -> None:
    """A name fills 64 bytes in memory, and is sent as its text."""
    assert ValueLoader().load(Binary(b"pg_class"), 19) == "pg_class"


def test_raw_rows_hold_the_values_as_they_came() -> None:
    """Rows of bytes, on demand."""
    reader = RowReader(values="raw")
    reader.read(table(ID, NOTE))
    (update,) = reader.read(pgo.Update(None, 1, "K", (Binary(b"\0\0\0\5"), None), (b"6", UNCHANGED)))
    assert (update.new, update.old, update.unchanged) == ({"id": b"6"}, {"id": Binary(b"\0\0\0\5")}, ("note",))
    assert type(update.old["id"]) is Binary


def test_other_words_for_values_are_refused() -> None:
    """A misspelt word is not taken for one of the two."""
    with pytest.raises(pgo.PgoutputError, match="values must be 'python' or 'raw', not 'rwa'"):
        RowReader(values="rwa")  # type: ignore[arg-type]


class ExtendedRow(Extended):
    """A row of a later version, with further fields besides its values."""

    PRINCIPAL = "values"

    def __init__(self, *values: object) -> None:
        self.values = values


class ExtendedValue(ExtendedRow):
    """A value, or a table of a truncate, of that version."""

    PRINCIPAL = "value"

    def __init__(self, value: object) -> None:
        self.value = value


def test_rows_of_a_later_version() -> None:
    """Rows and values that hold more than their principal value are read as that."""
    reader = RowReader()
    reader.read(table(ID, NOTE))
    row: object = ExtendedRow(ExtendedValue(b"5"), ExtendedValue(UNCHANGED))
    (insert,) = reader.read(pgo.Insert(None, 1, row))  # type: ignore[arg-type]
    assert (insert.new, insert.unchanged) == ({"id": 5}, ("note",))
    (truncate,) = reader.read(pgo.Truncate(None, 0, (ExtendedValue(1),)))  # type: ignore[arg-type]
    assert truncate.relation.name == "t"


WITHOUT_PSYCOPG = """
import sys; sys.modules["psycopg"] = None
import pgoutput_construct as pgo
from pgoutput_construct.stream import RowReader
reader = RowReader(values="raw")
reader.read(pgo.Relation(None, 1, "public", "t", "d", (pgo.RelationColumn(1, "id", 23, -1),)))
print([row.new for row in reader.read(pgo.Insert(None, 1, (b"5",)))])
try:
    RowReader()
except pgo.PgoutputError as error:
    print(error)
"""


def test_without_psycopg() -> None:
    """Raw rows need no psycopg; for rows of Python values the error names the extra and the alternative."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_PSYCOPG], capture_output=True, text=True, check=True)
    rows, error = done.stdout.splitlines()
    assert rows == "[{'id': b'5'}]"
    assert "pip install 'pgoutput_construct[postgres]'" in error
    assert "RowReader(values='raw')" in error
