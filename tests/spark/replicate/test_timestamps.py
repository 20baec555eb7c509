"""Timestamps and dates of any year: readers without Spark have those of the server, and find them by a condition."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from pgoutput_construct import lake as lake_tables
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark import maintain, open_log, replicate, write_tables
from pgoutput_construct.spark._own_session import session_settings
from pgoutput_construct.spark._table_formats.delta_sink import DeltaSink
from tests.postgres.shop import Shop

pytestmark = [pytest.mark.server, pytest.mark.spark]

YEARS = (
    *("9999-12-31 23:59:59.999999", "9999-12-31 23:59:59.001", "0001-01-01 00:00:00", "0001-01-01 00:00:00.000001"),
    *("1582-10-04 12:00:00", "1582-10-10 00:00:00", "1500-02-28 01:02:03.000004", "1677-09-21 00:12:43.145224"),
    *("2262-04-11 23:47:16.854776", "1883-11-18 17:00:00", "2024-10-27 00:30:00", "2024-10-27 01:30:00"),
)
"""Timestamps in UTC: of both ends, of days that only one of the Julian and Gregorian calendars has, around the ends of
nanoseconds in 64 bits, and of hours that occur twice in zones with summer time."""
CALLER = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.session.timeZone": "Europe/Berlin",
}
"""What a session may set; the first is Spark's default."""
TYPES = {
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "day": pa.date32(),
    "ats": pa.list_(pa.timestamp("us", "UTC")),
    "locals": pa.list_(pa.timestamp("us")),
    "days": pa.list_(pa.date32()),
}


def _insert(table: str, first: int) -> str:
    rows = (
        f"({first + place}, {place % 2}, '{year}+00', '{year}', '{year}', '{{{year}+00,NULL}}', '{{NULL,{year}}}', "
        f"'{{{year}}}', '')"
        for place, year in enumerate(YEARS)
    )
    return f"INSERT INTO {table} VALUES {', '.join(rows)}"


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, lake: Any) -> Iterator[Shop]:
    """Tables of timestamps, and a session that writes them as most readers misread them."""
    with Shop.create(server18, "timestamps", tmp_path / "log") as shop:
        for name, key in (("t", "id"), ("parted", "id"), ("by_time", "at, id")):
            shop.execute(
                f"CREATE TABLE {name} (id int, part int, at timestamptz, local timestamp, day date, "
                f"ats timestamptz[], locals timestamp[], days date[], note text, PRIMARY KEY ({key}))",
                _insert(name, 0),
            )
        shop.capture(snapshot=True)
        with session_settings(lake, CALLER):
            yield shop


def _change(shop: Shop, *tables: str) -> None:
    for name in tables:
        shop.execute(f"UPDATE {name} SET note = 'x' WHERE id % 3 = 0", f"DELETE FROM {name} WHERE id = 1")
        shop.execute(_insert(name, 100))
    shop.capture()


