"""Columns whose types become wider: altered where the format can, with the rows that a fresh warehouse has."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark._replicate import Batch, read_current, read_history, replicate
from pgoutput_construct.spark._table_formats.merge_statement import MergeStatements
from tests.crashes import Moment, before, killed
from tests.postgres.shop import Shop
from tests.spark.logs import log_options, write_log
from tests.spark.replicate.rounds import check_equal, open_differences
from tests.table_formats import SHORT_IN_PARQUET

pytestmark = pytest.mark.spark

_OID = 16_500
_INT2, _INT4, _INT8, _FLOAT4, _FLOAT8, _NUMERIC = 21, 23, 20, 700, 701, 1700
WIDENING = {"table_properties": {"delta.enableTypeWidening": "true"}, "write_mode": "copy-on-write"}


def _relation(*types: int, precision: int) -> pgo.Relation:
    modifiers = (-1, -1, -1, (precision << 16 | 2) + 4)
    columns = zip("isrn", types, modifiers, strict=True)
    return pgo.Relation(
        None,
        _OID,
        "public",
        "wide",
        "d",
        tuple(pgo.RelationColumn(int(name == "i"), name, oid, modifier) for name, oid, modifier in columns),
    )


NARROW = _relation(_INT4, _INT2, _FLOAT4, _NUMERIC, precision=5)
WIDE = _relation(_INT8, _INT4, _FLOAT8, _NUMERIC, precision=12)


def _write(log: Path, number: int, *messages: Any) -> None:
    """Add a transaction to a log without facts of the catalog, which would have the table copied again."""
    end, time = pgo.Lsn(1000 * number), pgo.Timestamp(number * 1_000_000)
    transaction = [pgo.Begin(end, time, 700 + number), *messages, pgo.Commit(end, pgo.Lsn(end + 10), time)]
    write_log(log, list(map(pgo.build, transaction)), log_options())


def _insert(*values: bytes | None) -> pgo.Insert:
    return pgo.Insert(None, _OID, values)


def _update(*values: bytes | None) -> pgo.Update:
    return pgo.Update(None, _OID, None, None, values)


def _rows(spark: Any, warehouse: Path) -> tuple[list[str], ...]:
    """Return a table and its history, with the types of columns."""
    both = [read(spark, warehouse, "public.wide") for read in (read_current, read_history)]
    return tuple(
        sorted([repr(sorted(rows.dtypes)), *map(repr, rows.select(sorted(rows.columns)).collect())]) for rows in both
    )


@pytest.mark.parametrize("into", [*SHORT_IN_PARQUET, pytest.param("delta-widening", marks=pytest.mark.long)])
def test_wider_types(lake: Any, tmp_path: Path, into: str) -> None:
    """Of integers, floats and numerics, in the key, too; with values that no type holds; after a batch was killed."""
    log, warehouse, options = tmp_path / "log", tmp_path / "wh", WIDENING if into == "delta-widening" else {}
    is_altered, into = into not in ("parquet", "delta"), into.removesuffix("-widening")

    def apply() -> Batch:
        done = replicate(lake, log, warehouse, into, history=True, **options)  # type: ignore[arg-type]
        assert done is not None
        return done

    many = [_insert(b"%d" % number, None, b"1.5", b"2.25") for number in range(10, 60)]
    _write(log, 1, NARROW, _insert(b"1", b"7", b"0.5", b"1.25"), _insert(b"2", None, b"NaN", b"NaN"), *many)
    apply()
    _write(
        log,
        2,
        WIDE,
        _insert(b"3000000000", b"70000", b"0.5", b"1234567890.25"),
        _update(b"1", b"8", b"0.5", b"1.50"),
        pgo.Delete(None, _OID, "K", (b"10", None, None, None)),
    )
    if into == "iceberg":
        with killed(Moment.AMID_COMMIT, into):
            apply()
    done = apply()
    assert done.tables == {"public.wide": "changed"}
    said = f"columns have wider types, which {into} is not altered for: 'i', 's', 'r', 'n'"
    assert done.reasons == ({} if is_altered else {"public.wide": said})
    _check_fresh(lake, log, warehouse, tmp_path / "fresh 1")
    _write(log, 3, WIDE, _insert(b"4", b"70000", b"1e300", None), _update(b"2", b"3", b"NaN", b"NaN"))
    assert not apply().reasons
    _check_fresh(lake, log, warehouse, tmp_path / "fresh 2")


@pytest.mark.long
def test_killed_after_an_alteration(lake: Any, tmp_path: Path) -> None:
    """ALTER TABLE is a commit of Delta Lake, which has no version: not that of the table that was written before."""
    log, warehouse = tmp_path / "log", tmp_path / "wh"
    names = {name: _OID + number for number, name in enumerate(("first", "second"))}

    def write(number: int, relation: pgo.Relation, *values: bytes | None) -> None:
        messages = [replace(relation, name=name, relation_oid=oid) for name, oid in names.items()]
        inserts = [pgo.Insert(None, oid, values) for oid in names.values()]
        _write(log, number, *messages, *inserts)

    def apply() -> None:
        replicate(lake, log, warehouse, "delta", workers=1, **WIDENING)  # type: ignore[arg-type]

    write(1, NARROW, b"1", b"7", b"0.5", b"1.25")
    apply()
    write(2, WIDE, b"3000000000", b"70000", b"0.5", b"1234567890.25")
    with killed(before(MergeStatements, "whole"), skip=1):
        apply()
    apply()
    for name in names:
        assert {row["i"] for row in read_current(lake, warehouse, f"public.{name}").collect()} == {1, 3_000_000_000}


def _check_fresh(spark: Any, log: Path, warehouse: Path, fresh: Path) -> None:
    replicate(spark, log, fresh, history=True)
    for mine, expected in zip(_rows(spark, warehouse), _rows(spark, fresh), strict=True):
        assert {*mine} ^ {*expected} == set()


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A table with a numeric, whose precision PostgreSQL changes without writing a row."""
    with Shop.create(server18, "wider_types", tmp_path / "log") as shop:
        shop.execute("CREATE TABLE t (id int PRIMARY KEY, n numeric(5, 2), ids int[])", "INSERT INTO t VALUES (1, 1.5)")
        shop.capture(snapshot=True)
        yield shop


@pytest.mark.server
@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
@pytest.mark.long
def test_wider_numerics_of_a_server(lake: Any, shop: Shop, tmp_path: Path, into: str) -> None:
    """Where PostgreSQL writes rows again, they are copied: the table is written as a whole, which is said."""
    warehouse = tmp_path / "wh"
    replicate(lake, shop.directory, warehouse, into, history=True)
    shop.execute("ALTER TABLE t ALTER n TYPE numeric(12, 2)", "INSERT INTO t VALUES (2, 1234567890.25)")
    shop.capture(snapshot=True)
    done = replicate(lake, shop.directory, warehouse, into, history=True)
    assert done is not None and done.tables == {"public.t": "changed"} and bool(done.reasons) == (into != "iceberg")
    check_equal(lake, shop, warehouse, ["t"])
    assert not open_differences(lake, shop, warehouse, ["t"])
    shop.execute("ALTER TABLE t ALTER id TYPE bigint", "INSERT INTO t VALUES (3000000000, NULL)")
    shop.capture(snapshot=True)
    done = replicate(lake, shop.directory, warehouse, into, history=True)
    assert done is not None and done.reasons == {"public.t": "it was copied again"}
    check_equal(lake, shop, warehouse, ["t"])
