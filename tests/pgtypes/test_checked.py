"""Kernels by type read and write within their arrays, whatever bytes they are given."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct.columnar import columns_schema
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.pgtypes.kernels.cast import ColumnValues
from pgoutput_construct.wire.messages import VALUE_TAGS
from tests.columnar.decode import decode_rows
from tests.columnar.test_decode import described, insert
from tests.pgtypes.checked import Checked, checked_registry
from tests.pgtypes.test_casts import BINARY, TEXT, array_of_items
from tests.spec_fuzz.checked_reads import OutsideError, Window

FORMATS = {"text": TEXT, "binary": BINARY}
HEAD = struct.pack("!iii", 1, 0, TYPE_NAMES["int4"].oid)
HOSTILE = [
    HEAD + struct.pack("!iiI4s", 2, 1, 0x80000000, b"\0\0\0\7"),
    HEAD + struct.pack("!iiI", 2_000_000_000, 1, 0xFFFFFFFC),
    HEAD + struct.pack("!iiI", 2_000_000_000, 1, 0xFFFFFFFF),
    HEAD + struct.pack("!IiI", 0xFFFFFFFF, 1, 0),
]
"""Arrays of int4 whose counts and lengths lead far outside them."""


@pytest.fixture(scope="module")
def registry() -> Iterator[ModuleType]:
    """The table of types over checked kernels."""
    with checked_registry() as found:
        yield found


def _cast(registry: ModuleType, oid: int, modifier: int, format_name: str, values: Sequence[bytes]) -> None:
    """Run a type's kernel over values at the very ends of a batch; raise OutsideError for a fault."""
    (kind,) = columns_schema(described(("c", oid, modifier))).types
    code = VALUE_TAGS[format_name]
    cast = registry.find_cast(code, oid, kind)
    assert cast is not None
    ends = np.cumsum([0, *map(len, values)])
    lengths, tags = np.diff(ends).astype(np.int32), np.full(len(values), code, np.uint8)
    data: Any = Window(b"".join(values), b"", b"")
    with suppress(ValueError):  # Arrow's own, where a text is not UTF-8
        cast(ColumnValues(data, ends[:-1], lengths, tags, code, len(values), int(ends[-1])), kind)


def _damaged(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[bytes]]:
    """Return values of which some have a byte changed, or are cut off."""
    changed = st.builds(lambda value, at, byte: value[:at] + bytes([byte]) + value[at + 1 :], values,
                        st.integers(0, 40), st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF, 0xFC]))  # fmt: skip
    cut = st.builds(lambda value, size: value[:size], values, st.integers(0, 40))
    return st.lists(values | changed | cut, min_size=1, max_size=4)


@pytest.mark.parametrize("format_name", FORMATS)
@given(draw=st.data())
def test_damaged_values(registry: ModuleType, format_name: str, draw: st.DataObject) -> None:
    """Every kernel, over values of which some are damaged."""
    name, (modifier, values) = draw.draw(st.sampled_from(list(FORMATS[format_name].items())))
    _cast(registry, TYPE_NAMES[name].oid, modifier, format_name, draw.draw(_damaged(values)))


@pytest.mark.parametrize("size", range(10))
def test_numerics_that_are_cut_off(registry: ModuleType, size: int) -> None:
    """Nothing is read after one that ends within its head, or between two digits."""
    _cast(registry, TYPE_NAMES["numeric"].oid, (12 << 16 | 2) + 4, "binary", [bytes(size)])


@pytest.mark.slow
@pytest.mark.parametrize("format_name", FORMATS)
@given(draw=st.data())
def test_damaged_arrays(registry: ModuleType, format_name: str, draw: st.DataObject) -> None:
    """Arrays of every type, of which some are damaged."""
    name, (modifier, values) = draw.draw(st.sampled_from(list(FORMATS[format_name].items())))
    items = st.lists(values, max_size=4)
    texts = items.map(lambda found: b"{" + b",".join(found) + b"}")
    binary = st.builds(array_of_items, items, st.just(1), st.just(1), st.just(TYPE_NAMES[name].oid), st.just(b""))
    arrays = texts if format_name == "text" else binary
    _cast(registry, TYPE_NAMES[name].array_oid, modifier, format_name, draw.draw(_damaged(arrays)))


@pytest.mark.parametrize("value", HOSTILE, ids=["2 GiB backwards", "back to itself", "nulls", "as many as can be"])
def test_arrays_with_hostile_lengths(registry: ModuleType, value: bytes) -> None:
    """Counts and lengths are compared with what is left before anything is noted; the value is left as it came."""
    oid = TYPE_NAMES["_int4"].oid
    _cast(registry, oid, -1, "binary", [value, value])
    description = described(("c", oid, -1))
    table = decode_rows([pgo.build(insert(pgo.Binary(value)))], None, description, columns_schema(description))
    (row,) = table.to_pylist()
    assert row["c"] is None
    assert row["_untyped"] == [("c", "\\x" + value.hex())]


def test_checked_arrays_refuse_what_lies_outside() -> None:
    """Before the start too, where numpy would count from the end."""
    found = np.zeros((2, 2), np.int32).view(Checked)
    for key in ((-1, 0), (0, 2), 2, -1):
        with pytest.raises(OutsideError):
            found[key] = 1
        with pytest.raises(OutsideError):
            found[key]
    found[0, 0] = 0xFFFFFFFC
    assert found[0, 0] == -4
