"""Batches of payloads as typed columns."""

import pickle
from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.columnar import RowError, columns_schema, rows_schema
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transaction_reader import TransactionReader
from tests.columnar.decode import decode_rows
from tests.live.recording import Recording
from tests.stream.spans import find_place
from tools.faults.committed_spans import spans_of_reader

NO_TEXT = {"cash", "place", "feelings", "places", "mails", "pt", "words", "ints"}
"""Columns of the workload with binary values for which no text is known."""


def described(*columns: tuple[str, int, int], flags: int = 1) -> Description:
    """A table of columns with name, type OID and modifier."""
    found = tuple(pgo.RelationColumn(flags, *column) for column in columns)
    return Description(0, pgo.Relation(None, 1, "public", "t", "d", found), {})


def decoded(description: Description, *messages: pgo.PgoutputMessage, columns: Any = None) -> list[dict[str, Any]]:
    """Decode messages, as they are outside of streams."""
    payloads = [pgo.build(message) for message in messages]
    schema = columns_schema(description) if columns is None else columns
    options: dict[str, Any] = {"proto_version": 1, "streaming": "off"}
    batch = decode_rows(payloads, [False] * len(payloads), description, schema, **options)
    assert batch.schema.equals(rows_schema(schema))
    batch.validate(full=True)
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def insert(*values: Any) -> pgo.Insert:
    """An Insert."""
    return pgo.Insert(None, 1, values)


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.list_(pa.large_string()), pa.dictionary(pa.int8(), pa.string())]
)
def test_types_that_nothing_is_read_into(kind: pa.DataType) -> None:
    """They are refused, with the column and the remedy, before any row is read; a column of nulls may have any type."""
    with pytest.raises(pgo.PgoutputError, match=r"column 't' cannot be read as Arrow type .*: read it as string"):
        DecodePlan(described(("t", 25, -1)), pa.schema([("t", kind)]))
    absent = pa.schema([("t", pa.string()), ("u", kind)])
    assert decoded(described(("t", 25, -1)), insert(b"a"), columns=absent)[0] == {
        **dict.fromkeys(rows_schema(absent).names),
        "t": "a",
        "_op": "insert",
        "_unchanged": [],
    }


def test_values() -> None:
    """Each type that has a column of its own."""
    description = described(
        ("yes", 16, -1),
        ("n", 23, -1),
        ("price", 1700, (6 << 16 | 2) + 4),
        ("raw", 17, -1),
        ("day", 1082, -1),
        ("at", 1114, -1),
        ("when", 1184, -1),
        ("words", 1009, -1),
        ("j", 114, -1),
    )
    values = b"t", b"-5", b"12.50", b"\\x00ff", b"2024-02-29", b"2024-02-29 12:00:00.5", b"2024-02-29 12:00:00+00"
    (row,) = decoded(description, insert(*values, b'{a,NULL,"b,c"}', b'{"a" :  1}'))
    assert list(row.values())[:9] == [
        True,
        -5,
        Decimal("12.50"),
        b"\0\xff",
        date(2024, 2, 29),
        datetime(2024, 2, 29, 12, 0, 0, 500_000),
        datetime(2024, 2, 29, 12, tzinfo=UTC),
        ["a", None, "b,c"],
        '{"a" :  1}',
    ]
    assert row["_untyped"] is None


@pytest.mark.parametrize(
    ("oid", "modifier", "text"),
    [
        (1700, (6 << 16 | 2) + 4, "NaN"),
        (1082, -1, "infinity"),
        (1082, -1, "0044-03-15 BC"),
        (1114, -1, "294276-12-31 23:59:59.999999"),
        (1184, -1, "-infinity"),
        (1007, -1, "{{1,2},{3,4}}"),
        (1007, -1, "[-1:1]={1,2,3}"),
        (1182, -1, "{infinity}"),
    ],
)
def test_what_a_type_cannot_hold(oid: int, modifier: int, text: str) -> None:
    """The column is null, and the text is in _untyped; in the old row, too."""
    description = described(("c", oid, modifier))
    value = (text.encode(),)
    first, second = decoded(description, insert(*value), pgo.Delete(None, 1, "O", value))
    assert (first["c"], dict(first["_untyped"])) == (None, {"c": text})
    assert (second["_before"], dict(second["_untyped"])) == ({"c": None}, {"_before.c": text})


def test_bytes_without_text() -> None:
    """They are in _untyped as hexadecimal digits."""
    description = described(("c", 25, -1), ("m", 790, -1))
    (row,) = decoded(description, insert(b"\xff", pgo.Binary(bytes(8))))
    assert dict(row["_untyped"]) == {"c": "\\xff", "m": "\\x" + "00" * 8}