def _expected(shop: Shop, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of the server, each time as microseconds since 1970 and each date as days."""
    parts = ["id"]
    for name, kind in TYPES.items():
        item = kind.value_type if pa.types.is_list(kind) else kind
        number = "(v - '1970-01-01'::date)" if pa.types.is_date(item) else "(extract(epoch FROM v) * 1000000)::bigint"
        among = name if pa.types.is_list(kind) else f"array[{name}]"
        parts.append(f"array(SELECT {number} FROM unnest({among}) WITH ORDINALITY u(v, n) ORDER BY n)")
    with shop.connect() as connection:
        return sorted(connection.execute(f"SELECT {', '.join(parts)} FROM {table}".encode()).fetchall())


def _found(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Return rows as ``_expected`` does."""
    columns = [rows["id"].to_pylist()]
    for name, kind in TYPES.items():
        number = pa.int32() if pa.types.is_date(kind) else pa.int64()
        if not pa.types.is_list(kind):
            columns.append([[value] for value in rows[name].cast(kind).cast(number).to_pylist()])
        else:
            number = pa.int32() if pa.types.is_date(kind.value_type) else pa.int64()
            columns.append(rows[name].cast(kind).cast(pa.list_(number)).to_pylist())
    return sorted(zip(*columns, strict=True))


def _check(shop: Shop, warehouse: Path, *tables: str) -> None:
    for name in tables:
        assert _found(lake_tables.read(warehouse, name)) == _expected(shop, name), name
    files = [*warehouse.rglob("*.parquet")]  # checkpoints of Delta Lake's log, too
    kinds = [column.physical_type for path in files for column in pq.ParquetFile(path).schema]
    assert kinds and "INT96" not in kinds


@pytest.mark.parametrize("mode", [None, "merge-on-read"], ids=["plain", "vectors"])
@pytest.mark.long
def test_delta_lake(lake: Any, shop: Shop, tmp_path: Path, mode: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by tasks, merged by Spark, partitioned, put together: nothing but the times of the server."""
    monkeypatch.setattr(DeltaSink, "few_rows", 0)  # as for tables of more than 16 MB
    warehouse, tables = tmp_path / "wh", ("t", "parted", "by_time")
    partitions = {"public.parted": ["part"], "public.by_time": ["at"]}
    options: dict[str, Any] = {"write_mode": mode, "partition_by": partitions}
    replicate(lake, shop.directory, warehouse, "delta", [*tables], **options)
    _check(shop, warehouse, *tables)
    _check_conditions(shop, warehouse, "t")  # by the statistics of the tasks' files
    _change(shop, *tables)
    replicate(lake, shop.directory, warehouse, "delta", [*tables], **options)
    _check(shop, warehouse, *tables)
    assert not [report.error for report in maintain(lake, warehouse) if report.error]
    _check(shop, warehouse, *tables)
    for name in tables:
        _check_conditions(shop, warehouse, name)


@pytest.mark.long
def test_a_first_column_of_local_time(lake: Any, server18: EmbeddedServer, tmp_path: Path) -> None:
    """A table of Delta Lake that exists has no feature for it, which a new one gets by itself; others are kept."""
    with Shop.create(server18, "first_local", tmp_path / "log") as shop:
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, tmp_path / "wh", "delta", history=True)
        shop.execute("ALTER TABLE item ADD at timestamp DEFAULT '2024-01-02', ADD ats timestamp[]")
        shop.execute("UPDATE item SET name = 'b'")
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh", "delta", history=True)
    (row,) = lake_tables.read(tmp_path / "wh", "item", columns=["name", "at", "ats"]).to_pylist()
    assert row == {"name": "b", "at": datetime(2024, 1, 2), "ats": None}
    assert "timestampNtz" in (DeltaTable(tmp_path / "wh" / "public.item").protocol().writer_features or ())


def test_parquet(lake: Any, shop: Shop, tmp_path: Path) -> None:
    """Tables that Spark writes, a history, and the changes that ``write_tables`` writes or appends."""
    warehouse, names = tmp_path / "wh", ["t"]
    replicate(lake, shop.directory, warehouse, "parquet", names, history=True, write_mode="copy-on-write")
    _change(shop, *names)
    replicate(lake, shop.directory, warehouse, "parquet", names, history=True, write_mode="copy-on-write")
    _check(shop, warehouse, *names)
    history = lake_tables.read(warehouse, "t", history=True)
    assert _found(history.filter(pc.is_null(history["_valid_to"]))) == _expected(shop, "t")
    log = open_log(lake, shop.directory)
    for mode in ("error", "append"):
        (written,) = write_tables(log, tmp_path / "changes", names, mode).values()
    changes = pq.read_table(written.path)
    for name, kind in TYPES.items():
        assert changes[name].type == kind and changes["_before"].type.field(name).type == kind
    inserted = changes.filter(pc.is_in(changes["_op"], pa.array(["insert", "snapshot"])))
    assert len(inserted) == 2 * 3 * len(YEARS)  # twice, of the copy and of two INSERTs
    assert {str(value) for value in inserted["local"].to_pylist()} == {str(datetime.fromisoformat(y)) for y in YEARS}


def _check_conditions(shop: Shop, warehouse: Path, name: str) -> None:
    """Compare what conditions find with what the server finds: files are skipped by their statistics."""
    query = QueryBuilder().register("t", DeltaTable(str(warehouse / f"public.{name}")))
    kinds = {"at": 'Timestamp(µs, "UTC")', "local": "Timestamp(µs)", "day": "Date32"}
    for year in YEARS:
        values = {"at": f"{year}Z", "local": year, "day": year[:10]}
        found, counts = list[int](), list[str]()
        for column, kind in kinds.items():
            for sign in ("<", "=", ">"):
                counts.append(f"(SELECT count(*) FROM {name} WHERE {column} {sign} '{values[column]}')")
                where = f"{column} {sign} arrow_cast('{values[column]}', '{kind}')"
                found += pa.table(query.execute(f"SELECT count(*) AS n FROM t WHERE {where}"))["n"].to_pylist()
        with shop.connect() as connection:
            assert tuple(found) == connection.execute(f"SELECT {', '.join(counts)}".encode()).fetchone(), year
