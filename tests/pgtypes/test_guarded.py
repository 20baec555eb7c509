"""The walk over rows, with plans of many columns, reads and writes nothing outside its memory."""

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct.columnar import columns_schema, decode_plan, index_batch
from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.stream.relations import Description
from tests.pgtypes.guarded import guarded_allocation, guarded_payloads
from tests.pgtypes.test_casts import BINARY, TEXT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pages are protected by mprotect()")

GARBAGE = st.binary(max_size=24)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Description, list[bytes]]:
    """Return a table of some types, and changes of it: in both formats, with wrong values, and with old rows."""
    names = draw(st.lists(st.sampled_from(sorted(BINARY)), min_size=1, max_size=9))
    columns = [
        pgo.RelationColumn(draw(st.integers(0, 1)), f"c{at}", TYPE_NAMES[name].oid, BINARY[name][0])
        for at, name in enumerate(names)
    ]
    values = [
        st.none()
        | st.just(pgo.UNCHANGED)
        | (BINARY[name][1] | GARBAGE).map(pgo.Binary)
        | TEXT.get(name, BINARY[name])[1]
        | GARBAGE
        for name in names
    ]
    row, kinds = st.tuples(*values), st.sampled_from("KO")
    changes = st.lists(
        st.builds(pgo.Insert, st.none(), st.just(1), row)
        | st.builds(pgo.Delete, st.none(), st.just(1), kinds, row)
        | st.builds(pgo.Update, st.none(), st.just(1), kinds, row, row),
        min_size=1,
        max_size=9,
    )
    relation = pgo.Relation(None, 1, "public", "t", "d", tuple(columns))
    return Description(0, relation, {}), [pgo.build(change) for change in draw(changes)]


def decoded(payloads: Any, description: Description, columns: DecodePlan) -> list[dict[str, Any]]:
    """Return the rows; what is refused in the order of its names."""
    index, rows = index_batch(payloads), []
    for block in table_rows(index, np.arange(len(index)), columns):
        assert block.batch is not None
        block.batch.validate(full=True)
        rows += block.batch.to_pylist()
    return [{**row, "_untyped": sorted(row["_untyped"] or ())} for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("front", [False, True])
@given(table=tables())
def test_nothing_outside_is_touched(front: bool, table: tuple[Description, list[bytes]]) -> None:
    """And rows are those of the values one by one; the second time, when room for texts is known, too."""
    description, payloads = table
    schema = columns_schema(description)
    with guarded_allocation(front):
        columns, array = DecodePlan(description, schema), guarded_payloads(payloads, front)
        fast = [repr(decoded(array, description, columns)) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode_plan, "find_cast", lambda *arguments: None)
        slow = repr(decoded(pa.array(payloads, pa.binary()), description, DecodePlan(description, schema)))
    assert fast == [slow, slow]


def test_texts_fill_their_room() -> None:
    """The last word of a copy runs over the end of a text, not over that of the memory."""
    relation = pgo.Relation(None, 1, "public", "t", "d", (pgo.RelationColumn(0, "c", TYPE_NAMES["text"].oid, -1),))
    description = Description(0, relation, {})
    for size in range(230, 270):
        columns = DecodePlan(description, columns_schema(description))
        columns._expected["new"] = np.zeros(1, np.int64)  # there is room for SPARE bytes
        texts = [b"x" * (size % 8), b"y" * size, b""]  # bytes at the end of the batch are copied one by one
        with guarded_allocation(front=False):
            given = guarded_payloads([pgo.build(pgo.Insert(None, 1, (text,))) for text in texts], front=False)
            assert [row["c"].encode() for row in decoded(given, description, columns)] == texts
