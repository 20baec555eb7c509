"""A batch without Spark that is killed before any change of a file, or amid one: the next one has the same result.

``test_crashes`` kills each producer at the moments of a batch. Here tables are renamed, dropped and exchanged, too:
their datasets move, are removed, or come where others were.
"""

import os
import random
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import pytest

from pgoutput_construct import lake
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._directories import STAGED
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.lake._parquet_parts import Parts
from pgoutput_construct.spark._deferred_session import DeferredSession
from pgoutput_construct.spark._replicate import replicate
from pgoutput_construct.spark._table_formats.delta_files import PlainDeltaTable
from pgoutput_construct.spark.formats import _all_settings
from tests.crashes import Killed
from tests.postgres.shop import Shop
from tests.spark.replicate.rounds import RecordedRounds, record_rounds

pytestmark = [pytest.mark.server, pytest.mark.slow]

SCRIPT: Final = (
    (
        "CREATE TABLE changed (id int PRIMARY KEY, v text)",
        "INSERT INTO changed SELECT i, 'v' || i FROM generate_series(1, 6) i",
        "CREATE TABLE moved (id int PRIMARY KEY, v text)",
        "INSERT INTO moved VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE one (id int PRIMARY KEY, v text)",
        "INSERT INTO one VALUES (1, 'one')",
        "CREATE TABLE two (id int PRIMARY KEY, v text)",
        "INSERT INTO two VALUES (2, 'two')",
        "CREATE TABLE gone (id int PRIMARY KEY, v text)",
        "INSERT INTO gone VALUES (1, 'a')",
        "CREATE TABLE whole (id int, v text)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "INSERT INTO whole VALUES (1, 'same'), (1, 'same'), (2, 'other')",
        "CREATE TABLE replaced (id int PRIMARY KEY, v text)",
        "INSERT INTO replaced VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE left_out (id int PRIMARY KEY, v text)",
        "INSERT INTO left_out VALUES (1, 'a')",
    ),
    (
        "BEGIN; UPDATE changed SET v = 'w' WHERE id = 1; DELETE FROM changed WHERE id = 2; "
        "UPDATE changed SET id = 30 WHERE id = 3; INSERT INTO changed VALUES (7, 'new'); COMMIT",
        "ALTER TABLE moved RENAME TO renamed",
        "INSERT INTO renamed VALUES (3, 'c')",
        "ALTER TABLE one RENAME TO between",
        "ALTER TABLE two RENAME TO one",
        "ALTER TABLE between RENAME TO two",
        "INSERT INTO one VALUES (3, 'as one')",
        "INSERT INTO two VALUES (4, 'as two')",
        "DROP TABLE gone",
        "ALTER TABLE left_out RENAME TO gone",
        "DROP TABLE replaced",
        "CREATE TABLE replaced (id int PRIMARY KEY, v text)",
        "INSERT INTO replaced VALUES (9, 'created again')",
        "CREATE TABLE moved (id int PRIMARY KEY, v text)",
        "INSERT INTO moved VALUES (8, 'another')",
        "DELETE FROM whole WHERE ctid = (SELECT min(ctid) FROM whole)",
    ),
    (
        "UPDATE changed SET v = v || '!' WHERE id IN (1, 7)",
        "UPDATE renamed SET v = v || '!'",
        "ALTER TABLE moved RENAME TO once",
        "ALTER TABLE renamed RENAME TO moved",
        "DELETE FROM one WHERE id = 2",
        "UPDATE two SET v = 'x'",
        "INSERT INTO whole VALUES (2, 'other')",
        "DROP TABLE replaced",
    ),
)
"""What happens before each batch."""
FIRST: Final = {"changed", "moved", "one", "two", "gone", "whole", "replaced", "item"}
TABLES: Final = (FIRST, (FIRST | {"renamed"}) - {"gone"}, (FIRST | {"once"}) - {"gone", "replaced"})
"""The tables after each round."""

Rows = Counter[tuple[Any, ...]]


