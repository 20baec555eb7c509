"""Changes under the names that Spark's CHANGES clause has: against the rows of the view as it is by default."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark import register
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._source.change_images import IMAGE
from tests.live.recording import Recording
from tests.postgres.shop import Shop
from tests.spark.logs import write_recording
from tests.spark.source.test_batch import load, read

pytestmark = pytest.mark.spark

ADDED = (
    *("_change_type", "_commit_version", "_seq", "_commit_timestamp", "_xid", "_unchanged", "_untyped"),
    "_relation_oid",
)
_UNCHANGED_KEYS = ("_seq", "_xid", "_relation_oid")


def _expected(change: dict[str, Any], names: list[str], keys: tuple[str, ...], prefix: str = "_") -> Iterator[Any]:
    """Yield the images of a change, as the documentation says them."""
    added = {name: change[f"{prefix}{name[1:]}"] for name in _UNCHANGED_KEYS}
    added |= {"_commit_version": change[f"{prefix}commit_lsn"], "_commit_timestamp": change[f"{prefix}commit_time"]}
    kind, before, start = change[f"{prefix}op"], change.get(f"{prefix}before"), f"{prefix}before."
    texts = dict(change[f"{prefix}untyped"] or ())
    new = {name: text for name, text in texts.items() if not name.startswith(start)}
    old = {name.removeprefix(start): text for name, text in texts.items() if name.startswith(start)}
    row = {name: change[name] for name in names}
    if kind in ("update", "delete") and before is not None:
        unknown = [name for name in names if name not in keys]
        sent = any(before[name] is not None or name in old for name in unknown)  # the full row
        of_old = {"_unchanged": [] if sent or not keys else unknown, "_untyped": sorted(old.items()) or None}
        yield before | added | of_old | {"_change_type": "delete" if kind == "delete" else "update_preimage"}
    if kind != "delete":
        name = {"snapshot": "insert", "update": "update_postimage"}.get(kind, kind)
        of_new = {"_unchanged": change[f"{prefix}unchanged"], "_untyped": sorted(new.items()) or None}
        yield row | added | of_new | {"_change_type": name}


def _found(images: pa.Table, prefix: str = "_") -> list[str]:
    ours = {f"{prefix}{name[1:]}": name for name in ADDED}
    rows = [{ours.get(name, name): value for name, value in row.items()} for row in images.to_pylist()]
    return [_text(row | {"_untyped": sorted(row["_untyped"]) if row["_untyped"] else None}) for row in rows]


def _text(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))


@pytest.mark.parametrize("name", ["18-v4-text", "18-v4-binary", "16-v1-text"])
def test_images(recordings: dict[str, Recording], tmp_path: Path, name: str) -> None:
    """Of every table of a recording: every type of value, old rows and keys, truncates, values that are not sent."""
    write_recording(tmp_path, recordings[name], rows=50)
    log, kinds = ChangeLog(tmp_path), set[str]()
    for table in LogTables.from_log(log).tables.values():
        changes, images = read(log, table=table.qualified), read(log, table=table.qualified, changeColumns="spark")
        assert images.column_names == [*table.columns.names, *ADDED] and ADDED == IMAGE
        is_full = table.replica_identity == "f"
        keys = () if is_full else table.key_columns
        expected = [image for change in changes.to_pylist() for image in _expected(change, table.columns.names, keys)]
        assert _found(images) == list(map(_text, expected)), table.qualified
        kinds |= set(images["_change_type"].to_pylist())
    assert kinds == {"insert", "delete", "update_preimage", "update_postimage", "truncate"}


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A table that is copied, whose columns have awkward names and values."""
    with Shop.create(server18, "change_images", tmp_path / "log") as shop:
        shop.execute(
            'CREATE TABLE odd (id int PRIMARY KEY, "_op" date, big text)',
            "ALTER TABLE odd ALTER big SET STORAGE EXTERNAL",
            "ALTER TABLE odd REPLICA IDENTITY FULL",
            "INSERT INTO odd VALUES (1, 'infinity', repeat('b', 3000)), (2, NULL, 'x')",
        )
        shop.capture(snapshot=True)
        shop.execute(
            "UPDATE odd SET \"_op\" = '-infinity' WHERE id = 1",
            "UPDATE odd SET id = 3 WHERE id = 2",
            "ALTER TABLE odd REPLICA IDENTITY DEFAULT",
            "UPDATE odd SET id = 4 WHERE id = 1",
            "DELETE FROM odd WHERE id = 4",
        )
        shop.capture()
        yield shop


