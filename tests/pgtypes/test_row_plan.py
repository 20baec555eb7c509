"""The walk over rows: texts without room or not in UTF-8, and numbers in columns next to them."""

import struct
from typing import Any

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.columnar import BatchDecoder, decode_plan, index_batch, kernels
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.row_schema import columns_schema
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.compiled.memory import allocate
from pgoutput_construct.pgtypes.kernels import row_plan
from pgoutput_construct.stream.relations import Description
from tests.columnar.decode import decode_rows
from tests.columnar.test_decode import described, insert

TEXT, INT4, BYTEA, FLOAT4 = 25, 23, 17, 700
KEY_AND_NUMBER = (pgo.RelationColumn(1, "k", INT4, -1), pgo.RelationColumn(0, "n", INT4, -1))
DESCRIPTION = described(*((name, oid, -1) for name, oid in zip("abcdef", [TEXT] * 4 + [INT4, BYTEA], strict=True)))


def rows_of(sizes: list[int]) -> list[tuple[Any, ...]]:
    """Return rows of which the last text has such sizes, and sometimes is null or unchanged."""
    nothing = {3: None, 5: pgo.UNCHANGED}
    return [
        (b"a", None, b"", nothing.get(at % 7, b"%d" % (at % 10) * size), b"%d" % at, pgo.Binary(b"\xff" * (at % 9)))
        for at, size in enumerate(sizes)
    ]


def in_both_ways(payloads: list[bytes]) -> tuple[pa.Table, pa.Table]:
    """Decode by the kernels, and value by value."""
    columns = columns_schema(DESCRIPTION)
    fast = decode_rows(payloads, None, DESCRIPTION, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode_plan, "find_cast", lambda *arguments: None)
        return fast, decode_rows(payloads, None, DESCRIPTION, columns)


@pytest.mark.parametrize("sizes", [[2000] * 300, [1] * 500 + [5000] * 20, [0] * 50, list(range(0, 3000, 7))])
def test_texts_for_which_there_is_no_room(sizes: list[int]) -> None:
    """They are decoded later; one column has nearly all bytes, or has them at the end."""
    fast, slow = in_both_ways([pgo.build(insert(*row)) for row in rows_of(sizes)])
    fast.validate(full=True)
    assert fast.to_pylist() == slow.to_pylist()


def test_blocks_learn_the_expected_size() -> None:
    """After one block of long texts the next is read by the walk alone; after short ones room is given back."""
    columns = DecodePlan(DESCRIPTION, columns_schema(DESCRIPTION))
    for size in (2000, 2000, 10, 10):
        rows = rows_of([size] * 300)
        payloads = [pgo.build(insert(*row)) for row in rows]
        index = index_batch(payloads)
        (block,) = table_rows(index, index.tables()[0], columns)
        assert block.batch is not None
        expected = [value if isinstance(value, bytes) else None for *_, value, _, _ in rows]
        assert [None if text is None else text.encode() for text in block.batch["d"].to_pylist()] == expected
        (known,) = columns._expected.values()
        assert known[3] >= size * 5 // 7
    assert known[3] < 2000


@pytest.mark.parametrize("wrong", [0, 150, 299])
def test_texts_that_are_not_utf8(wrong: int) -> None:
    """They are given as bytes in ``_untyped``; other values of their column, and other columns, are as they are."""
    rows = rows_of([3] * 300)
    rows[wrong] = (b"\xff\xfe", "\N{EURO SIGN}".encode(), *rows[wrong][2:])
    fast, slow = in_both_ways([pgo.build(insert(*row)) for row in rows])
    fast.validate(full=True)
    assert fast.to_pylist() == slow.to_pylist()
    assert fast["a"][wrong].as_py() is None
    assert fast["b"][wrong].as_py() == "\N{EURO SIGN}"
    assert dict(fast["_untyped"][wrong].as_py()) == {"a": "\\xfffe"}


def test_columns_that_are_not_utf8_one_after_the_other() -> None:
    """One of them has no room at first: what is wrong with it is seen after the other one was read by its places."""
    rows = rows_of([3] * 300)
    rows[7], rows[9] = (b"\xff", *rows[7][1:]), (b"a", b"\xfe" * 50_000, *rows[9][2:])
    payloads = [pgo.build(insert(*row)) for row in rows]
    decoder = BatchDecoder()
    decoder.decode([pgo.build(DESCRIPTION.relation)])
    expected = [{"a": "\\xff"}, {"b": "\\x" + "fe" * 50_000}]
    for _ in range(3):
        (found,) = decoder.decode(payloads).tables
        refused = found.batch["_untyped"].to_pylist()
        assert [dict(refused[row]) for row in (7, 9)] == expected
        assert sum(map(bool, refused)) == 2


