"""Incomplete tables of a log: rows that the server never sends; and tables that need no copy, being new."""

import logging
import threading
import time

import pytest

from pgoutput_construct.changelog._facts.catalog_readings import table_readings
from pgoutput_construct.changelog._facts.completeness import (
    UnpublishedColumns,
    lacks_of,
    unpublished_columns,
    whole_tables,
)
from pgoutput_construct.changelog._facts.copies import copies_of, latest_copies
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.postgres._catalog.catalog_watch import CatalogWatch
from pgoutput_construct.postgres._snapshot.copier import Copier
from pgoutput_construct.postgres.connection import Connection
from tests.postgres.copying.conftest import Source
from tests.postgres.shop import leave_detach_pending, wait_until

pytestmark = pytest.mark.server

TABLES = (
    "CREATE TABLE root (id int, v text) PARTITION BY LIST (id)",
    "CREATE TABLE leaf PARTITION OF root FOR VALUES IN (1)",
    "CREATE UNLOGGED TABLE quick PARTITION OF root FOR VALUES IN (2)",
    "INSERT INTO root VALUES (1, 'a'), (2, 'b')",
    "CREATE TABLE plain (id int PRIMARY KEY)",
)
FOREIGN = (
    "CREATE FOREIGN DATA WRAPPER none",
    "CREATE SERVER far FOREIGN DATA WRAPPER none",
    "CREATE FOREIGN TABLE away PARTITION OF root FOR VALUES IN (3) SERVER far",
)


def lacks(source: Source) -> list[str]:
    """Return what the log lacks, in words."""
    return [str(lack) for lack in lacks_of(source.log().index)]


@pytest.mark.parametrize("via_root", [True, pytest.param(False, marks=pytest.mark.long)])
def test_partitions_that_are_never_sent(source: Source, via_root: bool, caplog: pytest.LogCaptureFixture) -> None:
    """PostgreSQL takes them into a publication without a word; the log names them, and copies one that is sent then."""
    caplog.set_level(logging.WARNING)
    source.execute(*TABLES, f"ALTER PUBLICATION p SET (publish_via_partition_root = {via_root})")
    source.execute("ALTER PUBLICATION p SET TABLE root, plain")
    source.capture()
    assert "publication 'p' has foreign or unlogged partitions, which are never replicated" in "\n".join(
        caplog.messages
    )
    assert ": public.quick; the log will lack their rows" in "\n".join(caplog.messages)
    (said,) = lacks(source)
    assert said.startswith("the log lacks the rows of partition public.quick, which is never replicated")
    caplog.clear()
    with source.capturing():
        source.execute(*FOREIGN, "INSERT INTO plain VALUES (1)")
        wait_until(lambda: "was changed: it has foreign or unlogged partitions" in "\n".join(caplog.messages))
        wait_until(lambda: len(lacks(source)) == 2)
        assert "never replicated: public.away" in "\n".join(caplog.messages)
        source.execute("ALTER TABLE quick SET LOGGED", "INSERT INTO plain VALUES (2)")
        wait_until(lambda: len(lacks(source)) == 1)
    assert "a foreign table: capture it where its rows are" in lacks(source)[0]
    rows = {copy.name: copy.rows for copy in latest_copies(source.log().index).values()}
    assert rows == {"plain": 0, "root": 2} if via_root else {"plain": 0, "leaf": 1, "quick": 1}


def test_a_table_whose_creation_was_seen(source: Source) -> None:
    """Where all tables are published one that is created later needs no copy; one that was there does."""
    source.execute("CREATE PUBLICATION everything FOR ALL TABLES", "CREATE TABLE before (id int PRIMARY KEY)")
    given = {"publications": ["everything"], "snapshot": False}
    source.capture(**given)
    source.execute("INSERT INTO before VALUES (1)")
    source.capture(**given)
    source.execute("CREATE TABLE later (id int PRIMARY KEY)", "INSERT INTO later VALUES (1)")
    source.capture(**given)
    assert [said.partition(":")[0] for said in lacks(source)] == ["the log has no snapshot of public.before"]


