"""Arrow types of columns."""

import struct
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.columnar import arrow_type, chosen_types, columns_schema, unify
from tests.columnar.decode import decode_rows
from tests.columnar.test_decode import described, insert

DOMAINS = {
    20000: pgo.Type(None, 20000, "", "int4"),
    20001: pgo.Type(None, 20001, "public", "mood"),
    20002: pgo.Type(None, 20002, "", "_int8"),
    20003: pgo.Type(None, 20003, "", "numeric"),
}


@pytest.mark.parametrize(
    ("oid", "modifier", "kind"),
    [
        (16, -1, pa.bool_()),
        (21, -1, pa.int16()),
        (26, -1, pa.int64()),
        (1700, -1, pa.string()),
        (1700, (12 << 16 | 2) + 4, pa.decimal128(12, 2)),
        (1700, (38 << 16 | 38) + 4, pa.decimal128(38, 38)),
        (1700, (39 << 16 | 2) + 4, pa.string()),
        (1700, (5 << 16 | 2045) + 4, pa.string()),  # numeric(5, -3)
        (1700, (3 << 16 | 5) + 4, pa.string()),  # numeric(3, 5)
        (1043, 44, pa.string()),
        (17, -1, pa.binary()),
        (1184, 3, pa.timestamp("us", tz="UTC")),
        (1083, -1, pa.string()),
        (1007, -1, pa.list_(pa.int32())),
        (1231, (12 << 16 | 2) + 4, pa.list_(pa.decimal128(12, 2))),
        (2951, -1, pa.list_(pa.string())),
        (1020, -1, pa.string()),
        (20000, -1, pa.int32()),
        (20001, -1, pa.string()),
        (20002, -1, pa.list_(pa.int64())),
        (20003, -1, pa.string()),
        (99999, -1, pa.string()),
    ],
)
def test_arrow_type(oid: int, modifier: int, kind: pa.DataType) -> None:
    """By OID and modifier; domains count as their base type."""
    assert arrow_type(pgo.RelationColumn(0, "c", oid, modifier), DOMAINS).equals(kind)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (pa.int16(), pa.int64(), pa.int64()),
        (pa.float64(), pa.float32(), pa.float64()),
        (pa.decimal128(10, 2), pa.decimal128(8, 4), pa.decimal128(12, 4)),
        (pa.decimal128(38, 0), pa.decimal128(38, 38), pa.string()),
        (pa.int32(), pa.string(), pa.string()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.int32(), pa.float32(), pa.string()),
        (pa.int64(), pa.float64(), pa.string()),
        (pa.int16(), pa.decimal128(12, 2), pa.decimal128(12, 2)),
        (pa.int64(), pa.decimal128(6, 4), pa.decimal128(23, 4)),
        (pa.int64(), pa.decimal128(38, 20), pa.string()),
        (pa.list_(pa.int32()), pa.list_(pa.decimal128(3, 1)), pa.list_(pa.decimal128(11, 1))),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
        (pa.date32(), pa.timestamp("us", tz="UTC"), pa.string()),
        (pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.string()),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), pa.list_(pa.int64())),
        (pa.list_(pa.int32()), pa.int32(), pa.string()),
    ],
)
def test_unify(one: pa.DataType, other: pa.DataType, both: pa.DataType) -> None:
    """The wider of two, in either order, or string."""
    assert unify(one, other).equals(both)
    assert unify(other, one).equals(both)


