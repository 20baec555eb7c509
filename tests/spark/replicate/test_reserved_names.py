"""Columns that a format cannot have, by their names: refused before they are written; all others are read back."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.lake._versions import Version, VersionShape
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark import read_current, read_history, replicate
from pgoutput_construct.spark._replicate import Batch
from pgoutput_construct.spark._table_formats.dataset_columns import Naming
from pgoutput_construct.spark._table_formats.delta_sink import CLAIM, DeltaSink
from pgoutput_construct.spark._table_formats.reserved_names import (
    DELTA,
    DELTA_WITH_CHANGES,
    ICEBERG,
    PARQUET,
    ReservedNames,
)
from pgoutput_construct.spark._table_formats.sink import WriteOptions
from pgoutput_construct.spark._verify import VerifyOptions, verify
from pgoutput_construct.stream.identifiers import quote_identifier
from tests.postgres.shop import Shop
from tests.spark.replicate import table_readers
from tests.table_formats import SHORT_IN_PARQUET
from tools.environments import READERS, missing_environment, python_with

RULES: Mapping[str, ReservedNames] = {"parquet": PARQUET, "delta": DELTA, "iceberg": ICEBERG}
DEFAULTS = "spark.databricks.delta.properties.defaults."
EVERY = sorted({name for rules in RULES.values() for names in rules.reasons for name in names})
"""The names that some format cannot have."""
ODD = (
    *("_FILE", "_Pos", "_change_type", "_commit_version", "_commit_timestamp", "file_path", "pos", "row", "s", "t"),
    *("source", "target", "element", "key", "value", "_before.id", "_untyped.other", "~", "_", "a.b", "a`b", 'a"b'),
    *("1a", "_2a", "x-y", "b.element", "é", "日本", "😀", "%41", "a/b", "a=b", "*", "t.*", "\\", "'", "null", "x", "X"),
    *("a b", "a,b", "a;b", "a{b}", "a\nb", "a\tb", "a\x01b", "a--b", "${env:HOME}", " ", "__metadata"),
)
"""Names that are odd, and that some layer might give a meaning of its own."""


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path, lake: Any) -> Iterator[Shop]:
    """A database, where there is what reads without Spark."""
    if problem := missing_environment(READERS):
        pytest.skip(problem)
    with Shop.create(server18, "reserved_names", tmp_path / "log") as shop:
        yield shop


def _create(name: str, columns: Mapping[str, str]) -> Iterator[str]:
    """Yield statements of a table with five rows."""
    own = ", ".join(f"{quote_identifier(column)} {kind}" for column, kind in columns.items())
    values = "".join(", ARRAY['v' || i]" if kind.endswith("[]") else ", 'v' || i" for kind in columns.values())
    yield f"CREATE TABLE {name} (id int PRIMARY KEY, {own})"
    yield f"INSERT INTO {name} SELECT i{values} FROM generate_series(1, 5) i"


def _rows_of_server(shop: Shop, name: str) -> list[str]:
    with shop.connect() as connection:
        return sorted(map(repr, connection.execute(f"SELECT * FROM {name}".encode()).fetchall()))


def _rows_of_reader(warehouse: Path, name: str) -> list[str]:
    """Return the rows that a reader without Spark has of a table, without the added columns, which are the last."""
    output = warehouse / "read.arrow"
    command = [python_with(READERS), table_readers.__file__, "lake", f"{warehouse}:{name}", output]
    project = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run(command, check=True, timeout=120, env=project)
    with pa.ipc.open_file(output) as file:
        rows = file.read_all()
    return _own(zip(*(rows.column(place).to_pylist() for place in range(rows.num_columns)), strict=True))


def _own(rows: Any) -> list[str]:
    return sorted(repr(tuple(row)[:-3]) for row in rows)


@pytest.mark.parametrize(
    ("rules", "columns", "refused"),
    [
        *((rules, [name], [name]) for rules in RULES.values() for names in rules.reasons for name in sorted(names)),
        (PARQUET, ["_file", "x", "X", "1a", "_1a", "x.element", "_FILE"], []),
        (DELTA, ["_file", "x", "X", "1a", "_1a", "_change_type"], ["X"]),
        (DELTA_WITH_CHANGES, ["_change_type", "_commit_version", "v"], ["_change_type", "_commit_version"]),
        (ICEBERG, ["_FILE", "x", "X", "é", "e\u0301", "1a", "2a"], []),
        (ICEBERG, ["list", "list.element", "x", "x.element", "list.key"], ["list.element"]),
        (ICEBERG, ["_untyped.key", "_untyped.value", "_untyped.other"], ["_untyped.key", "_untyped.value"]),
        (ICEBERG, ["1a", "_1a", "x-y", "x_x2Dy", "😀", "_xD83D_xDE00"], ["_1a", "x_x2Dy", "_xD83D_xDE00"]),
    ],
)
def test_columns(rules: ReservedNames, columns: Sequence[str], refused: Sequence[str]) -> None:
    """Each reserved name, and those that are so alongside other columns, are refused, and no others."""
    left = list(columns)
    for name in refused:
        with pytest.raises(
            pgo.ChangeLogError, match=f"{rules.format} cannot have the column {re.escape(repr(name))}: "
        ):
            rules.check(_dataset(left), Naming(), has_table=False)
        left.remove(name)
    rules.check(_dataset(left), Naming(), has_table=False)


def test_remedies() -> None:
    """A column of the key cannot be excluded; of a table that exists only together with --resync."""
    for key, has_table, expected in (
        ("_file", False, "(--rename-column 'public.t._file=NAME', rename_columns=), rename it at the source"),
        ("id", False, "or exclude it (--exclude-columns 'public.t._file', exclude_columns=), rename it at"),
        ("id", True, "exclude_columns=), with --resync public.t (resync=), rename it at"),
    ):
        with pytest.raises(pgo.ChangeLogError, match=re.escape(expected)):
            ICEBERG.check(_dataset(["id", "_file"], key), Naming(), has_table)


@pytest.mark.spark
@pytest.mark.long
def test_the_change_data_feed(lake: Any, tmp_path: Path) -> None:
    """An option, what the table has, and of a new one the default of the session decide, in this order."""
    warehouse, dataset, default = Warehouse(tmp_path), _dataset(["_change_type"]), f"{DEFAULTS}enableChangeDataFeed"

    def found(**properties: str) -> ReservedNames:
        options = WriteOptions(properties={f"delta.{name}": value for name, value in properties.items()})
        return DeltaSink(warehouse, options).reserved_in(spark, dataset)

    spark = lake.newSession()
    assert found() is DELTA and found(enableChangeDataFeed="TRUE") is DELTA_WITH_CHANGES
    spark.conf.set(default, "true")
    assert found() is DELTA_WITH_CHANGES and found(enableChangeDataFeed="false") is DELTA
    assert DeltaSink(warehouse).reserved_in(spark, _dataset(["v"])) is DELTA
    path = tmp_path / dataset.directory
    spark.range(1).write.format("delta").save(str(path))
    (path / CLAIM).touch()
    spark.conf.unset(default)
    assert found() is DELTA_WITH_CHANGES and found(enableChangeDataFeed="false") is DELTA
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    spark.conf.set(default, "true")
    assert found() is DELTA and found(enableChangeDataFeed="true") is DELTA_WITH_CHANGES
    (path / CLAIM).unlink()  # of others, so that a new table replaces it
    assert found() is DELTA_WITH_CHANGES


def _dataset(columns: Sequence[str], key: str = "") -> Dataset:
    kinds = {name: "list<item: string>" if name == "list" else "string" for name in columns}
    shape = VersionShape(kinds, tuple(columns), (key,), "d", None)
    return Dataset("public.t", Version("public.t", 1, 1, 1, (1, 1), shape))


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_tables(lake: Any, shop: Shop, tmp_path: Path, into: str) -> None:
    """The first batch says which tables cannot be; an excluded column is one remedy; the others come out right."""
    rules, warehouse, seen = RULES[into], tmp_path / "wh", list[Batch]()
    reserved = {name for names in rules.reasons for name in names}
    refused = {f"r{place}": {name: "text"} for place, name in enumerate(sorted(reserved))}
    if into == "iceberg":
        refused |= {"p0": {"arr": "text[]", "arr.element": "text"}, "p1": {"_untyped.key": "text"}}
        refused |= {"p2": {"1a": "text", "_1a": "text"}, "p3": {"x-y": "text", "x_x2Dy": "text"}}
    odd = [name for name in (*EVERY, *ODD) if name not in reserved]
    if into == "delta":  # which has names in any case
        refused |= {"p0": {"x": "text", "X": "text"}}
        odd = list({name.lower(): name for name in odd}.values())
    good = {"odd": dict.fromkeys(odd, "text"), "arrays": {"b": "text[]", "b.list": "text", "c.element": "text"}}
    tables = {**refused, **good}
    shop.execute(*(each for name, columns in tables.items() for each in _create(name, columns)))
    shop.capture(snapshot=True)
    options: Mapping[str, Any] = {"write_mode": "merge-on-read"}
    if refused:
        with pytest.raises(pgo.ChangeLogError, match="all other tables are up to date"):
            replicate(lake, shop.directory, warehouse, into, on_batch=seen.append, **options)
        assert seen[-1].troubled.keys() == {f"public.{name}" for name in refused}
        for name, columns in refused.items():
            column = f"public.{name}.{quote_identifier([*columns][-1])}"
            message = seen[-1].troubled[f"public.{name}"]
            assert f"{rules.format} cannot have the column {[*columns][-1]!r}: " in message
            assert f"(--rename-column '{column}=NAME'" in message
            assert f"exclude it (--exclude-columns '{column}'" in message
            assert not list(warehouse.glob(f"**/*{name}*"))
    excluded = [f"public.{name}.{quote_identifier([*columns][-1])}" for name, columns in refused.items()]
    shop.execute(
        *(
            f"UPDATE {name} SET {quote_identifier([*columns][-1])} = 'new' WHERE id < 3"
            for name, columns in good.items()
        ),
        *(f"DELETE FROM {name} WHERE id = 4" for name in good),
        *(f"INSERT INTO {name} (id) VALUES (9)" for name in tables),
    )
    shop.capture()
    replicate(lake, shop.directory, warehouse, into, exclude_columns=excluded, **options)
    for name in good:
        expected = _rows_of_server(shop, name)
        assert _own(read_current(lake, warehouse, name).collect()) == expected, name
        assert _rows_of_reader(warehouse, name) == expected, name
    for name, columns in refused.items():
        left = [column for column in columns if f"public.{name}.{quote_identifier(column)}" not in excluded]
        rows = read_current(lake, warehouse, name)
        assert rows.count() == 6 and rows.columns[:-3] == ["id", *left]


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.parametrize("into", ["iceberg", "delta"])
@pytest.mark.long
def test_other_names(lake: Any, shop: Shop, tmp_path: Path, into: str) -> None:
    """Columns of the key, too, have another name in the warehouse, whatever becomes of them at the source."""
    warehouse = tmp_path / "wh"
    key, value = ("_file", "_pos") if into == "iceberg" else ("_source_row_present_", "_target_row_present_")
    names = {f"public.t.{key}": "the key", f"public.t.{value}": "value"}
    options: Mapping[str, Any] = {"rename_columns": names, "history": True, "metadata_columns": "none"}
    shop.execute(
        f"CREATE TABLE t ({key} int PRIMARY KEY, n text[], {value} text)",
        "INSERT INTO t SELECT i, ARRAY['a'], 'v' || i FROM generate_series(1, 5) i",
    )
    shop.capture(snapshot=True)
    with pytest.raises(pgo.ChangeLogError, match=f"{key} cannot be renamed to n, the name of another column"):
        replicate(lake, shop.directory, tmp_path / "other", into, rename_columns={f"public.t.{key}": "n"})
    replicate(lake, shop.directory, warehouse, into, **options)
    for script in (
        (f"UPDATE t SET {value} = 'new' WHERE {key} < 3", f"UPDATE t SET {key} = 9 WHERE {key} = 5"),
        (f"ALTER TABLE t RENAME {value} TO v", "ALTER TABLE t ADD w int", f"DELETE FROM t WHERE {key} = 3"),
        (
            f"ALTER TABLE t RENAME {key} TO k",
            "INSERT INTO t VALUES (7, NULL, 'x', 1)",
            "UPDATE t SET v = 'y' WHERE k = 1",
        ),
    ):
        shop.execute(*script)
        shop.capture()
        done = replicate(lake, shop.directory, warehouse, into, history=True)
        assert done is not None and done.tables == {"public.t": "changed"}
        rows = read_current(lake, warehouse, "t")
        assert rows.columns[:3] == ["the key", "n", "value"]
        assert sorted(repr(tuple(row)) for row in rows.collect()) == _rows_of_server(shop, "t")
    assert read_history(lake, warehouse, "t").where("`the key` = 1").count() == 3
    shop.execute(
        'ALTER TABLE t RENAME k TO "the key"',  # as it is called in the warehouse
        "ALTER TABLE t DROP v",
        f"ALTER TABLE t ADD {value} text",
        f"UPDATE t SET {value} = 'z' WHERE n IS NULL",
    )
    shop.capture()
    replicate(lake, shop.directory, warehouse, into, history=True)
    rows = read_current(lake, warehouse, "t").select("the key", "n", "w", "value")
    assert sorted(repr(tuple(row)) for row in rows.collect()) == _rows_of_server(shop, "t")
    source = SourceServer(shop.dsn, shop.log().options.publications)
    with shop.capturing():
        (verdict,) = verify(lake, shop.directory, warehouse, source, ["public.t"], options=VerifyOptions(60.0, 60))
    assert verdict.equal and verdict.rows == 5 and not verdict.not_compared
    with pytest.raises(pgo.PgoutputError, match=r"is renamed to value there, not renamed to other: omit"):
        replicate(lake, shop.directory, warehouse, into, rename_columns={f"public.t.{value}": "other"})
