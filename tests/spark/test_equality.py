"""Which values are the same: Arrow, Spark and SQL say it as one, of each type, and as PostgreSQL writes the values."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.columnar import UNTYPED, arrow_type
from pgoutput_construct.errors import EngineError
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.spark import compare
from pgoutput_construct.spark._state.equality import codes_of, exact, exact_key, is_always_typed, restored, same_sql
from pgoutput_construct.wire.messages import RelationColumn

ZEROS = [0.0, -0.0, None, float("nan"), float("nan"), 0.0]
MOMENT = datetime(2024, 5, 1, 12)
VALUES = [
    (pa.array(ZEROS, pa.float32()), [0, 1, 2, 3, 3, 0]),
    (pa.array(ZEROS, pa.float64()), [0, 1, 2, 3, 3, 0]),
    (pa.array([[0.0], [-0.0], None, [], [0.0, None], [0.0]], pa.list_(pa.float64())), [0, 1, 2, 3, 4, 0]),
    (pa.array([["a", "b"], ["ab"], None, ["a", "b"]], pa.list_(pa.string())), [0, 1, 2, 0]),
    (pa.array([b"\x00", b"\x01", b"", None, b"\x00"], pa.binary()), [0, 1, 2, 3, 0]),
    (pa.array([MOMENT, MOMENT + timedelta(microseconds=1), None, MOMENT], pa.timestamp("us", "UTC")), [0, 1, 2, 0]),
    (pa.array(["1.0", "1.00", "", None], pa.string()), [0, 1, 2, 3]),
]

MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))
# The last hour of summer time comes twice in many zones; the calendar of Europe has no days between these of 1582.
TURNS = [datetime(2024, 10, 27, 0, 30), datetime(2024, 10, 27, 1, 30), datetime(1582, 10, 4), datetime(1582, 10, 15)]
NAN = float("nan")
OF_TYPE: dict[pa.DataType, tuple[list[Any], st.SearchStrategy[Any]]] = {
    pa.bool_(): ([True, False], st.booleans()),
    pa.int16(): ([0, 1, -1], st.integers(-(2**15), 2**15 - 1)),
    pa.int32(): ([0, 1, -1], st.integers(-(2**31), 2**31 - 1)),
    pa.int64(): ([0, 1, 2**53, 2**53 + 1], st.integers(-(2**63), 2**63 - 1)),
    pa.float32(): ([0.0, -0.0, NAN, 2.0**-149, 16777216.0], st.floats(width=32)),
    pa.float64(): ([0.0, -0.0, NAN, 0.1, 0.1 + 2**-56, 5e-324], st.floats()),
    pa.decimal128(38, 10): ([Decimal(0), Decimal("1e-10")], st.decimals(-(10**20), 10**20, places=10)),
    pa.binary(): ([b"", b"\x00", b"a", b"A", b"\xff", b"\xfe"], st.binary(max_size=3)),
    pa.date32(): ([date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15)], MOMENTS.map(datetime.date)),
    pa.timestamp("us"): (TURNS, MOMENTS),
    pa.timestamp("us", tz="UTC"): ([turn.replace(tzinfo=UTC) for turn in TURNS], st.datetimes(timezones=st.just(UTC))),
    pa.string(): (
        ["", " ", "a", "A", "a ", "null", "1.0", "1.00", "01:00:00", "00:60:00", "\u00e9", "e\u0301"],
        st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=3),
    ),
}
"""Types of columns: values that look equal and are not, and any others."""
LISTS = {
    pa.list_(kind): ([[], [None], *([trap] for trap in traps), [traps[0], traps[1]]], st.lists(values, max_size=2))
    for kind, (traps, values) in OF_TYPE.items()
}
ALL = OF_TYPE | LISTS
NAMES = {f"c{number}": kind for number, kind in enumerate(ALL)}
ROWS = 20


def test_all_types_are_tried() -> None:
    """Those that columns of PostgreSQL get; a numeric of some precision stands for the others."""
    columns = (RelationColumn(0, "c", oid, 4 + (38 << 16 | 10)) for oid in BUILTIN_TYPES)
    assert {arrow_type(column, {}) for column in columns} == {*ALL}


@pytest.mark.parametrize(("values", "expected"), VALUES, ids=lambda each: str(getattr(each, "type", "")))
def test_values_are_told_apart(values: pa.Array, expected: list[int]) -> None:
    """As PostgreSQL's messages tell them apart; a slice of values has codes of its own."""
    assert codes_of(values).tolist() == expected
    more = pa.concat_arrays([values, values])
    assert codes_of(more.slice(len(values))).tolist() == expected


@pytest.mark.spark
@pytest.mark.parametrize(("values", "expected"), VALUES, ids=lambda each: str(getattr(each, "type", "")))
def test_spark_tells_apart_what_arrow_does(spark: Any, values: pa.Array, expected: list[int]) -> None:
    """What Spark groups and joins keys by is the same where the codes of Arrow are."""
    table = pa.table({"place": pa.array(range(len(values))), "value": values})
    rows = spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
    groups = rows.groupBy(exact(rows["value"], rows.schema["value"].dataType)).agg({"place": "collect_list"}).collect()
    places = {place: min(group[1]) for group in groups for place in group[1]}
    assert [places[place] for place in range(len(values))] == [expected.index(code) for code in expected]