def test_operations() -> None:
    """Updates, deletes, truncates: old rows, keys, and values that were not sent."""
    description = described(("id", 23, -1), ("big", 25, -1))
    keyed = described(("id", 23, -1), ("big", 25, -1), flags=0)
    key_column = pgo.RelationColumn(1, "id", 23, -1)
    keyed = Description(0, pgo.Relation(None, 1, "p", "t", "d", (key_column, keyed.relation.columns[1])), {})
    update = pgo.Update(None, 1, "K", (b"1", None), (b"2", pgo.UNCHANGED))
    rows = decoded(keyed, update, pgo.Delete(None, 1, "K", (b"2", None)), pgo.Truncate(None, 0, (1,)))
    assert [row["_op"] for row in rows] == ["update", "delete", "truncate"]
    assert rows[0] == {
        "id": 2,
        "big": None,
        "_op": "update",
        "_before": {"id": 1, "big": None},
        "_unchanged": ["big"],
        "_untyped": None,
    }
    assert [(row["id"], row["_before"]) for row in rows[1:]] == [(None, {"id": 2, "big": None}), (None, None)]
    (full,) = decoded(description, pgo.Update(None, 1, "O", (b"1", b"x"), (b"2", b"y")))
    assert full["_before"] == {"id": 1, "big": "x"}


def test_wider_columns() -> None:
    """Columns asked for may be wider than the table's, or not the table's at all; others are left out."""
    wanted = pa.schema([("later", pa.date32()), ("n", pa.int64()), ("s", pa.string())])
    (row,) = decoded(
        described(("n", 23, -1), ("s", 23, -1), ("gone", 25, -1)), insert(b"1", b"2", b"3"), columns=wanted
    )
    assert list(row.items())[:3] == [("later", None), ("n", 1), ("s", "2")]


def test_no_columns() -> None:
    """A table without columns has rows all the same."""
    assert decoded(described(), insert()) == [{"_op": "insert", "_unchanged": [], "_untyped": None}]


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (pgo.build(insert(b"1"))[:-1], r"Insert\.new\.columns\[0\]"),
        (pgo.build(insert(b"1", b"2")), "2 values, but its Relation has 1 columns"),
        (pgo.build(pgo.StreamStop(), 2, "on", True), "StreamStop"),
    ],
)
def test_errors_name_the_row(payload: bytes, text: str) -> None:
    """The first row that cannot be decoded, its field, and the original error; also after pickling."""
    description = described(("n", 23, -1))
    options: dict[str, Any] = {"proto_version": 2, "streaming": "on"}
    with pytest.raises(RowError, match=text) as caught:
        batch = [pgo.build(insert(b"1")), payload]
        decode_rows(batch, [False, payload == b"E"], description, columns_schema(description), **options)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.row, str(again)) == (1, str(caught.value))


@pytest.mark.slow
@pytest.mark.parametrize("version", [pytest.param(16, marks=pytest.mark.long), 18])
def test_all_modes_give_the_same_rows(recordings: dict[str, Recording], version: int) -> None:
    """Text and binary, streamed, prepared or not: the committed changes of the workload are the same in all modes."""
    found = {name: _changes(r) for name, r in recordings.items() if r.server_version == version}
    expected = found[f"{version}-v1-text"]
    assert sum(map(len, expected.values())) > 200
    for name, tables in found.items():
        assert tables.keys() == expected.keys()
        for table, rows in tables.items():
            for row, other in zip(rows, expected[table], strict=True):
                _same(row, other, "binary" in name)


def _same(row: dict[str, Any], other: dict[str, Any], binary: bool) -> None:
    untyped, expected = dict(row["_untyped"] or ()), dict(other["_untyped"] or ())
    for name, value in row.items():
        if name == "_untyped":
            continue
        if binary and name in NO_TEXT and value != other[name]:
            assert value is None
        else:
            assert repr(value) == repr(other[name])
    for name, text in untyped.items():
        assert text == expected.get(name) or (binary and name in NO_TEXT and text.startswith("\\x"))


def _changes(recording: Recording) -> dict[str, list[dict[str, Any]]]:
    session = pgo.Session(recording.mode.proto_version, recording.mode.streaming)
    timeline, transactions = RelationHistory(), TransactionReader()
    rows = []
    for seq, payload in enumerate(recording.payloads):
        stream = session.stream_xid
        control = ControlMessage(seq, stream, session.parse(payload))
        timeline.read(control)
        transactions.read(control)
        if isinstance(control.message, pgo.Insert | pgo.Update | pgo.Delete):
            rows.append((control, timeline.descriptions[timeline.index(control.message.relation_oid, seq, stream)]))
    spans, found = spans_of_reader(transactions), defaultdict(list)
    options = {"proto_version": recording.mode.proto_version, "streaming": recording.mode.streaming}
    for control, description in rows:
        assert isinstance(control.message, pgo.Insert | pgo.Update | pgo.Delete)
        place = find_place(spans, control.seq, control.message.xid)
        if place is not None:
            columns, inside = columns_schema(description), control.stream_xid is not None
            payload = recording.payloads[control.seq]
            (row,) = decode_rows([payload], [inside], description, columns, **options).to_pylist()
            found[description.relation.name].append((place, row))
    return {name: [row for _, row in sorted(pairs, key=lambda pair: pair[0])] for name, pairs in found.items()}