@pytest.mark.parametrize(
    ("oid", "modifier", "value", "typed"),
    [
        (1700, -1, b"12.5", Decimal("12.5000000000")),
        (1700, 327686, b"12.50", Decimal("12.50")),
        (1231, -1, b"{1,NULL}", [Decimal(1), None]),
        (20003, -1, b"7", Decimal(7)),
        (1700, -1, b"0.12345678901", "0.12345678901"),
        (2950, -1, b"00000000-0000-0000-0000-0000000000ff", bytes(15) + b"\xff"),
        (2951, -1, b"{00000000-0000-0000-0000-0000000000ff}", [bytes(15) + b"\xff"]),
        (1114, -1, b"2024-02-29 00:00:00", "2024-02-29 00:00:00"),
    ],
)
def test_chosen_types(oid: int, modifier: int, value: bytes, typed: Any) -> None:
    """Each where it is requested, in arrays and domains too; values that it cannot represent are in _untyped."""
    choices = chosen_types("numeric=decimal(38, 10), uuid=binary,timestamp=string")
    description = replace(described(("c", oid, modifier)), types=DOMAINS)
    columns = columns_schema(description, choices)
    (row,) = decode_rows([pgo.build(insert(value))], None, description, columns).to_pylist()
    assert (row["c"] if row["c"] is not None else dict(row["_untyped"])["c"]) == typed
    assert pa.types.is_string(columns.types[0]) == (oid == 1114)


def test_an_integer_that_became_a_numeric() -> None:
    """What was an integer is the same number, as the column has it now."""
    kind = unify(pa.int32(), pa.decimal128(8, 2))
    (row,) = decode_rows([pgo.build(insert(b"3"))], None, described(("c", 23, -1)), pa.schema({"c": kind})).to_pylist()
    assert str(row["c"]) == "3.00"


@pytest.mark.parametrize(
    ("oid", "value", "binary"),
    [
        (1082, b"2024-02-29", struct.pack("!i", 8825)),
        (1182, b"{2024-02-29,NULL}", struct.pack("!5iiii", 1, 1, 1082, 2, 1, 4, 8825, -1)),
        (1082, b"infinity", struct.pack("!i", 2**31 - 1)),
    ],
)
def test_a_date_that_became_a_timestamp(oid: int, value: bytes, binary: bytes) -> None:
    """It is the midnight at which the day begins; values that no timestamp can represent are in _untyped."""
    moment = datetime(2024, 2, 29)
    kind = pa.list_(pa.timestamp("us")) if oid == 1182 else pa.timestamp("us")
    for each in (value, pgo.Binary(binary)):
        payloads = [pgo.build(insert(each))]
        (row,) = decode_rows(payloads, None, described(("c", oid, -1)), pa.schema({"c": kind})).to_pylist()
        if value == b"infinity":
            assert row["c"] is None and dict(row["_untyped"]) == {"c": "infinity"}
        else:
            assert row["c"] == ([moment, None] if oid == 1182 else moment)


@pytest.mark.parametrize("text", ["numeric", "numeric=decimal(39,1)", "decimal=double", "_uuid=binary", "text=binary"])
def test_types_that_cannot_be_chosen(text: str) -> None:
    """They are refused, and it is said what can be."""
    with pytest.raises(pgo.PgoutputError, match=r"^types: .*write numeric=decimal\(38,10\)"):
        chosen_types(text)


WITHOUT_PSYCOPG = """
import sys; sys.modules["psycopg"] = None
import pgoutput_construct as pgo
import pgoutput_construct.spark._open_log
from pgoutput_construct.columnar import columns_schema
from tests.columnar.decode import decode_rows
from pgoutput_construct.stream.relations import Description

columns = tuple(pgo.RelationColumn(1, *c, -1) for c in [("id", 23), ("day", 1082), ("note", 25), ("mask", 16)])
description = Description(0, pgo.Relation(None, 1, "public", "t", "d", columns), {})
options = {"proto_version": 1, "streaming": "off"}

def decode(*values):
    payloads = [pgo.build(pgo.Insert(None, 1, values))]
    return decode_rows(payloads, None, description, columns_schema(description), **options).to_pylist()

print(list(decode(b"5", b"2024-02-29", b"x", b"t")[0].values())[:4])
try:
    decode(b"5", b"infinity", b"x", b"t")
except pgo.PgoutputError as error:
    print(error)
"""


@pytest.mark.slow
def test_rows_are_decoded_without_psycopg() -> None:
    """Ordinary values need no psycopg; a value that is loaded one by one does, and the error names it."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_PSYCOPG], capture_output=True, text=True, check=True)
    row, error = done.stdout.splitlines()
    assert row == "[5, datetime.date(2024, 2, 29), 'x', True]"
    assert "psycopg, which is not installed" in error
