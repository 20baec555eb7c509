"""A database and the tables of a warehouse at one commit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import pgoutput_construct as pgo
from pgoutput_construct import lake
from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.visibility import Visibility
from pgoutput_construct.changelog.timeline import seq_until
from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.forensics import fork
from pgoutput_construct.forensics._fork import fork_point
from pgoutput_construct.spark import replicate
from tests.postgres.shop import Shop
from tests.publisher.logs import WrittenLog, insert, relation
from tests.publisher.subscriber import database


def run(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["fork", *map(str, arguments)])


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """Return a database with a log of some commits, each of which has more rows."""
    with Shop.create(server18, "fork", tmp_path / "log") as shop:
        shop.execute("INSERT INTO item VALUES (1, 'copied')")
        shop.capture(snapshot=True)
        for number in range(2, 6):
            shop.execute(f"INSERT INTO item VALUES ({number}, 'n')", f"UPDATE item SET name = 'v{number}' WHERE id = 1")
        shop.capture()
        yield shop


def commits(log: ChangeLog) -> list[tuple[pgo.Lsn, pgo.Timestamp]]:
    """Return the commits of a log."""
    rows = log.transactions().to_pylist()
    return [(pgo.Lsn(row["commit_lsn"]), pgo.Timestamp(row["commit_time"])) for row in rows]


def in_lake(warehouse: Path) -> list[tuple[int, str]]:
    """Return the rows of the table in a warehouse."""
    rows = lake.read(str(warehouse), "public.item").to_pylist()
    return sorted((row["id"], row["name"]) for row in rows)


@pytest.mark.server
@pytest.mark.spark
def test_both_at_one_commit(spark: Any, shop: Shop, server18: EmbeddedServer, tmp_path: Path) -> None:
    """By LSN or time the server and the lake have the same rows; a warehouse that is later is refused."""
    lsn, time = commits(shop.log())[-5]
    expected = [(1, "v3"), (2, "n"), (3, "n")]
    for number, at in enumerate((lsn, time, pgo.Timestamp(time + 1))):
        warehouse = tmp_path / f"lake{number}"
        with database(server18, f"forked{number}") as target:
            done = fork(shop.directory, at, target.info.dsn, warehouse, spark=spark)
            assert (done.point.commit_lsn, done.point.commit_time) == (lsn, time)
            assert target.execute("SELECT id, name FROM item ORDER BY 1").fetchall() == in_lake(warehouse) == expected
            assert done.tables == ("public.item",) and done.rows == {"public.item": 3} and done.lacks == ()
    earlier, _ = commits(shop.log())[-7]
    with pytest.raises(PgoutputError, match=r"are later than .* already, and do not go back"):
        fork(shop.directory, earlier, None, warehouse, spark=spark)
    replicate(spark, shop.directory, warehouse, as_of=lsn)
    assert in_lake(warehouse) == expected
    replicate(spark, shop.directory, warehouse)
    assert len(in_lake(warehouse)) == 5
    with pytest.raises(PgoutputError, match="tables that follow a log are at its end"):
        replicate(spark, shop.directory, warehouse, once=False, as_of=lsn)


@pytest.mark.server
def test_the_command(shop: Shop, server18: EmbeddedServer) -> None:
    """It says where it is, and what it made."""
    lsn, _ = commits(shop.log())[-2]
    with database(server18, "forked") as target:
        done = run(shop.directory, "--at", lsn, "--into", target.info.dsn)
        assert done.exit_code == 0, done.output
        assert f"at the commit {lsn} of " in done.output and "server: public.item: 5 rows" in done.output
        assert target.execute("SELECT name FROM item WHERE id = 1").fetchone() == ("v4",)
    assert run(shop.directory, "--at", lsn).exit_code == 2
    assert run(shop.directory, "--at", "2001-01-01", "--into", shop.dsn).exit_code == 1


def test_where_a_log_is_cut(tmp_path: Path) -> None:
    """Before the next commit; copies that become complete until then count, and later ones are refused."""
    log = WrittenLog(tmp_path)
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.copy(1, 701, ["a"], 1020, visibility=Visibility.at(pgo.Lsn(1020)))
    log.commit(701, 1040, 1050, insert(1, "b"))
    log.publish()
    log.commit(702, 1060, 1070, insert(1, "c"))
    log.copy(2, 701, ["x"], 1030, visibility=Visibility.at(pgo.Lsn(1030)))
    log.commit(703, 1080, 1090, insert(1, "d"))
    log.publish()
    opened = ChangeLog(log.directory)
    ends = {row["commit_lsn"]: row["seq"] for row in opened.transactions().to_pylist()}
    begins = {row["commit_lsn"]: row["spans"][0]["first"] for row in opened.transactions().to_pylist()}
    assert [seq_until(opened.index, pgo.Lsn(lsn)) for lsn in (999, 1000, 1039, 1040, 1079, 9999)] == [
        *(ends[1000] - 1, ends[1040] - 1, ends[1040] - 1, ends[1060] - 1, ends[1080] - 1),
        opened.index.last_seq,
    ]
    assert begins[1000] <= seq_until(opened.index, pgo.Timestamp(999)) < ends[1000]
    point = fork_point(opened, pgo.Lsn(1065))
    assert (point.commit_lsn, point.until, point.seq) == (1060, 1079, ends[1080] - 1)
    last = fork_point(opened, pgo.Timestamp(9999))
    assert (last.commit_lsn, last.until, last.seq) == (1080, None, opened.index.last_seq)
    assert fork_point(opened, pgo.Timestamp(1065)) == point
    for lsn in (1020, 1040):
        with pytest.raises(PgoutputError, match=r"public\.t2 was being copied at .*: choose a time from .* 0/424 on"):
            fork_point(opened, pgo.Lsn(lsn))
    with pytest.raises(PgoutputError, match=r"no commit at or before 0/3E7"):
        fork_point(opened, pgo.Lsn(999))
    with pytest.raises(PgoutputError, match="nothing to make"):
        fork(log.directory, pgo.Lsn(1000))
