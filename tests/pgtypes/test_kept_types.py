"""Columns whose Arrow type a reader keeps although rows have another one now: what it cannot hold is text."""

import math
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.pgtypes.column_reader import ColumnReader
from pgoutput_construct.pgtypes.family import CannotHold
from tests.columnar.decode import decode_rows
from tests.columnar.test_decode import described, insert
from tests.pgtypes.test_casts import MICROSECONDS, array_of_items

TARGETS = {
    **{f"int{bits}": getattr(pa, f"int{bits}")() for bits in (16, 32, 64)},
    **{f"float{bits}": getattr(pa, f"float{bits}")() for bits in (32, 64)},
    "decimal": pa.decimal128(12, 2),
    "plain": pa.timestamp("us"),
    "zoned": pa.timestamp("us", tz="UTC"),
}
"""The kept types, by the names of their columns."""

NUMBERS = [0, 2**15, -(2**15), 2**24, 2**31, -(2**31), 2**32, 2**53, -(2**63), 2**63 - 1]
FLOATS = st.floats() | st.floats(width=32) | st.sampled_from([0.1, -0.0, 2.0**24 + 1, 3.4e38, 3.5e38, 1e-46, 1e300])


def packed(form: str, *numbers: int) -> st.SearchStrategy[bytes]:
    """Return integers close to some others, and any others, in a layout."""
    bits, signed = 8 * struct.calcsize(form), form.islower()
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    around = sorted({n + more for n in numbers for more in range(-3, 4) if low <= n + more <= high})
    return (st.sampled_from(around) | st.integers(low, high)).map(lambda number: struct.pack(form, number))


VALUES = {
    **{name: (form, packed(form, *NUMBERS)) for name, form in (("int2", "!h"), ("int4", "!i"), ("int8", "!q"))},
    "oid": ("!I", packed("!I", *NUMBERS)),
    "float4": ("!f", st.floats(width=32).map(lambda number: struct.pack("!f", number))),
    "float8": ("!d", FLOATS.map(lambda number: struct.pack("!d", number))),
    "timestamp": ("!q", packed("!q", *MICROSECONDS, 2**63 - 4)),
    "timestamptz": ("!q", packed("!q", *MICROSECONDS, 2**63 - 4)),
}
"""The layout of a type's binary format, and values in it."""

Found = tuple[dict[str, Any], dict[str, str]]


def by_kernels(name: str, values: list[bytes]) -> list[Found]:
    """Return each value in columns of all kept types, and what is in ``_untyped``."""
    description = described(*((target, TYPE_NAMES[name].oid, -1) for target in TARGETS))
    payloads = [pgo.build(insert(*[value] * len(TARGETS))) for value in values]
    rows = decode_rows(payloads, None, description, pa.schema(TARGETS))
    rows.validate(full=True)
    return [({target: row[target] for target in TARGETS}, dict(row["_untyped"] or [])) for row in rows.to_pylist()]


def one_by_one(name: str, value: bytes) -> Found:
    """Return the same by ColumnReader, which defines what decoding means."""
    loaded, untyped = dict.fromkeys(TARGETS), {}
    for target, kind in TARGETS.items():
        reader = ColumnReader(pgo.RelationColumn(1, target, TYPE_NAMES[name].oid, -1), {}, kind)
        try:
            (loaded[target],) = pa.array([reader.load(value)], kind).to_pylist()
        except CannotHold:
            untyped[target] = reader.text(value)
    return loaded, untyped


def text_of(name: str, value: bytes) -> str:
    """Return PostgreSQL's text of a value in binary format."""
    return ColumnReader(pgo.RelationColumn(1, "c", TYPE_NAMES[name].oid, -1), {}, pa.string()).text(value)


def untyped_beside(*kept: str, text: str) -> dict[str, str]:
    """Return ``_untyped`` where only some columns hold the value."""
    return {target: text for target in TARGETS if target not in kept}


