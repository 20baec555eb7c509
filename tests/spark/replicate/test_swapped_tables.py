"""Tables that take the names of others, which are dropped, or renamed in their turn: a table is what its OID says."""

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.postgres import snapshot
from pgoutput_construct.postgres.checksums import SourceServer
from pgoutput_construct.spark import open_log, read_table, write_tables
from pgoutput_construct.spark._replicate import Batch, read_current, read_history, replicate
from pgoutput_construct.spark._verify import VerifyOptions, verify
from pgoutput_construct.wire import Lsn
from tests.crashes import before, killed
from tests.postgres.shop import Shop
from tests.table_formats import ALL_FORMATS

pytestmark = [pytest.mark.server, pytest.mark.spark]

_TWO = """CREATE TABLE {0} (id int PRIMARY KEY, v text); CREATE TABLE {0}_new (id int PRIMARY KEY, v text);
    INSERT INTO {0}_new VALUES (1, 'new'), (2, 'new'), (3, 'new');
    INSERT INTO {0} VALUES (1, 'old'), (2, 'old'), (4, 'old')"""
_DROPPED = "DROP TABLE {0}; ALTER TABLE {0}_new RENAME TO {0}"
_EXCHANGED = "ALTER TABLE {0} RENAME TO {0}_old; ALTER TABLE {0}_new RENAME TO {0}"
_ROTATED = "ALTER TABLE {0} RENAME TO {0}_x; ALTER TABLE {0}_new RENAME TO {0}; ALTER TABLE {0}_x RENAME TO {0}_new"

ROUNDS: Mapping[str, tuple[str, ...]] = {
    "dropped": (
        _TWO,
        "UPDATE {0} SET v = 'old 2'; INSERT INTO {0} VALUES (5, 'old'); DELETE FROM {0} WHERE id = 1;"
        f"{_DROPPED}; UPDATE {{0}} SET v = 'new 2' WHERE id = 3",
        "DELETE FROM {0} WHERE id = 2; INSERT INTO {0} VALUES (2, 'again')",
    ),
    "unwritten": (_TWO, f"INSERT INTO {{0}} VALUES (5, 'old'); {_DROPPED}", "SELECT"),
    "exchanged": (
        _TWO,
        "UPDATE {0} SET v = 'old 2' WHERE id = 2; UPDATE {0}_new SET id = 7 WHERE id = 2;"
        f"{_EXCHANGED}; UPDATE {{0}}_old SET v = 'old 3' WHERE id = 2; DELETE FROM {{0}} WHERE id = 1",
        "UPDATE {0} SET v = 'new 3'; DELETE FROM {0}_old WHERE id = 1",
    ),
    "rotated": (
        _TWO,
        f"{_ROTATED}; INSERT INTO {{0}} VALUES (8, 'new'); UPDATE {{0}}_new SET v = 'old 2'",
        f"DELETE FROM {{0}} WHERE id = 2; {_ROTATED}; DELETE FROM {{0}} WHERE id = 1; {_ROTATED}; {_ROTATED}",
    ),
    "at_once": (
        _TWO,
        "BEGIN; UPDATE {0} SET v = 'old 2'; DELETE FROM {0}_new WHERE id = 1;"
        f"{_DROPPED}; UPDATE {{0}} SET v = 'new 2' WHERE id = 2; CREATE TABLE {{0}}_new (id int PRIMARY KEY, v text);"
        "INSERT INTO {0}_new VALUES (2, 'newer'); COMMIT",
        f"BEGIN; UPDATE {{0}} SET v = 'new 3'; {_EXCHANGED}; INSERT INTO {{0}} VALUES (3, 'newer'); COMMIT",
    ),
    "twice": (
        _TWO,
        f"{_DROPPED}; CREATE TABLE {{0}}_new (id int PRIMARY KEY, v text); INSERT INTO {{0}} VALUES (9, 'new');"
        f"INSERT INTO {{0}}_new VALUES (2, 'newest'); {_DROPPED}; UPDATE {{0}} SET v = 'changed'",
        "CREATE TABLE {0}_new (id int PRIMARY KEY, v text); INSERT INTO {0}_new VALUES (2, 'last');"
        f"UPDATE {{0}} SET v = 'old'; {_DROPPED}; DROP TABLE {{0}}",
    ),
    "hidden": (
        _TWO,
        "ALTER TABLE {0} RENAME TO {0}_x; INSERT INTO {0}_x VALUES (6, 'x'); DROP TABLE {0}_x;"
        "ALTER TABLE {0}_new RENAME TO {0}",
        "ALTER TABLE {0} RENAME TO {0}_y; INSERT INTO {0}_y VALUES (6, 'y')",
    ),
    "otherwise": (
        """CREATE TABLE {0} (id int PRIMARY KEY, v int, gone text); INSERT INTO {0} VALUES (1, 1, 'x'), (2, 2, NULL);
        CREATE TABLE {0}_new (v text, id int, more int DEFAULT 7); ALTER TABLE {0}_new REPLICA IDENTITY FULL;
        INSERT INTO {0}_new VALUES ('one', 1, 1), ('two', 2, 2), ('two', 2, 2)""",
        "UPDATE {0} SET v = 3 WHERE id = 2; ALTER TABLE {0} ADD added int DEFAULT 5;"
        f"INSERT INTO {{0}} VALUES (3, 3, NULL); {_DROPPED}; DELETE FROM {{0}} WHERE id = 1;"
        "UPDATE {0} SET more = 9 WHERE ctid IN (SELECT ctid FROM {0} LIMIT 1)",
        "ALTER TABLE {0} ADD added text; INSERT INTO {0} VALUES ('three', 3, 3, 'a')",
    ),
    "part": (
        """CREATE TABLE {0} (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
        CREATE TABLE {0}_1 PARTITION OF {0} FOR VALUES FROM (0) TO (10);
        CREATE TABLE {0}_2 (id int PRIMARY KEY, v text);
        INSERT INTO {0} VALUES (1, 'old'), (2, 'old'); INSERT INTO {0}_2 VALUES (1, 'new'), (2, 'new')""",
        "UPDATE {0} SET v = 'old 2' WHERE id = 2; BEGIN; ALTER TABLE {0} DETACH PARTITION {0}_1;"
        "ALTER TABLE {0}_1 RENAME TO {0}_old; ALTER TABLE {0}_2 RENAME TO {0}_1;"
        "ALTER TABLE {0} ATTACH PARTITION {0}_1 FOR VALUES FROM (0) TO (10); COMMIT;"
        "UPDATE {0} SET v = 'new 2' WHERE id = 2; DELETE FROM {0}_old WHERE id = 1",
        "INSERT INTO {0} VALUES (5, 'new')",
    ),
}
"""What happens to tables before each batch; they begin with the name of what happens."""