@pytest.fixture(scope="module")
def script(server18: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> RecordedRounds:
    """The rounds, recorded once."""
    with Shop.create(server18, "anywhere", tmp_path_factory.mktemp("script") / "log") as shop:
        return record_rounds(shop, SCRIPT, TABLES)


class Effects:
    """Counts changes of files, and dies before one of them, or amid it; from then on nothing is changed."""

    def __init__(self, last: float = float("inf"), amid: bool = False) -> None:
        self.last, self.amid, self.names = last, amid, list[str]()
        self._lock = threading.Lock()

    def reach(self, name: str) -> bool:
        """Count a change; raise Killed before the one that is not to be, return True amid it."""
        with self._lock:
            self.names.append(name)
            if len(self.names) < self.last or (len(self.names) == self.last and self.amid):
                return len(self.names) == self.last
            raise Killed


_OPERATIONS: Final = (
    (LocalStore, "writing"),
    (LocalStore, "delete"),
    (LocalStore, "remove"),
    (os, "link"),
    (PlainDeltaTable, "commit"),
    (PlainDeltaTable, "describe"),
)


@contextmanager
def counted(effects: Effects) -> Iterator[None]:
    """Have each change of a file counted, while the block runs; expect that it is killed, if it is."""
    with pytest.MonkeyPatch.context() as patched, suppress(Killed):
        for owner, name in _OPERATIONS:
            patched.setattr(owner, name, _counting(effects, owner, name))
        yield


def _counting(effects: Effects, owner: Any, name: str) -> Callable[..., Any]:
    function = getattr(owner, name)

    def run(*arguments: Any, **options: Any) -> Any:
        if effects.reach(name):
            store, folder = arguments  # of which a part is removed
            found = sorted(path for path in (store.directory / folder).rglob("*") if path.is_file())
            for path in found[: (len(found) + 1) // 2]:
                path.unlink()
            raise Killed
        return function(*arguments, **options)

    return run


def _no_spark() -> NoReturn:
    raise PgoutputError("this needs Spark")


class Replica:
    """A warehouse that is replicated without Spark, and the log that it is of."""

    def __init__(self, script: RecordedRounds, directory: Path, into: str, has_histories: bool) -> None:
        """Take a directory, in which there is nothing yet."""
        self.script, self.path, self.into, self.has_histories = script, directory / "wh", into, has_histories
        self.left_out = {"one", "two"} if has_histories else set[str]()
        """The histories of tables that exchange their names are copied, which needs Spark."""

    def replicate(self, number: int) -> None:
        """Bring the tables up to the end of a round."""
        log = self.path.with_name("log")
        shutil.rmtree(log, ignore_errors=True)
        shutil.copytree(self.script.logs[number], log)
        settings = _all_settings("local[2]", None, [self.into], str(self.path))
        session = cast("Any", DeferredSession(_no_spark, settings, can_start=lambda: False))
        tables = [f"public.{name}" for name in TABLES[number] - self.left_out]
        history, grace = self.has_histories, 86_400.0  # no part is removed because a busy machine takes ten minutes
        replicate(session, log, self.path, self.into, tables, workers=1, history=history, grace=grace)

    def put_back(self, before: Path) -> None:
        """Have the warehouse as it was."""
        shutil.rmtree(self.path, ignore_errors=True)
        if before.exists():
            shutil.copytree(before, self.path)

    def histories(self) -> dict[str, Rows]:
        """Return the rows of all histories, by their names."""
        names = [each.version.table for each in Warehouse(self.path).datasets().values() if each.is_history]
        return {
            name: Counter(
                tuple(map(repr, row.values())) for row in lake.read(self.path, name, history=True).to_pylist()
            )
            for name in names
        }

    def check(self, number: int) -> None:
        """Compare tables with the source; nothing is left of a batch that was killed."""
        warehouse = Warehouse(self.path)
        progress, datasets = warehouse.existing_progress(), warehouse.datasets()
        assert progress.done and not progress.moving and not progress.unnoted
        present = {each.version.table for each in datasets.values() if not each.is_history}
        assert present == {f"public.{name}" for name in TABLES[number] - self.left_out}
        for name in TABLES[number] - self.left_out:
            rows = lake.read(self.path, name, columns=["id", "name" if name == "item" else "v"])
            expected = Counter(self.script.rows[number][f"public.{name}"])
            assert Counter(tuple(row.values()) for row in rows.to_pylist()) == expected, name
        assert not self.has_histories or present <= self.histories().keys()
        there = {each.name for each in self.path.iterdir() if not each.name.startswith((".", "_"))}
        assert there == {*datasets} and not (self.path / STAGED).exists()
        for dataset in datasets.values() if self.into == "parquet" else ():
            found = {f"{dataset.directory}/{each.name}" for each in (self.path / dataset.directory).iterdir()}
            assert found == Parts.of(dataset).directories | dataset.details["replaced"].keys()


def _cases() -> Iterator[Any]:
    """Yield the cases; a few of the changes in one of them stand for all, a third where two batches are killed."""
    yield pytest.param("parquet", False, False, 25, id="parquet-tables-some")
    for into, has_histories, twice in product(("parquet", "delta"), (False, True), (False, True)):
        name = f"{into}-{'histories' if has_histories else 'tables'}-{'twice' if twice else 'once'}"
        yield pytest.param(into, has_histories, twice, 3 if twice else 1, id=name, marks=pytest.mark.long)


@pytest.mark.parametrize(("into", "has_histories", "twice", "every"), [*_cases()])
def test_each_change_of_a_file(
    script: RecordedRounds, tmp_path: Path, into: str, has_histories: bool, twice: bool, every: int
) -> None:
    """Whichever is the last one of a batch; the next one, which may be killed, too, is of a log that has gone on."""
    replica, states = Replica(script, tmp_path, into, has_histories), [tmp_path / "none"]
    done, histories = list[list[str]](), list[dict[str, Rows]]()
    for number in range(len(SCRIPT)):
        with counted(effects := Effects()):
            replica.replicate(number)
        replica.check(number)
        done.append(effects.names)
        histories.append(replica.histories())
        states.append(shutil.copytree(replica.path, tmp_path / f"state {number}"))
    source, problems = random.Random(0), list[str]()
    for number, names in enumerate(done):
        then = min(number + 1, len(SCRIPT) - 1)
        replica.put_back(states[number])
        replica.replicate(then)
        expected = histories[then], replica.histories()  # with the batch that is killed, and without it
        for last, name in [*enumerate(names, 1)][::every]:
            for amid in (False, True) if name == "remove" else (False,):
                replica.put_back(states[number])
                with counted(dying := Effects(last, amid)):
                    replica.replicate(number)
                assert dying.names[:last] == names[:last]
                again = source.randrange(1, len(done[then])) if twice else 0
                if again:
                    with counted(Effects(again)):
                        replica.replicate(then)
                try:
                    replica.replicate(then)
                    replica.check(then)
                    for table, rows in replica.histories().items():
                        assert rows in [each.get(table) for each in expected], table
                except Exception as error:
                    problems.append(f"round {number}, change {last} ({name}, {amid=}), then {again}: {error}")
    assert problems == []