@pytest.mark.parametrize("name", VALUES)
@given(draw=st.data())
def test_every_kept_type(name: str, draw: st.DataObject) -> None:
    """Kernels, the values one by one, and text format give the same; what a column has is the value itself."""
    values = [pgo.Binary(value) for value in draw.draw(st.lists(VALUES[name][1], min_size=1, max_size=4))]
    texts = [text_of(name, value).encode() for value in values]
    found = by_kernels(name, values)
    assert repr(found) == repr([one_by_one(name, value) for value in values])
    assert repr(by_kernels(name, texts)) == repr(found)
    assert repr([one_by_one(name, text) for text in texts]) == repr(found)
    for value, text, (columns, untyped) in zip(values, texts, found, strict=True):
        kept = {target: each for target, each in columns.items() if each is not None}
        assert untyped == untyped_beside(*kept, text=text.decode())
        if name.startswith("timestamp"):
            assert set(kept) <= {"zoned" if name == "timestamptz" else "plain"}
            continue
        (number,) = struct.unpack(VALUES[name][0], value)
        assert all(each == number or (math.isnan(each) and math.isnan(number)) for each in kept.values())
        if isinstance(number, int):
            fits = {f"int{bits}" for bits in (16, 32, 64) if -(1 << bits - 1) <= number < 1 << bits - 1}
            assert {target for target in kept if target.startswith("int")} == fits


EXAMPLES: list[tuple[str, Any, str, set[str]]] = [
    ("int8", 4294967301, "4294967301", {"int64", "float64", "decimal"}),
    ("int4", 70000, "70000", {"int32", "int64", "float32", "float64", "decimal"}),
    ("int4", 2**24 + 1, "16777217", {"int32", "int64", "float64", "decimal"}),
    ("int8", 2**53 + 1, "9007199254740993", {"int64"}),
    ("oid", 2**32 - 1, "4294967295", {"int64", "float64", "decimal"}),
    ("float8", 0.1, "0.1", {"float64"}),
    ("float8", 0.125, "0.125", {"float32", "float64"}),
    ("float8", 1e300, "1e+300", {"float64"}),
    ("float8", -math.inf, "-Infinity", {"float32", "float64"}),
    ("float4", 0.1, "0.1", {"float32", "float64"}),
    ("timestamp", 0, "2000-01-01 00:00:00", {"plain"}),
    ("timestamptz", 0, "2000-01-01 00:00:00+00", {"zoned"}),
]


@pytest.mark.parametrize(("name", "number", "text", "kept"), EXAMPLES)
@pytest.mark.parametrize("form", ["binary", "text"])
def test_what_a_kept_type_holds(name: str, number: Any, text: str, kept: set[str], form: str) -> None:
    """A value is in the columns that represent it exactly, and its text stands for it in the others."""
    value = pgo.Binary(struct.pack(VALUES[name][0], number)) if form == "binary" else text.encode()
    ((columns, untyped),) = by_kernels(name, [value])
    assert {target for target, each in columns.items() if each is not None} == kept
    assert untyped == untyped_beside(*kept, text=text)


@pytest.mark.parametrize("form", ["binary", "text"])
def test_arrays_of_a_kept_type(form: str) -> None:
    """One element that does not fit makes the whole array text."""
    examples: list[tuple[str, pa.DataType, list[Any], str]] = [
        ("int8", pa.int32(), [7, 4294967301], "{7,4294967301}"),
        ("float8", pa.float32(), [0.5, 0.1], "{0.5,0.1}"),
        ("timestamp", pa.timestamp("us", tz="UTC"), [0], '{"2000-01-01 00:00:00"}'),
    ]
    for name, kind, numbers, text in examples:
        builtin, items = TYPE_NAMES[name], [struct.pack(VALUES[name][0], number) for number in numbers]
        value = pgo.Binary(array_of_items(items, 1, 1, builtin.oid, b"")) if form == "binary" else text.encode()
        payloads = [pgo.build(insert(value))]
        description = described(("c", builtin.array_oid, -1))
        (row,) = decode_rows(payloads, None, description, pa.schema({"c": pa.list_(kind)})).to_pylist()
        assert (row["c"], dict(row["_untyped"] or [])) == (None, {"c": text})


def test_numerics_in_a_kept_float32() -> None:
    """Only those that it represents exactly; float64 has the nearest one, because readers choose it for numerics."""
    description = described(("a", TYPE_NAMES["numeric"].oid, -1), ("b", TYPE_NAMES["numeric"].oid, -1))
    columns = pa.schema({"a": pa.float32(), "b": pa.float64()})
    texts = [b"1.50", b"0.1", b"0.50000000000000000000001", b"NaN"]
    rows = decode_rows([pgo.build(insert(text, text)) for text in texts], None, description, columns).to_pylist()
    assert repr([row["a"] for row in rows]) == "[1.5, None, None, nan]"
    assert repr([row["b"] for row in rows]) == "[1.5, 0.1, 0.5, nan]"
    assert [dict(row["_untyped"] or []).get("a") for row in rows] == [None, "0.1", texts[2].decode(), None]
