"""Batches that are killed: in each way to write a table, at each moment, the next batch completes them exactly once.

What is shown is what users see: after the next call, tables have the rows of the source, histories the rows that there
were, each batch is one commit, and nothing is left of the killed one. Moments and kills are ``tests/crashes.py``.
"""

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, reduce
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.lake._directories import STAGED
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.lake._parquet_parts import Parts
from pgoutput_construct.spark._replicate import (
    arrow_writes,
    read_current,
    read_history,
    replicate,
    step_writer,
    write_ways,
)
from pgoutput_construct.spark._table_formats import iceberg_sink, parquet_sink
from tests.crashes import Moment, killed
from tests.postgres.shop import Shop
from tests.spark.differences import stored_rows
from tests.spark.replicate.rounds import RecordedRounds, record_rounds
from tests.table_formats import ALL_FORMATS

pytestmark = [pytest.mark.server, pytest.mark.spark]

SCRIPT: Final = (
    (
        "CREATE TABLE added (id int PRIMARY KEY, v text)",
        "INSERT INTO added VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "CREATE TABLE changed (id int PRIMARY KEY, v text)",
        "COMMENT ON COLUMN changed.v IS 'its value'",
        "INSERT INTO changed SELECT i, 'v' || i FROM generate_series(1, 6) i",  # a half may be deleted by position
        "CREATE TABLE emptied (id int PRIMARY KEY, v text)",
        "INSERT INTO emptied VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "CREATE TABLE keyless (id int, v text)",
        "ALTER TABLE keyless REPLICA IDENTITY FULL",
        "INSERT INTO keyless VALUES (1, 'same'), (1, 'same'), (2, 'other')",
        "CREATE TABLE spared (id int PRIMARY KEY, v text)",
        "INSERT INTO spared VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "CREATE SCHEMA a CREATE TABLE orders (id int PRIMARY KEY, v text)",
        "CREATE SCHEMA b CREATE TABLE orders (id int PRIMARY KEY, v text)",
        "CREATE SCHEMA c CREATE TABLE orders (id int PRIMARY KEY, v text)",
        "INSERT INTO a.orders VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "INSERT INTO b.orders VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "INSERT INTO c.orders VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    ),
    (
        "INSERT INTO added VALUES (4, 'd'), (5, 'e')",
        "BEGIN; UPDATE changed SET v = 'w' WHERE id = 1; DELETE FROM changed WHERE id = 2; "
        "UPDATE changed SET id = 30 WHERE id = 3; INSERT INTO changed VALUES (7, 'new'); COMMIT",
        "TRUNCATE emptied",
        "INSERT INTO emptied VALUES (9, 'after')",
        "UPDATE keyless SET v = 'x' WHERE ctid = (SELECT min(ctid) FROM keyless)",
        "DELETE FROM keyless WHERE id = 2",
        "UPDATE spared SET v = 'x'",
        "UPDATE a.orders SET v = 'x' WHERE id = 1",
        "INSERT INTO a.orders VALUES (4, 'd')",
        "UPDATE b.orders SET v = 'x' WHERE id = 1",
        "DELETE FROM b.orders WHERE id = 2",
        "TRUNCATE c.orders",
        "INSERT INTO c.orders VALUES (9, 'after')",
    ),
    (
        "INSERT INTO added VALUES (6, 'f')",
        "UPDATE changed SET v = v || '!' WHERE id IN (1, 7)",
        "UPDATE emptied SET v = 'last'",
        "INSERT INTO keyless VALUES (1, 'same')",
        "DELETE FROM spared WHERE id = 1",
        "UPDATE a.orders SET v = v || '!' WHERE id IN (1, 4)",
        "UPDATE b.orders SET v = v || '!' WHERE id = 1",
        "UPDATE c.orders SET v = 'last'",
    ),
)
"""What happens before each batch: a load, changes of every kind, and a few more."""

ENDED: Final[Mapping[str, tuple[tuple[tuple[int, str, str], ...], ...]]] = {
    "public.added": ((), (), ()),
    "public.changed": (
        (),
        ((1, "v1", "update"), (2, "v2", "delete"), (3, "v3", "update")),
        ((1, "w", "update"), (7, "new", "update")),
    ),
    "public.emptied": (
        (),
        ((1, "a", "truncate"), (2, "b", "truncate"), (3, "c", "truncate")),
        ((9, "after", "update"),),
    ),
    "public.keyless": ((), ((1, "same", "update"), (2, "other", "delete")), ()),
    "public.spared": ((), ((1, "a", "update"), (2, "b", "update"), (3, "c", "update")), ((1, "x", "delete"),)),
}
"""The rows of histories that end in each round, each with what ended it."""
DELETED: Final[Mapping[str, tuple[tuple[tuple[int, str], ...], ...]]] = {
    "public.changed": ((), ((2, "v2"), (3, "v3")), ()),
    "public.emptied": ((), ((1, "a"), (2, "b"), (3, "c")), ()),
    "public.keyless": ((), ((2, "other"),), ()),
    "public.spared": ((), (), ((1, "x"),)),
}
"""The rows that are deleted in each round, as soft deletes have them: also those whose key moved."""

Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def script(server18: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> RecordedRounds:
    """The rounds, recorded once."""
    names = [*(name.removeprefix("public.") for name in ENDED), "a.orders", "b.orders", "c.orders"]
    with Shop.create(server18, "crashes", tmp_path_factory.mktemp("script") / "log") as shop:
        return record_rounds(shop, SCRIPT, [names] * len(SCRIPT))


@dataclass(frozen=True)
class Way:
    """Tables that one call writes, each by a producer, and what chooses these."""

    producers: Mapping[str, Mapping[str, str]]
    """By format, what brings changes into each table (see ``killed``), a history as ``NAME.history``."""
    load: str
    """What loads the tables; "" where the load is that of another way."""
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: tuple[tuple[Any, str, Any], ...] = ()
    """Limits that choose a producer, for tables of so few rows."""
    in_parts: bool = False
    """Whether changes are merged in two parts."""
    lacking: str = ""
    """Why other formats do not have it."""


_MERGED: Final = {"public.added": "append", "public.changed": "merge", "public.keyless": "replace"}
_WITH_HISTORIES: Final = {**_MERGED, **dict.fromkeys((f"{name}.history" for name in _MERGED), "record")}
_SOFT: Final = {"public.changed": "merge", "public.emptied": "replace", "public.keyless": "replace"}
_FEW: Final = {"public.added": "new", "public.changed": "few", "public.emptied": "few"}
_FEW_WITH_HISTORIES: Final = {f"{name}{kind}": "few" for name in _FEW for kind in ("", ".history")}
_SHARED: Final = {"namespace": "lake", "schema_column": "tenant"}
_UNSHARED: Final = "tables of Parquet are not shared"
_IN_PARTS: Final = {"write_mode": "merge-on-read"}
WAYS: Final[Mapping[str, Way]] = {
    "few": Way({"delta": _FEW, "iceberg": _FEW}, "new", lacking="small tables of Parquet are written together"),
    "few-histories": Way(
        dict.fromkeys(ALL_FORMATS, _FEW_WITH_HISTORIES),
        "few",
        {"history": True},
    ),
    "together": Way({"parquet": dict.fromkeys(_SOFT, "few")}, "few", lacking="each table has commits of its own"),
    "parts": Way(
        {"parquet": {"public.added": "new", "public.changed": "merge", "public.emptied": "replace"}},
        "new",
        _IN_PARTS,
        ((step_writer, "least_new_rows", lambda sink, tables: 1),),
        lacking="a commit, not a note, says which files a table has",
    ),
    "merged": Way(dict.fromkeys(ALL_FORMATS, _WITH_HISTORIES), "replace", {**_IN_PARTS, "history": True}),
    "deletes": Way(
        {"iceberg": {"public.changed": "deletes"}},
        "",
        limits=((arrow_writes, "TINY", 0),),
        lacking="no files of position deletes are written without Spark",
    ),
    "keys": Way(
        {into: {"public.changed": "deletes"} for into in ("parquet", "iceberg")},
        "",
        limits=(
            (parquet_sink, "SMALL", 0),
            (parquet_sink.ParquetSink, "few_bytes", 0),
            (iceberg_sink.IcebergSink, "few_bytes", 0),
        ),
        lacking="no files of position deletes are written without Spark",
    ),
    "branch": Way(
        {"iceberg": {"public.changed": "merge"}},
        "",
        _IN_PARTS,
        ((iceberg_sink, "_LARGE_ROWS", 0),),
        in_parts=True,
        lacking="there are no branches",
    ),
    "soft-few": Way(dict.fromkeys(ALL_FORMATS, dict.fromkeys(_SOFT, "few")), "few", {"soft_delete": True}),
    "soft": Way(
        dict.fromkeys(ALL_FORMATS, _SOFT), "replace", {"soft_delete": True}, ((write_ways, "ARROW_CHANGES", -1),)
    ),
    "shared": Way({into: {"a.orders": "overwrite"} for into in ALL_FORMATS[1:]}, "replace", _SHARED, lacking=_UNSHARED),
    "shared-emptied": Way(
        {into: {"c.orders": "overwrite"} for into in ALL_FORMATS[1:]}, "", _SHARED, lacking=_UNSHARED
    ),
    "shared-merged": Way(
        {into: {"a.orders": "merge"} for into in ALL_FORMATS[1:]}, "", {**_SHARED, **_IN_PARTS}, lacking=_UNSHARED
    ),
}
"""By name. New rows are written by tasks, or appended by Spark if changes are staged, as for a history; few rows are
overwritten, or deleted by position; others merged, in Parquet as parts, in Iceberg perhaps over a branch; and what no
key identifies, or was truncated, is replaced.
"""


class Case(NamedTuple):
    """A batch that is killed."""

    way: str
    into: str
    round: int
    """Its number: 0 for the load, 1 for changes."""
    moment: Moment

    def __str__(self) -> str:
        """Return the name of the test."""
        return f"{self.way}-{self.into}-{('load', 'changes')[self.round]}-{self.moment.replace(' ', '_')}"


_UNBEGUN: Final = (Moment.BEFORE_INTENT, Moment.AFTER_INTENT)
SHORT: Final = {
    Case("parts", "parquet", 1, Moment.BEFORE_NOTE),
    Case("few", "delta", 0, Moment.AMID_COMMIT),
    Case("few", "iceberg", 1, Moment.AFTER_COMMIT),
    Case("deletes", "iceberg", 1, Moment.BEFORE_NOTE),
    Case("branch", "iceberg", 1, Moment.AMID_COMMIT),
    Case("shared", "iceberg", 1, Moment.AFTER_INTENT),
}
"""Each producer that is quick, and each moment but the first, at which nothing of a batch exists: the others are long.
Those without Spark are killed at more moments in ``test_killed_anywhere``.
"""


def _omission(case: Case) -> str:
    """Return why a batch is not killed in a case; "" if it is."""
    if case.into not in WAYS[case.way].producers:
        return WAYS[case.way].lacking
    if not case.round and not WAYS[case.way].load:
        return "its load is that of another way"
    if case.moment is Moment.BEFORE_INTENT and case.way not in ("few", "together"):
        return "no producer differs: nothing of the batch exists"
    if case.moment is Moment.AFTER_INTENT and not case.round and case.way not in ("few", "together"):
        return "no producer differs: nothing of a table exists"
    return ""


def _cases() -> Iterator[Any]:
    for case in itertools.starmap(Case, itertools.product(WAYS, ALL_FORMATS, (0, 1), Moment)):
        if not _omission(case):
            yield pytest.param(case, id=str(case), marks=[] if case in SHORT else [pytest.mark.long])


class Replica:
    """A warehouse, the log that it is written from, and what the source had."""

    def __init__(self, spark: Any, script: RecordedRounds, directory: Path, way: Way, into: str) -> None:
        """Take a directory, which does not exist yet."""
        self.spark, self.script, self.directory, self.way, self.into = spark, script, directory, way, into
        self.path, self.loaded = directory / "present" / "wh", directory / "loaded"
        own = [name for name in way.producers[into] if not name.endswith(".history")]
        self.spared = (
            "b.orders" if "schema_column" in way.options else "public.spared" if "history" not in way.options else ""
        )
        """The table that is never killed, "" for none."""
        self.tables = [*own, *filter(None, [self.spared])]

    def begin(self, number: int) -> None:
        """Have the warehouse, and its log, as they are before a round: its path is the same, which Iceberg stores."""
        present = self.path.parent
        shutil.rmtree(present, ignore_errors=True)
        if number and not self.loaded.exists():
            self.replicate(0)
            present.rename(self.loaded)
        if number:
            shutil.copytree(self.loaded, present)
        if self.into == "delta":  # Spark has its logs in memory, by their paths
            self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def replicate(self, number: int, workers: int = 2) -> None:
        """Bring the tables up to the end of a round."""
        log = shutil.copytree(self.script.logs[number], self.path.with_name("log"), dirs_exist_ok=True)
        with pytest.MonkeyPatch.context() as patched:
            for limit in self.way.limits:
                patched.setattr(*limit)
            replicate(self.spark, log, self.path, self.into, self.tables, workers=workers, **self.way.options)

    def check_visible(self, number: int, moment: Moment, killed: Collection[str]) -> None:
        """After a kill readers see tables as they were, or as they are committed; some may see none yet.

        Args:
            number: The round.
            moment: When it was killed.
            killed: The tables that came to this moment: of those that are written together, others may not have.
        """
        is_committed = moment is Moment.AFTER_COMMIT or (moment is Moment.BEFORE_NOTE and self.into != "parquet")
        noted = {each.version.table for each in Warehouse(self.path).datasets().values() if not each.is_history}
        seen = noted - {self.spared}
        committed = seen.intersection(killed) if is_committed else set[str]()
        expected = self._expected(number, committed, []) + self._expected(number - 1, seen - committed, [])
        assert self._rows(seen, []) == expected
        assert not number or noted == {*self.tables}

    def check_left(self, number: int, moment: Moment) -> None:
        """Check what only a batch that was killed leaves, and the next one has to remove."""
        if self.way.in_parts:
            assert self._metadata("public.changed")["refs"].keys() == (
                {"main", "pgoutput"} if moment is Moment.AMID_COMMIT else {"main"}
            )
        if self.into == "parquet" and number and moment is Moment.BEFORE_NOTE and self.way.options == _IN_PARTS:
            names = {each.name for each in (self.path / "public.changed").iterdir()}
            assert {"v2", "v2-deleted"} <= names

    def check(self, number: int, batches: int | None) -> None:
        """Compare tables and histories with the source as of a round; nothing is there twice, nor left over.

        Args:
            number: The round.
            batches: The number of batches that tables show; None where a later one may have replaced them.
        """
        histories = self.tables if "history" in self.way.options else []
        assert self._rows(self.tables, histories) == self._expected(number, self.tables, histories)
        warehouse = Warehouse(self.path)
        progress, datasets = warehouse.existing_progress(), warehouse.datasets()
        assert progress.done and not progress.moving and not progress.unnoted
        assert not (self.path / STAGED).exists()
        names = Counter((each.version.table, each.is_history) for each in datasets.values())
        assert names == Counter([*((name, False) for name in self.tables), *((name, True) for name in histories)])
        for dataset in datasets.values():
            self._check_commits(dataset, batches)

    def _check_commits(self, dataset: Dataset, batches: int | None) -> None:
        """Each batch is one commit of a table, the last of which has what its note says."""
        if self.into == "parquet":
            there = {f"{dataset.directory}/{each.name}" for each in (self.path / dataset.directory).iterdir()}
            assert there == Parts.of(dataset).directories | dataset.details["replaced"].keys()
            return
        seqs = [each["seq"] for each in self._commits(dataset) if each["table"] == dataset.version.table]
        counts = Counter(seqs)
        assert seqs == sorted(seqs) and seqs[-1] == dataset.version.seq and batches in (None, len(counts)), seqs
        twice = [seq for seq, count in counts.items() if count != 1]
        assert twice == (list(counts)[1:2] if self.way.in_parts and dataset.version.table != self.spared else []), seqs

    def _commits(self, dataset: Dataset) -> Iterator[dict[str, Any]]:
        """Yield the versions in the commits of a table, the oldest first."""
        directory = dataset.directory.partition("@")[0]
        if self.into == "delta":
            for path in sorted((self.path / directory / "_delta_log").glob("*.json")):
                actions = reduce(dict.__or__, map(json.loads, path.read_text().splitlines()))
                if actions.keys() & {"add", "remove"} and "userMetadata" in actions["commitInfo"]:
                    yield json.loads(actions["commitInfo"]["userMetadata"])
            return
        metadata = self._metadata(directory)
        assert metadata["refs"].keys() == {"main"}
        found = sorted(metadata["snapshots"], key=lambda each: int(each["sequence-number"]))
        if self.way.in_parts:  # those of an earlier branch remain, which nobody sees; a replaced table has no others
            parents = {each["snapshot-id"]: each.get("parent-snapshot-id") for each in found}
            seen = [metadata["current-snapshot-id"]]
            while (parent := parents[seen[-1]]) is not None:
                seen.append(parent)
            found = [each for each in found if each["snapshot-id"] in seen]
        texts = (each["summary"].get("pgoutput.version") for each in found)
        yield from map(json.loads, filter(None, texts))

    def _metadata(self, directory: str) -> dict[str, Any]:
        """Return the metadata of a table of Iceberg."""
        folder = self.path / directory.replace(".", "/", 1) / "metadata"
        latest = max(folder.glob("v*.metadata.json"), key=lambda path: int(path.name[1:].partition(".")[0]))
        found: dict[str, Any] = json.loads(latest.read_text())
        return found

    def _expected(self, number: int, tables: Collection[str], histories: Collection[str]) -> Counter[Row]:
        """Return what ``_rows`` should return as of a round."""
        source, rounds = self.script.rows[number], slice(number + 1)
        found = Counter((name, *row, None) for name in tables for row in source[name])
        if "soft_delete" in self.way.options:
            found += Counter(
                (name, *row, "deleted") for name in tables for each in DELETED[name][rounds] for row in each
            )
        for name in histories:
            present = ((*row, None) for row in source[name])
            found += Counter((f"{name}.history", *row) for each in (present, *ENDED[name][rounds]) for row in each)
        return found

    def _rows(self, tables: Iterable[str], histories: Iterable[str]) -> Counter[Row]:
        """Return the rows of tables and histories, each with the name of its own, and what ended it, or None."""
        if self.into == "iceberg":
            return self._rows_by_spark(tables, histories)
        found = Counter[Row]()
        for name in tables:
            for row in stored_rows(self.spark, self.path, name).to_pylist():
                found[(name, row["id"], row["v"], row.get("_deleted_at") and "deleted")] += 1
        for name in histories:
            for row in stored_rows(self.spark, self.path, name, history=True).to_pylist():
                found[(f"{name}.history", row["id"], row["v"], row["_ended_by"])] += 1
        return found

    def _rows_by_spark(self, tables: Iterable[str], histories: Iterable[str]) -> Counter[Row]:
        """Return them of a format that Spark alone reads, in one job."""
        is_soft = "soft_delete" in self.way.options
        last = "IF(_deleted_at IS NULL, NULL, 'deleted')" if is_soft else "CAST(NULL AS string)"
        present = [(name, read_current(self.spark, self.path, name), last) for name in tables]
        ever = [(f"{name}.history", read_history(self.spark, self.path, name), "_ended_by") for name in histories]
        parts = [rows.selectExpr(f"'{name}'", "id", "v", end) for name, rows, end in (*present, *ever)]
        return Counter(map(tuple, reduce(lambda one, other: one.unionAll(other), parts).collect() if parts else []))


@pytest.fixture(scope="module")
def replicas(
    spark: Any, script: RecordedRounds, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], Replica]:
    """Return a function that returns the warehouse of a way in a format."""
    directory = tmp_path_factory.mktemp("replicas")
    return cache(lambda way, into: Replica(spark, script, directory / f"{way}-{into}", WAYS[way], into))


@pytest.mark.parametrize("case", list(_cases()))
def test_killed(lake: Any, replicas: Callable[[str, str], Replica], case: Case) -> None:
    """The next batch completes it, and the one after that builds upon it; or another one of later changes does both."""
    way, into, number, moment = case
    replica = replicas(way, into)
    replica.begin(number)
    producers = replica.way.producers[into]
    expected = producers if number else dict.fromkeys(producers, replica.way.load)
    with killed(moment, into, replica.way.in_parts, spared=replica.spared, deaths=len(expected)) as tables:
        replica.replicate(number, workers=2 * len(replica.tables))  # so that each table comes to its end
    if moment not in _UNBEGUN:
        assert tables == expected
        if moment is Moment.AMID_COMMIT and "new" in tables.values():
            assert len(list(replica.path.rglob("*added/**/part-*.parquet"))) > number  # also of the one that was killed
    replica.check_visible(number, moment, tables)
    replica.check_left(number, moment)
    is_repeated = number > 0 and moment in (Moment.AMID_COMMIT, Moment.AFTER_COMMIT)
    if is_repeated:
        replica.replicate(number)
        replica.check(number, number + 1)
    if not is_repeated or moment is Moment.AFTER_COMMIT:
        replica.replicate(number + 1)
        is_whole = number > 0 and (is_repeated or (moment is Moment.BEFORE_NOTE and into != "parquet"))
        replica.check(number + 1, number + 2 if is_whole else None)