WITHOUT_COPY = "the log began with table copies, and has none of "


def test_a_capture_that_is_restarted_without_snapshot(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    """It names the tables that it does not copy: those that it finds, and those that are published later."""

    def said() -> list[str]:
        found = [each.partition(WITHOUT_COPY)[2].partition(":")[0] for each in caplog.messages if WITHOUT_COPY in each]
        caplog.clear()
        return found

    source.execute(
        *(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in ("first", "second", "third", "fourth")),
        "ALTER PUBLICATION p ADD TABLE first",
    )
    source.capture()
    source.execute("ALTER PUBLICATION p ADD TABLE second, third")
    source.capture(snapshot=False)
    assert said() == ["public.second, public.third"]
    with source.capturing(snapshot=False):
        wait_until(lambda: WITHOUT_COPY in caplog.text)
        assert said() == ["public.second, public.third"]
        source.execute("ALTER PUBLICATION p ADD TABLE fourth")
        wait_until(lambda: WITHOUT_COPY in caplog.text)
        assert said() == ["public.fourth"]
    source.capture()
    source.capture(snapshot=False)
    assert said() == [] and lacks(source) == []


def test_a_capture_without_copies_from_the_beginning(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    """Who never asked for copies is not reminded of them by each start: readers name the tables."""
    source.execute("CREATE TABLE first (id int PRIMARY KEY)", "ALTER PUBLICATION p ADD TABLE first")
    source.capture(snapshot=False)
    source.execute("INSERT INTO first VALUES (1)")
    source.capture(snapshot=False)
    assert WITHOUT_COPY not in caplog.text and len(lacks(source)) == 1


def test_copies_that_were_not_completed(
    source: Source, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log began with them, though the capture ended before any was complete."""
    source.execute("CREATE TABLE first (id int PRIMARY KEY)", "ALTER PUBLICATION p ADD TABLE first")
    with monkeypatch.context() as patch:
        patch.setattr(Copier, "start", lambda *_: None)  # it ends before they begin
        with source.capturing(), source.writing("INSERT INTO first VALUES (%s)"):
            wait_until(lambda: bool(list_log(open_store(source.directory))))
    assert WITHOUT_COPY not in caplog.text
    source.execute("INSERT INTO first VALUES (1)")
    source.capture(snapshot=False)
    assert f"{WITHOUT_COPY}public.first: without --snapshot" in caplog.text


def test_a_new_table_with_rows_that_were_not_sent(source: Source) -> None:
    """One that was unlogged at first, or rewritten, before the capture looked at it is not complete without a copy."""
    source.execute("CREATE PUBLICATION everything FOR ALL TABLES", "CREATE TABLE before (id int PRIMARY KEY)")
    given = {"publications": ["everything"], "snapshot": False}
    source.capture(**given)
    source.execute("INSERT INTO before VALUES (1)")
    source.capture(**given)
    source.execute(
        "CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY)",
        "INSERT INTO unlogged VALUES (1)",
        "ALTER TABLE unlogged SET LOGGED",
        "INSERT INTO unlogged VALUES (2)",
        "CREATE TABLE rewritten (id int PRIMARY KEY, v int)",
        "INSERT INTO rewritten VALUES (1, 1)",
        "ALTER TABLE rewritten ALTER v TYPE int USING v * 10",
        "INSERT INTO rewritten VALUES (2, 2)",
        "CREATE TABLE plain (id int PRIMARY KEY)",
        "INSERT INTO plain VALUES (1)",
    )
    source.capture(**given)
    without = "the log has no snapshot of public.{0}: pgoutput snapshot DSN LOG --table public.{0}"
    assert lacks(source) == [without.format(name) for name in ("before", "rewritten", "unlogged")]
    source.execute("TRUNCATE unlogged")
    source.capture(**given)
    assert lacks(source) == [without.format(name) for name in ("before", "rewritten")]


def test_a_table_created_while_another_publication_was_captured(source: Source) -> None:
    """That all tables were captured before, and are again, says nothing of it."""
    source.execute("CREATE PUBLICATION everything FOR ALL TABLES", "CREATE TABLE before (id int PRIMARY KEY)")
    source.execute("CREATE PUBLICATION one FOR TABLE before", "INSERT INTO before VALUES (1)")
    for number, publication in enumerate(("everything", "everything", "one"), 2):
        source.capture(publications=[publication], snapshot=False)
        source.execute(f"INSERT INTO before VALUES ({number})")
    source.capture(publications=["one"], snapshot=False)
    source.execute("CREATE TABLE unseen (id int PRIMARY KEY)", "INSERT INTO unseen VALUES (1)")
    source.capture(publications=["one"], snapshot=False)
    source.execute("CREATE TABLE seen (id int PRIMARY KEY)", "INSERT INTO unseen VALUES (2)")
    source.capture(publications=["everything"], snapshot=False)
    source.execute("CREATE TABLE new (id int PRIMARY KEY)", "INSERT INTO new VALUES (1)")
    source.capture(publications=["everything"], snapshot=False)
    names = {each.partition(":")[0].removeprefix("the log has no snapshot of public.") for each in lacks(source)}
    assert {"unseen", "seen"} <= names and "new" not in names


def test_partitions_and_roots_that_are_new(source: Source) -> None:
    """A partition's rows were sent as its root's; a new root lacks the rows of a table that became its partition."""
    source.execute("CREATE PUBLICATION everything FOR ALL TABLES WITH (publish_via_partition_root = true)")
    given = {"publications": ["everything"], "snapshot": False}
    source.execute("CREATE TABLE before (id int PRIMARY KEY)", "INSERT INTO before VALUES (1)")
    source.capture(**given)
    source.execute("INSERT INTO before VALUES (2)")
    source.capture(**given)
    source.execute(
        "CREATE TABLE r (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE l PARTITION OF r FOR VALUES FROM (0) TO (10)",
        "INSERT INTO r VALUES (1)",
        "CREATE TABLE orders (id int PRIMARY KEY)",
        "INSERT INTO orders VALUES (1)",
    )
    source.capture(**given)
    assert [each.partition(":")[0] for each in lacks(source)] == ["the log has no snapshot of public.before"]
    source.execute(
        "ALTER TABLE r DETACH PARTITION l",
        "BEGIN; ALTER TABLE orders RENAME TO old; CREATE TABLE orders (id int PRIMARY KEY) PARTITION BY RANGE (id); "
        "ALTER TABLE orders ATTACH PARTITION old DEFAULT; COMMIT",
        "INSERT INTO l VALUES (2)",
        "INSERT INTO orders VALUES (2)",
    )
    source.capture(**given)
    names = {each.partition(":")[0].removeprefix("the log has no snapshot of public.") for each in lacks(source)}
    assert {"before", "l", "orders"} <= names


COLUMNS = "(id int PRIMARY KEY, v text DEFAULT 'x') PARTITION BY RANGE (id)"
ROOT = f"CREATE TABLE {{0}} {COLUMNS}"
BOUNDS = "FOR VALUES FROM (0) TO (10)"


def test_partitions_attached_by_the_transaction_that_created_them(source: Source) -> None:
    """What was written before ATTACH was not sent as the root's; CREATE TABLE ... PARTITION OF needs no copy."""
    source.execute("CREATE PUBLICATION everything FOR ALL TABLES WITH (publish_via_partition_root = true)")
    given = {"publications": ["everything"], "snapshot": False}
    source.execute("CREATE TABLE before (id int PRIMARY KEY)", "INSERT INTO before VALUES (1)")
    source.capture(**given)
    source.execute("INSERT INTO before VALUES (2)")
    source.capture(**given)
    attach = f"ALTER TABLE {{}} ATTACH PARTITION {{}} {BOUNDS}"
    below = f"CREATE TABLE s{{0}} {COLUMNS}; CREATE TABLE l{{0}} PARTITION OF s{{0}} {BOUNDS}"
    source.execute(
        f"BEGIN; {ROOT.format('a')}; CREATE TABLE a1 (LIKE a INCLUDING ALL); INSERT INTO a1 VALUES (1); "
        f"{attach.format('a', 'a1')}; COMMIT",
        f"BEGIN; CREATE TABLE b1 AS SELECT 1 AS id, 'y' AS v; ALTER TABLE b1 ALTER id SET NOT NULL; {ROOT.format('b')};"
        f"{attach.format('b', 'b1')}; COMMIT; BEGIN; DROP TABLE b1; ROLLBACK",
        f"BEGIN; {ROOT.format('c')}; {below.format('c')}; INSERT INTO sc VALUES (1); "
        f"{attach.format('c', 'sc')}; COMMIT",
        ROOT.format("d"),
        f"{below.format('d')}; INSERT INTO sd VALUES (1)",
        attach.format("d", "sd"),
        f"BEGIN; {ROOT.format('e')}; CREATE TABLE e1 PARTITION OF e {BOUNDS}; INSERT INTO e VALUES (1); COMMIT",
        f"BEGIN; {ROOT.format('f')}; CREATE TABLE f1 PARTITION OF f (v DEFAULT 'y', CHECK (id > 0)) {BOUNDS} "
        f"PARTITION BY RANGE (id); CREATE TABLE f2 PARTITION OF f1 {BOUNDS}; INSERT INTO f VALUES (1); COMMIT",
    )
    source.capture(**given)
    lacking = {each.partition(":")[0].removeprefix("the log has no snapshot of public.") for each in lacks(source)}
    assert lacking == {"before", "a", "a1", "b", "b1", "c", "d"}  # a1 and b1 have rows of their own in the log


def test_partitions_that_a_copied_table_is_given(source: Source) -> None:
    """It is copied again for one that had rows, also below the one that is attached; not for one that is created."""
    source.execute(ROOT.format("r"), "ALTER PUBLICATION p SET TABLE r")
    source.capture()
    bounds = "FOR VALUES FROM ({0}0) TO ({0}9)"
    created = "CREATE TABLE {1} PARTITION OF {0} " + bounds.replace("{0}", "{2}")
    attached = "ALTER TABLE r ATTACH PARTITION {0} " + bounds.replace("{0}", "{1}")
    sub = "CREATE TABLE s{0} (LIKE r INCLUDING ALL) PARTITION BY RANGE (id)"
    copies = []
    for statements in (
        [created.format("r", "r1", 1)],
        [
            "BEGIN; CREATE TABLE r2 (LIKE r INCLUDING ALL); INSERT INTO r2 VALUES (20); "
            f"{attached.format('r2', 2)}; COMMIT"
        ],
        [sub.format(3), created.format("s3", "l3", 3), "INSERT INTO s3 VALUES (30)", attached.format("s3", 3)],
        [
            f"BEGIN; {sub.format(4)}; {created.format('s4', 'l4', 4)}; INSERT INTO s4 VALUES (40); "
            f"ALTER TABLE r ATTACH PARTITION s4 FOR VALUES FROM (40) TO (60); COMMIT"
        ],
        [created.format("s4", "l5", 5), "INSERT INTO r VALUES (50)"],
        ["ALTER TABLE r DETACH PARTITION r2", "INSERT INTO r2 VALUES (21)", attached.format("r2", 2)],
        ["ALTER TABLE r ALTER id SET STATISTICS 10, ALTER v SET STATISTICS 10"],
    ):
        source.execute(*statements)
        source.capture()
        source.check({"r": "id v"})
        copies.append(sum(copy.name == "r" for copy in copies_of(source.log().index)))
    assert copies == [1, 2, 3, 4, 4, 5, 5]


def test_a_partition_whose_detachment_is_pending(source: Source) -> None:
    """The table loses its rows then, not when it is finalized; a copy has none of them."""
    parts = [f"CREATE TABLE r{n} PARTITION OF r FOR VALUES FROM ({n}0) TO ({n}9)" for n in (1, 2)]
    source.execute(ROOT.format("r"), *parts, "INSERT INTO r VALUES (10), (20)", "ALTER PUBLICATION p SET TABLE r")
    source.capture()
    leave_detach_pending(source.connect, "r", "r2")
    copies = []
    for statement in (
        "INSERT INTO r2 VALUES (21)",
        "ALTER TABLE r DETACH PARTITION r2 FINALIZE",
        "ALTER TABLE r ATTACH PARTITION r2 FOR VALUES FROM (20) TO (29)",
    ):
        source.execute(statement, "INSERT INTO r (id) SELECT max(id) + 1 FROM r1")
        source.capture()
        source.check({"r": "id v"})
        copies.append(sum(copy.name == "r" for copy in copies_of(source.log().index)))
    assert copies == [2, 2, 3]


def test_a_partition_published_as_its_root(source: Source) -> None:
    """One publication has it, another one the root, and publishes via that: it has no rows of its own to lack."""
    source.execute(
        "CREATE TABLE top (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF top FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE mid PARTITION OF top FOR VALUES FROM (100) TO (200) PARTITION BY RANGE (id)",
        "CREATE TABLE deep PARTITION OF mid FOR VALUES FROM (100) TO (200)",
        "INSERT INTO top VALUES (1), (101)",
        "CREATE PUBLICATION leaves FOR TABLE low, deep",
        "CREATE PUBLICATION between FOR TABLE mid WITH (publish_via_partition_root)",
        "CREATE PUBLICATION above FOR TABLE top WITH (publish_via_partition_root)",
    )
    given = {"publications": ["leaves", "between", "above"]}
    source.capture(**given)
    source.execute("INSERT INTO low VALUES (2)", "INSERT INTO deep VALUES (102)")
    source.capture(**given)
    index = source.log().index
    assert lacks(source) == []
    assert {copy.name: copy.rows for copy in latest_copies(index).values()} == {"top": 2}
    assert whole_tables(index, []) == {copy.relation_oid for copy in latest_copies(index).values()}


def test_facts_that_precede_the_first_copy(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is seen to be published before its facts are in the log waits for them: its copy comes later."""
    source.execute(*TABLES, "ALTER PUBLICATION p SET TABLE plain")
    source.capture()
    looked, is_held = CatalogWatch.poll, threading.Event()

    def look(watch: CatalogWatch, connection: Connection) -> None:
        if not is_held.is_set():
            looked(watch, connection)

    monkeypatch.setattr(CatalogWatch, "poll", look)
    with source.capturing(status_interval=0.5):
        end = source.log().complete_lsn
        source.execute("INSERT INTO plain VALUES (1)")
        wait_until(lambda: source.log().complete_lsn > end)
        is_held.set()
        source.execute("CREATE TABLE later (id int PRIMARY KEY)", "INSERT INTO later VALUES (1)")
        source.execute("ALTER PUBLICATION p ADD TABLE later")
        time.sleep(1)
        is_held.clear()
        wait_until(lambda: "later" in {copy.name for copy in latest_copies(source.log().index).values()})
    index = source.log().index
    (copy,) = (copy for copy in latest_copies(index).values() if copy.name == "later")
    first, *_ = table_readings(index)[copy.relation_oid]
    assert first.seq < copy.seq


def test_tables_dropped_between_two_polls(source: Source) -> None:
    """The stream has rows of them, but there are no facts: the log records them as dropped, and they are complete."""
    source.execute("CREATE PUBLICATION everything FOR ALL TABLES", "CREATE TABLE kept (id int PRIMARY KEY)")
    given = {"publications": ["everything"], "snapshot": False}
    source.capture(**given)
    source.execute(
        "TRUNCATE kept",
        "CREATE TABLE short (id int PRIMARY KEY)",
        'CREATE SCHEMA "Odd one"',
        'CREATE TABLE "Odd one"."A.b" (id int PRIMARY KEY)',
        "INSERT INTO short VALUES (1)",
        """INSERT INTO "Odd one"."A.b" VALUES (2)""",
        'DROP SCHEMA "Odd one" CASCADE',
        "DROP TABLE short",
        "INSERT INTO kept VALUES (3)",
    )
    source.capture(**given)
    assert lacks(source) == []
    said = table_readings(source.log().index)
    assert {each.title for (each, *_) in said.values() if each.gone} == {"public.short", '"Odd one"."A.b"'}
    source.execute("INSERT INTO kept VALUES (4)")
    source.capture(**given)
    assert {oid: len(readings) for oid, readings in table_readings(source.log().index).items()} == {
        oid: len(readings) for oid, readings in said.items()
    }


def test_a_table_whose_creation_is_not_committed(source: Source) -> None:
    """Its rows are streamed before its transaction ends: it is not in the catalog, and not gone either."""
    source.execute("CREATE PUBLICATION everything FOR ALL TABLES", "CREATE TABLE kept (id int PRIMARY KEY)")
    given = {"publications": ["everything"], "snapshot": False, "streaming": "on", "proto_version": 2}
    source.capture(**given)
    source.execute("INSERT INTO kept VALUES (1)")
    source.capture(**given)
    with source.capturing(**given), source.connect() as writer:
        writer.autocommit = False
        writer.execute("CREATE TABLE early (id int PRIMARY KEY, v text)")
        writer.execute("INSERT INTO early SELECT i, repeat('x', 100) FROM generate_series(1, 5000) i")
        oid = writer.execute("SELECT 'early'::regclass::oid::bigint").fetchone()
        assert oid is not None
        wait_until(lambda: oid[0] in source.log().index.entries("descriptions")["oid"].to_pylist())
        time.sleep(1)
        writer.commit()
        wait_until(lambda: oid[0] in table_readings(source.log().index))
        writer.execute("SELECT 1")
    assert not any(each.gone for readings in table_readings(source.log().index).values() for each in readings)
    assert [said.partition(":")[0] for said in lacks(source)] == ["the log has no snapshot of public.kept"]


def test_generated_columns_that_are_not_published(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    """The capture names them once; the log does, and lacks nothing; what is published later is copied."""
    caplog.set_level(logging.WARNING)
    source.execute(
        "CREATE TABLE listed (id int PRIMARY KEY, n int GENERATED ALWAYS AS (id) STORED)",
        'CREATE TABLE plain (id int PRIMARY KEY, n int GENERATED ALWAYS AS (id * 2) STORED, "N" int)',
        "INSERT INTO plain VALUES (1), (2)",
        "ALTER PUBLICATION p SET TABLE plain" + (", listed (id)" if source.version >= 15 else ""),
    )
    for number in range(3, 5):
        source.capture()
        source.execute(f"INSERT INTO plain VALUES ({number})")
    source.capture()
    text = "public.plain is in the log without its generated columns, which are not published: n; compute them where "
    assert [said.startswith(text) for said in caplog.messages] == [True]
    assert lacks(source) == [] and [str(each)[: len(text)] for each in unpublished(source)] == [text]
    source.check({"plain": "id N"})
    caplog.clear()
    source.execute(
        'ALTER TABLE plain ADD "More" int GENERATED ALWAYS AS (id * 3) STORED', "INSERT INTO plain VALUES (9)"
    )
    source.capture()
    assert [each.columns for each in unpublished(source)] == [("n", "More")]
    assert sum('not published: n, "More"; compute' in said for said in caplog.messages) == 1
    if source.version >= 18:
        source.execute("ALTER PUBLICATION p SET (publish_generated_columns = stored)", "INSERT INTO plain VALUES (5)")
        source.capture()
        assert lacks(source) == [] and unpublished(source) == []
        source.check({"plain": "id N n More"})


def unpublished(source: Source) -> list[UnpublishedColumns]:
    """Return the generated columns that the log is without."""
    return unpublished_columns(source.log().index)