@pytest.mark.parametrize("form", ["text", "binary"])
@pytest.mark.parametrize("rows", [1, 62, 63, 64, 127])
def test_several_narrow_columns(form: str, rows: int) -> None:
    """A number is written as a word of eight bytes: the last one of a column does not reach into the next column."""
    formats = {"yes": (16, "?", b"t"), "small": (21, ">h", b"-2"), "n": (INT4, ">i", b"-3"), "f": (FLOAT4, ">f", b"-4")}
    values = {"yes": True, "small": -2, "n": -3, "f": -4.0}
    description = described(*((name, oid, -1) for name, (oid, _, _) in formats.items()))
    row = [
        text if form == "text" else pgo.Binary(struct.pack(packed, values[name]))
        for name, (_, packed, text) in formats.items()
    ]
    table = decode_rows([pgo.build(insert(*row))] * rows, None, description, columns_schema(description))
    assert table.select(list(values)).to_pylist() == [values] * rows


@pytest.mark.parametrize("value", [b"-318.64", b"1e-40", b"NaN", b"Infinity", b"0.1"])
def test_float4_in_a_column_that_became_float8(value: bytes) -> None:
    """The result is PostgreSQL's, alone and next to values that send the whole column the slow way."""
    description = described(("c", FLOAT4, -1))
    found = []
    for beside in ([], [b"x"]):
        payloads = [pgo.build(insert(each)) for each in (value, *beside)]
        table = decode_rows(payloads, None, description, pa.schema([("c", pa.float64())]))
        found.append(repr(table["c"][0].as_py()))
    assert found == [repr(struct.unpack("f", struct.pack("f", float(value)))[0])] * 2


def test_a_batch_of_one_payload_needs_no_code_of_its_own() -> None:
    """numba would compile the kernels again for writable arrays."""
    BatchDecoder().decode([pgo.build(DESCRIPTION.relation)] * 2)
    before = len(kernels.index.signatures)
    BatchDecoder().decode([pgo.build(DESCRIPTION.relation)])
    assert len(kernels.index.signatures) == before


def test_old_rows_and_new_rows() -> None:
    """Keys, whole old rows and none, mixed: texts of both sides land in their own rooms."""
    payloads = []
    for at, row in enumerate(rows_of([at * 3 % 500 for at in range(400)])):
        kind = (None, "K", "O")[at % 3]
        old = None if kind is None else (row if kind == "O" else (row[0], *[None] * 5))
        payloads.append(pgo.build(pgo.Update(relation_oid=1, old_kind=kind, old=old, new=row, xid=None)))
    fast, slow = in_both_ways(payloads)
    fast.validate(full=True)
    assert fast.to_pylist() == slow.to_pylist()


@pytest.mark.parametrize("absent", range(4))
def test_keys_have_nulls_in_other_columns(absent: int) -> None:
    """Whatever the values, and however many rows next to them have no old row."""
    description = Description(0, pgo.Relation(None, 1, "public", "t", "d", KEY_AND_NUMBER), {})
    payloads = [pgo.build(pgo.Delete(None, 1, kind, (b"%d" % at, b"7"))) for at, kind in enumerate("KKOOOO")]
    payloads += [pgo.build(insert(b"9", b"8"))] * absent
    rows = decode_rows(payloads, None, description, columns_schema(description))["_before"].to_pylist()
    keys, whole = [{"k": at, "n": None} for at in (0, 1)], [{"k": at, "n": 7} for at in range(2, 6)]
    assert rows == [*keys, *whole, *[None] * absent]


def test_long_texts_are_followed_by_many_short_ones() -> None:
    """Memory is not taken for as many long ones: there would be none."""
    columns = DecodePlan(DESCRIPTION, columns_schema(DESCRIPTION))
    for size, count in ((50_000_000, 1), (10, 20_000)):
        payloads = [pgo.build(insert(b"a", b"", b"", b"x" * size, b"1", None))] * count
        index = index_batch(payloads)
        (block,) = table_rows(index, index.tables()[0], columns)
        assert block.batch is not None
        assert block.batch["d"].to_pylist() == ["x" * size] * count


@pytest.mark.slow
def test_room_is_made_for_what_payloads_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """However regularly long texts alternate with short ones: not for as many long ones as there are rows."""
    sizes: list[int] = []

    def noted(size: int) -> pa.Buffer:
        sizes.append(size)
        return allocate(size)

    monkeypatch.setattr(row_plan, "allocate", noted)
    texts = [b"x" * (30_000 if at % 66 == 0 else 3) for at in range(65_000)]
    payloads = [pgo.build(insert(b"a", b"", b"", text, b"1", None)) for text in texts]
    BatchDecoder().decode([pgo.build(DESCRIPTION.relation), *payloads])
    assert max(sizes) < 4 * sum(map(len, payloads))