def test_other_bits_of_nan() -> None:
    """They are one value."""
    other = np.array([2**63 - 1], "u8").view("f8")
    assert codes_of(pa.concat_arrays([pa.array([float("nan")]), pa.array(other)])).tolist() == [0, 0]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.spark
def test_values_of_all_types(spark: Any, zone: str) -> None:
    """Each value is the same as those that are written as it is, in Arrow, in Spark and in SQL, and none is lost."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)

    @settings(max_examples=2)
    @given(st.fixed_dictionaries({name: _values(*ALL[kind]) for name, kind in NAMES.items()}))
    def run(values: dict[str, list[Any]]) -> None:
        table = pa.table({name: pa.array(values[name], kind) for name, kind in NAMES.items()})
        written = {name: [repr(value) for value in table[name].to_pylist()] for name in NAMES}
        same = {name: [one == other for one, other in product(texts, texts)] for name, texts in written.items()}
        in_arrow = {name: codes_of(table[name].combine_chunks()).tolist() for name in NAMES}
        assert {name: [a == b for a, b in product(codes, codes)] for name, codes in in_arrow.items()} == same
        in_spark, in_sql, kept = _of_spark(spark, table)
        assert in_spark == same
        # A key of a type that holds all values is never NULL.
        with_null = {name for name, kind in in_sql[0].items() if is_always_typed(kind)}
        missing = {name: [value == "None" for value in written[name]] for name in with_null}
        assert in_sql[1] == {
            name: [is_same and not (name in with_null and missing[name][place // ROWS]) for place, is_same in found]
            for name, found in ((name, enumerate(each)) for name, each in same.items())
        }
        assert kept == written

    try:
        run()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def _values(traps: list[Any], others: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    count = ROWS - len(traps) - 1
    return st.lists(others | st.sampled_from(traps), min_size=count, max_size=count).map([None, *traps].__add__)


def _of_spark(spark: Any, table: pa.Table) -> tuple[Any, Any, Any]:
    """Return whether values are the same, pair by pair, by Spark and by SQL, and what is restored of each value."""
    table = table.append_column("place", pa.array(range(len(table))))
    rows = spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True)).coalesce(1)
    kinds = {name: rows.schema[name].dataType for name in NAMES}
    pairs = rows.alias("t").crossJoin(rows.alias("s")).orderBy("t.place", "s.place")
    found = pairs.select(
        *(_both(name, kind).alias(f"spark_{name}") for name, kind in kinds.items()),
        *(F.expr(" AND ".join(same_sql(f"t.{name}", f"s.{name}", kind))).alias(name) for name, kind in kinds.items()),
    ).toArrow()
    back = rows.orderBy("place").select(
        *(restored(exact(F.col(name), kind), kind).alias(name) for name, kind in kinds.items())
    )
    kept = back.toArrow().cast(table.drop_columns("place").schema)
    return (
        {name: found[f"spark_{name}"].to_pylist() for name in NAMES},
        (kinds, {name: [bool(each) for each in found[name].to_pylist()] for name in NAMES}),
        {name: [repr(value) for value in kept[name].to_pylist()] for name in NAMES},
    )


def _both(name: str, kind: T.DataType) -> Any:
    """Return whether two values are the same; their hashes are then."""
    (one,) = exact_key(lambda each: F.col(f"t.{each}"), {name: kind})
    (other,) = exact_key(lambda each: F.col(f"s.{each}"), {name: kind})
    same = one.eqNullSafe(other)
    return same & (F.xxhash64(one) == F.xxhash64(other))


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_type_of_which_nothing_is_said() -> None:
    """It is refused: whoever adds it says when its values are the same."""
    for value in (pa.array([{"a": 1.0}]), pa.array([timedelta(1)])):
        with pytest.raises(EngineError, match="there is no equality rule for the type"):
            codes_of(value)
    with pytest.raises(EngineError, match="struct<a:double>"):
        exact(F.col("s"), T.ArrayType(T.StructType([T.StructField("a", T.DoubleType())])))


@pytest.mark.spark
def test_a_state_is_compared_by_the_same_equality(spark: Any) -> None:
    """Two zeros are two rows, two NaN are one, and null is null; equal rows are counted."""
    schema = pa.schema([("f", pa.float64()), ("g", pa.list_(pa.float32())), ("_untyped", UNTYPED)])

    def table(*rows: tuple[Any, Any]) -> pa.Table:
        return pa.Table.from_pylist([{"f": f, "g": g, "_untyped": None} for f, g in rows], schema)

    same = (NAN, [0.0, None]), (None, None), (1.0, [NAN]), (1.0, [NAN])
    state = spark.createDataFrame(table((0.0, []), (2.0, [0.0]), *same), from_arrow_schema(schema))
    found = compare(state, table((-0.0, []), (2.0, [-0.0]), *same))
    assert (found.rows, found.rebuilt_rows, found.missing, found.unexpected) == (6, 6, 2, 2)
    assert not found.equal
    assert compare(state, table(*same, (2.0, [0.0]), (0.0, []))).equal
