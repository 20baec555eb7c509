"""Rows of COPY as Insert payloads: the kernels write what the builders do."""

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct.columnar.copy_format import CopiedRows, CopyFormat, binary_copy_start
from pgoutput_construct.errors import EngineError

LAYOUT = {"proto_version": 4, "streaming": "parallel"}
TEXT = st.one_of(st.none(), st.text().map(lambda text: text.replace("\0", "").encode("utf-8", "replace")))
ROWS = st.integers(0, 5).flatmap(lambda count: st.lists(st.tuples(*[TEXT] * count), min_size=1, max_size=8))
ESCAPES = {b"\\": b"\\\\", b"\b": b"\\b", b"\f": b"\\f", b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t", b"\v": b"\\v"}


def as_text(row: tuple[bytes | None, ...]) -> bytes:
    """Write a row as COPY TO does in text format."""
    values = [
        b"\\N" if value is None else b"".join(ESCAPES.get(bytes([byte]), bytes([byte])) for byte in value)
        for value in row
    ]
    return b"\t".join(values) + b"\n"


def as_binary(row: tuple[bytes | None, ...]) -> bytes:
    """Write a row as COPY TO does in binary format."""
    values = (struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value for value in row)
    return struct.pack(">h", len(row)) + b"".join(values)


def payloads(form: CopyFormat, rows: list[bytes]) -> list[bytes]:
    """Return what the kernel makes of rows."""
    gathered = CopiedRows(form, [b"described"], 2**16)
    for part in (rows[:3], rows[3:]):
        ends = np.cumsum([*map(len, part)], dtype=np.int64)
        if part:
            gathered.add(np.frombuffer(b"".join(part), np.uint8), ends)
    found: list[bytes] = gathered.payloads().to_pylist()
    assert found[0] == b"described"
    assert gathered.rows == len(rows)
    return found[1:]


def built(row: tuple[bytes | None, ...], binary: tuple[bool, ...] = ()) -> bytes:
    """Return what the builder makes of a row."""
    kinds = binary or (False,) * len(row)
    values = tuple(pgo.Binary(v) if v is not None and kind else v for v, kind in zip(row, kinds, strict=True))
    return pgo.build(pgo.Insert(relation_oid=4294967295, new=values), in_stream=False, **LAYOUT)  # type: ignore[arg-type]


@given(ROWS)
def test_text(rows: list[tuple[bytes | None, ...]]) -> None:
    """Whatever the values are: control characters, backslashes, NULL beside its letters, long and empty ones."""
    form = CopyFormat(4294967295, len(rows[0]), LAYOUT)
    assert payloads(form, [*map(as_text, rows)]) == [built(row) for row in rows]


@given(ROWS, st.data())
def test_binary(rows: list[tuple[bytes | None, ...]], data: Any) -> None:
    """Columns whose types have no binary form come as text between the others."""
    binary = tuple(data.draw(st.booleans()) for _ in rows[0])
    form = CopyFormat(4294967295, len(rows[0]), LAYOUT, binary)
    assert payloads(form, [*map(as_binary, rows)]) == [built(row, binary) for row in rows]


@pytest.mark.parametrize("row", [b"a\n", b"a\tb\tc\n", b"a\tb", b"a\\x\tb\n", b"a\t\\\n", b"\n", b"a\nb\tc\n"])
def test_what_is_no_row(row: bytes) -> None:
    """A row that COPY does not send is an error, and nothing is read beyond it."""
    with pytest.raises(EngineError, match="row 1 of a COPY with 2 columns"):
        payloads(CopyFormat(1, 2, LAYOUT), [b"a\tb\n", row])


@pytest.mark.parametrize(
    "row", [b"", b"\0", b"\0\1\0\0\0\0", b"\0\2\0\0\0\1", b"\0\2\0\0\0\1ab", as_binary((b"", b"")) + b"x"]
)
def test_what_is_no_binary_row(row: bytes) -> None:
    """A count or length that does not fit is an error, too."""
    with pytest.raises(EngineError, match="row 1 of a COPY with 2 columns"):
        payloads(CopyFormat(1, 2, LAYOUT, (True, True)), [as_binary((b"a", None)), row])


def test_room() -> None:
    """Rows beyond what is there for them are for the next piece; a piece without room takes one batch of any size."""
    gathered = CopiedRows(CopyFormat(1, 1, LAYOUT), (), 5 * 2**20)
    row = np.frombuffer(b"a" * 3 * 2**20 + b"\n", np.uint8), np.array([3 * 2**20 + 1], np.int64)
    large = np.frombuffer(b"a" * 9 * 2**20 + b"\n", np.uint8), np.array([9 * 2**20 + 1], np.int64)
    assert gathered.payloads().to_pylist() == []
    assert gathered.has_room(*large)
    gathered.add(*row)
    assert not gathered.has_room(*row)
    other = CopiedRows(CopyFormat(1, 1, LAYOUT), (), 5 * 2**20)
    other.add(*large)
    assert other.payloads().to_pylist() == [pgo.build(pgo.Insert(relation_oid=1, new=(b"a" * 9 * 2**20,)))]


def test_the_start_of_binary_data() -> None:
    """The header may have an extension, which is passed over."""
    head = b"PGCOPY\n\xff\r\n\0" + struct.pack(">i", 0)
    assert binary_copy_start(np.frombuffer(head + struct.pack(">i", 3) + b"abc", np.uint8)) == 22
    with pytest.raises(EngineError, match="signature"):
        binary_copy_start(np.frombuffer(head, np.uint8))