@pytest.mark.server
@pytest.mark.long
def test_images_of_a_stream(spark: Any, shop: Shop, tmp_path: Path) -> None:
    """They are those of a batch."""
    register(spark)
    options, place = {"table": "odd", "changeColumns": "spark", "metadataPrefix": "pg_"}, str(tmp_path / "streamed")
    rows = load(spark, shop.log(), **options).select("pg_change_type", "id").collect()
    stream = spark.readStream.format("pgoutput").options(path=shop.log().store.address, **options).load()
    writer = stream.select("pg_change_type", "id").writeStream.option("checkpointLocation", str(tmp_path / "check"))
    writer.trigger(availableNow=True).start(place, "parquet").awaitTermination(120)
    streamed = spark.read.parquet(place).collect()
    assert sorted(map(tuple, streamed)) == sorted(map(tuple, rows))


@pytest.mark.server
def test_images_in_spark(spark: Any, shop: Shop) -> None:
    """With another prefix, of some columns; and live from a slot."""
    register(spark)
    options = {"table": "odd", "changeColumns": "spark", "metadataPrefix": "pg_"}
    rows = load(spark, shop.log(), **options)
    assert rows.columns == ["id", "_op", "big", *(f"pg_{name[1:]}" for name in ADDED)]
    found = rows.selectExpr("pg_change_type", "id", "`_op`", "length(big)", "pg_unchanged", "pg_untyped").collect()
    infinity, least = {"_op": "infinity"}, {"_op": "-infinity"}
    # Rows that are copied were inserted in the stream, too.
    assert [row for number, row in enumerate(map(tuple, found)) if row not in [*map(tuple, found[:number])]] == [
        ("insert", 1, None, 3000, [], infinity),
        ("insert", 2, None, 1, [], None),
        ("update_preimage", 1, None, 3000, [], infinity),
        ("update_postimage", 1, None, None, ["big"], least),
        ("update_preimage", 2, None, 1, [], None),
        ("update_postimage", 3, None, 1, [], None),
        ("update_preimage", 1, None, None, ["_op", "big"], None),
        ("update_postimage", 4, None, None, ["big"], least),
        ("delete", 4, None, None, ["_op", "big"], None),
    ]
    copied = rows.where("pg_commit_timestamp IS NULL").select("pg_change_type", "id").collect()
    assert sorted(map(tuple, copied)) == [("insert", 1), ("insert", 2)]
    with pytest.raises(pgo.ChangeLogError, match="the column '_op' has the name of an added column"):
        read(shop.log(), table="odd")
    assert read(shop.log(), table="odd", changeColumns="spark", columns="id").column_names == ["id", *ADDED]
    with shop.connect() as connection:
        connection.execute("SELECT pg_create_logical_replication_slot('images', 'pgoutput')")
        connection.execute("UPDATE odd SET id = 5 WHERE id = 3")
    try:
        live = {"dsn": shop.dsn, "slot": "images"}
        peeked = spark.read.format("pgoutput").options(**live, **options).load()
        assert [tuple(row)[:3] for row in peeked.select("pg_change_type", "id", "pg_unchanged").collect()] == [
            ("update_preimage", 3, ["_op", "big"]),
            ("update_postimage", 5, []),
        ]
    finally:
        shop.execute("SELECT pg_drop_replication_slot('images')")