MERGED = ("dropped", "exchanged", "rotated")
"""What all formats show."""
IN_STEPS: Final[tuple[tuple[str, Collection[str]], ...]] = (("parquet", ROUNDS), ("delta", MERGED), ("iceberg", MERGED))


class Moment(NamedTuple):
    """What the server has at one time."""

    names: dict[str, int]
    """The tables with rows, and their OIDs."""
    rows: dict[int, list[str]]
    """Their rows, as JSON, by OID."""
    time: datetime
    seq: int
    """Where the log ended then."""


def _moment(shop: Shop, seq: int) -> Moment:
    query = "SELECT relname, oid::int FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    with shop.connect() as connection:
        names = {f"public.{name}": oid for name, oid in connection.execute(query)}
        rows = {}
        for name, oid in names.items():
            found = connection.execute(f"SELECT jsonb_strip_nulls(to_jsonb(t))::text FROM {name} t".encode())
            rows[oid] = sorted(row[0].replace(" ", "") for row in found)
        (time,) = connection.execute("SELECT clock_timestamp()").fetchall()[0]
    return Moment(names, rows, time, seq)


def _json(frames: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the rows of DataFrames, as PostgreSQL writes them as JSON, without what is ours; in one job."""
    found: dict[str, list[str]] = {name: [] for name in frames}
    parts = []
    for name, frame in frames.items():
        # As jsonb has them: the shorter names first.
        columns = sorted((each for each in frame.columns if each[0] != "_"), key=lambda each: (len(each), each))
        parts.append(frame.select(F.lit(name).alias("name"), F.to_json(F.struct(*columns)).alias("row")))
    for row in reduce(lambda one, other: one.unionAll(other), parts).collect():
        found[row["name"]].append(row["row"].replace(" ", ""))
    return {name: sorted(rows) for name, rows in found.items()}


def _run(lake: Any, shop: Shop, chosen: Collection[str], step: int) -> Moment:
    for name in chosen:
        with shop.connect() as connection:
            for statement in ROUNDS[name][step].format(name).split(";"):
                connection.execute(statement.encode())
    return _moment(shop, -1)


def _current(lake: Any, warehouse: Path) -> dict[str, list[str]]:
    """Return the rows of all tables of a warehouse."""
    names = {each.version.table for each in Warehouse(warehouse).datasets().values() if not each.is_history}
    return _json({name: read_current(lake, warehouse, name) for name in names})


def _ever(lake: Any, warehouse: Path, names: Collection[str], moment: Moment) -> dict[str, list[str]]:
    """Return the rows that the histories of tables have at a time."""
    time = F.lit(moment.time)
    began = F.col("_valid_from").isNull() | (F.col("_valid_from") <= time)
    lasts = F.col("_ended_by").isNull() | (F.col("_valid_to") > time)
    return _json({name: read_history(lake, warehouse, name).where(began & lasts) for name in names})


def _intervals(lake: Any, warehouse: Path, names: Collection[str]) -> dict[str, list[str]]:
    """Return all rows of histories, with what made and ended them."""
    frames = {}
    for name in names:
        rows = read_history(lake, warehouse, name)
        kept = [each for each in rows.columns if each not in ("_unchanged", "_untyped")]
        frames[name] = rows.select(*(F.col(each).alias(each.lstrip("_")) for each in kept))
    return _json(frames)


def _named(moment: Moment) -> dict[str, list[str]]:
    return {name: moment.rows[oid] for name, oid in moment.names.items()}


def _check(lake: Any, shop: Shop, warehouse: Path, moments: list[Moment]) -> None:
    """Tables and histories of a warehouse are those of the server, now and at all times before."""
    last = moments[-1]
    assert _current(lake, warehouse) == _named(last)
    for moment in moments:
        here = {name: oid for name, oid in last.names.items() if oid in moment.rows}
        assert _ever(lake, warehouse, here, moment) == {name: moment.rows[oid] for name, oid in here.items()}


@pytest.mark.long
@pytest.mark.parametrize(("into", "chosen"), IN_STEPS, ids=["parquet", "delta", "iceberg"])
def test_replicated_in_steps(
    lake: Any, server18: EmbeddedServer, tmp_path: Path, into: str, chosen: Collection[str]
) -> None:
    """After each capture the tables, and their histories, are those of the server; at once they come to the same."""
    moments = list[Moment]()
    with Shop.create(server18, f"swapped_{into}", tmp_path / "log") as shop:
        shop.capture(snapshot=True)
        for step in range(3):
            moment = _run(lake, shop, chosen, step)
            shop.capture()
            moments.append(moment._replace(seq=shop.log().index.last_seq))
            # One after the other: what one has replaced, another one may have to read.
            replicate(
                lake, shop.directory, tmp_path / "steps", into, history=True, workers=1 if into != "parquet" else 4
            )
            _check(lake, shop, tmp_path / "steps", moments)
        replicate(lake, shop.directory, tmp_path / "once", into, history=True)
        _check(lake, shop, tmp_path / "once", moments)
        names = moments[-1].names
        assert _intervals(lake, tmp_path / "steps", names) == _intervals(lake, tmp_path / "once", names)
        if into == "parquet":
            for moment in moments:
                log = open_log(lake, shop.directory, moment.seq)
                assert _json({name: log.state(name) for name in moment.names}) == _named(moment)
            if chosen is ROUNDS:
                _check_changes(lake, shop, tmp_path / "changes", moments[-1])


def _check_changes(lake: Any, shop: Shop, directory: Path, last: Moment) -> None:
    """Changes that were written down lead to the same rows; those of tables that are gone are among them."""
    log = open_log(lake, shop.directory)
    written = write_tables(log, directory)
    states = {name: log.state(name, read_table(lake, written[name].path)) for name in last.names}
    assert _json(states) == _named(last)
    found = read_table(lake, written["public.dropped"].path).groupBy("_relation_oid").count().collect()
    assert sorted(row["count"] for row in found) == [6, 8]
    # Under the name that it had last, which no reading of the catalog has.
    assert log.table("public.hidden_x").dropped


@pytest.mark.long
def test_captured_at_once(lake: Any, server18: EmbeddedServer, tmp_path: Path) -> None:
    """No capture looks at the catalog between two names."""
    with Shop.create(server18, "swapped_at_once", tmp_path / "log") as shop:
        shop.capture(snapshot=True)
        moments = [_run(lake, shop, ROUNDS, step) for step in range(3)]
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh", history=True)
        _check(lake, shop, tmp_path / "wh", moments)


@pytest.mark.long
def test_after_prune(lake: Any, server18: EmbeddedServer, tmp_path: Path) -> None:
    """Rows that the log has no more are not made up: the table stays as it was, until it is copied."""
    with Shop.create(server18, "swapped_pruned", tmp_path / "log") as shop:
        _run(lake, shop, ["dropped"], 0)
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh")
        shop.execute("INSERT INTO item VALUES (1, 'x')")
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh")
        assert prune(shop.directory, Lsn(2**63 - 1), states=False).removed
        moment = _run(lake, shop, ["dropped"], 1)
        shop.capture()
        with pytest.raises(ChangeLogError, match=r"public\.dropped: .*pruned.*pgoutput snapshot"):
            replicate(lake, shop.directory, tmp_path / "wh")
        snapshot(shop.dsn, shop.directory, ["public.dropped"])
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh")
        assert _current(lake, tmp_path / "wh") == _named(moment)


_RING = "ALTER TABLE a RENAME TO x; ALTER TABLE b RENAME TO a; ALTER TABLE c RENAME TO b; ALTER TABLE x RENAME TO c"
_DATA: Mapping[str, str] = {"iceberg": "public/{}.history/metadata"}
"""What a history cannot be read without, where that is not all of it."""


def _three(shop: Shop, warehouse: Path, lake: Any, into: str) -> Moment:
    """Return tables with a row each, replicated with their histories."""
    for name in ("a", "b", "c"):
        shop.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)", f"INSERT INTO {name} VALUES (1, '{name}')")
    shop.capture(snapshot=True)
    replicate(lake, shop.directory, warehouse, into, history=True)
    return _moment(shop, -1)


@pytest.mark.long
@pytest.mark.parametrize("into", ALL_FORMATS)
def test_a_history_that_cannot_be_copied(lake: Any, server18: EmbeddedServer, tmp_path: Path, into: str) -> None:
    """Nobody takes its place, nor that of a table that waits: all stay as they were until it can be read again."""
    warehouse = tmp_path / "wh"
    with Shop.create(server18, f"ring_{into}", tmp_path / "log") as shop:
        before = _three(shop, warehouse, lake, into)
        shop.execute(*_RING.split(";"), "UPDATE a SET v = 'b 2'", "UPDATE b SET v = 'c 2'", "UPDATE c SET v = 'a 2'")
        shop.capture()
        path = warehouse / _DATA.get(into, "public.{}.history").format("a")
        away = path.rename(tmp_path / "away")
        with pytest.raises(
            ChangeLogError, match=r"public\.a: .* had this name .*2 more: public\.b, public\.c\); all other"
        ):
            replicate(lake, shop.directory, warehouse, into, history=True)
        assert _current(lake, warehouse) == _named(before)
        others = ("public.b", "public.c")
        assert _ever(lake, warehouse, others, before) == {name: _named(before)[name] for name in others}
        away.rename(path)
        assert _ever(lake, warehouse, before.names, before) == _named(before)
        replicate(lake, shop.directory, warehouse, into, history=True)
        _check(lake, shop, warehouse, [before, _moment(shop, -1)])


@pytest.mark.long
def test_the_history_of_a_table_that_waits(spark: Any, server18: EmbeddedServer, tmp_path: Path) -> None:
    """A table in trouble that takes its place, when that is over, does not take its rows away."""
    warehouse = tmp_path / "wh"
    with Shop.create(server18, "waiting_history", tmp_path / "log") as shop:
        before = _three(shop, warehouse, spark, "parquet")
        path = warehouse / "public.a.history"
        away = path.rename(tmp_path / "away")
        changes = [f"UPDATE {name} SET v = concat(v, ' {number}')" for number in (3, 4) for name in ("c", "a", "b")]
        shop.execute("UPDATE a SET v = 'a 2'", *_RING.split(";"), *changes)
        shop.capture()

        waited = []

        def mend(batch: Batch) -> None:
            waits = any("had this name before" in reason for reason in batch.troubled.values())
            kept = {each.version.oid: each for each in Warehouse(warehouse).datasets().values() if each.is_history}
            for name in "abc" if waits and not away.exists() else "":
                path_now = kept[before.names[f"public.{name}"]].details["path"]
                waited.append(spark.read.parquet(f"{warehouse}/{path_now}").where(f"v = '{name}'").count())
            if waits and away.exists():
                away.rename(path)

        replicate(spark, shop.directory, warehouse, history=True, batch_transactions=1, on_batch=mend)
        assert waited and set(waited) == {1}
        _check(spark, shop, warehouse, [before, _moment(shop, -1)])


@pytest.mark.long
def test_verified(spark: Any, server18: EmbeddedServer, tmp_path: Path) -> None:
    """Each table is compared with what has its name: before the names are exchanged here, too, that is another one."""
    warehouse = tmp_path / "wh"
    with Shop.create(server18, "swapped_verified", tmp_path / "log") as shop:
        _run(spark, shop, ["exchanged"], 0)
        shop.capture(snapshot=True)
        source = SourceServer(shop.dsn, shop.log().options.publications)
        replicate(spark, shop.directory, warehouse, history=True)

        def verified(tables: Collection[str] | None = None, wait: float = 60) -> dict[str, str]:
            with shop.capturing():
                found = verify(spark, shop.directory, warehouse, source, tables, VerifyOptions(wait=wait))
                return {each.table: each.problem or f"{each.rows} {each.equal}" for each in found}

        assert verified() == {"public.exchanged": "3 True", "public.exchanged_new": "3 True", "public.item": "0 True"}
        _run(spark, shop, ["exchanged"], 1)
        shop.capture()
        (problem,) = verified(["public.exchanged"], wait=20).values()
        assert problem.startswith(
            "public.exchanged was renamed to public.exchanged_old after the warehouse read it (waited"
        )
        replicate(spark, shop.directory, warehouse, history=True)
        shop.execute("UPDATE exchanged SET v = 'later' WHERE id = 3")
        assert verified() == {"public.exchanged": "2 True", "public.exchanged_old": "3 True", "public.item": "0 True"}


@pytest.mark.long
@pytest.mark.parametrize("into", ALL_FORMATS)
def test_killed(lake: Any, server18: EmbeddedServer, tmp_path: Path, into: str) -> None:
    """Wherever a batch is killed amid an exchange, before each of its notes: the next one has all, and no copy."""
    exchange = ("ALTER TABLE a RENAME TO x", "ALTER TABLE b RENAME TO a", "ALTER TABLE x RENAME TO b")
    warehouse = tmp_path / "wh"
    with Shop.create(server18, f"swap_killed_{into}", tmp_path / "log") as shop:
        shop.execute("CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a VALUES (1, 'a'), (2, 'a')")
        shop.execute("CREATE TABLE b (id int PRIMARY KEY, v text)", "INSERT INTO b VALUES (1, 'b'), (3, 'b')")
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, warehouse, into, history=True)
        moments = [_moment(shop, -1)]
        for left in range(5):
            shop.execute(f"UPDATE a SET v = 'before {left}' WHERE id = 1", *exchange)
            shop.execute(f"UPDATE a SET v = 'after {left}'", f"INSERT INTO b VALUES ({10 + left}, 'b')")
            shop.capture()
            moments.append(_moment(shop, -1))
            with killed(before(Warehouse, "write_note"), skip=left):
                replicate(lake, shop.directory, warehouse, into, history=True, workers=1)
            replicate(lake, shop.directory, warehouse, into, history=True)
            _check(lake, shop, warehouse, moments)
            assert len(Warehouse(warehouse).datasets()) == 2 * len(moments[-1].names)
