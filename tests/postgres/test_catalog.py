"""What the stream does not say: tables altered while a capture runs, and while none does; the log knows what became
of them."""

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from pgoutput_construct.changelog import ChangeLog, SegmentLimits
from pgoutput_construct.changelog.copies import latest_copies
from pgoutput_construct.changelog.facts import table_readings
from pgoutput_construct.changelog.lineage import Lineage, lineage_of
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.demo.server import EmbeddedServer
from tests.postgres.shop import Shop, is_active, wait_until

pytestmark = pytest.mark.server

Numbers = list[tuple[str, tuple[int, ...]]]
BIG = "INSERT INTO t SELECT i, 'many' FROM generate_series({}, {} + 3000) i"
TABLE = "CREATE TABLE t (id int PRIMARY KEY, name varchar(20))"
ROOT = "CREATE TABLE t (id int, name varchar(20)) PARTITION BY RANGE (id)"
ONE, TWO = (f"CREATE TABLE t_{n} PARTITION OF t FOR VALUES FROM ({n}00) TO ({n}99)" for n in "01")
OTHER_ORDER = (
    "CREATE TABLE t_0 (gone int, name varchar(20), id int)",
    "ALTER TABLE t_0 DROP gone",
    "ALTER TABLE t ATTACH PARTITION t_0 FOR VALUES FROM (0) TO (99)",
)
PUBLISHED, AGAIN = "ALTER PUBLICATION p ADD TABLE t", "BEGIN; ALTER PUBLICATION p DROP TABLE t; {}; COMMIT"


@dataclass(frozen=True)
class Case:
    """Statements about a table ``t``, and what the log is to know after them."""

    statements: tuple[str, ...]
    numbers: Numbers
    """Of each description that rows have: its columns, and their numbers."""
    missing: tuple[str | None, ...] = ()
    """What older rows have in the columns from the third one on."""
    stale: str | None = None
    """Words of the reason."""
    late: str | None = None
    """The same where no capture ran meanwhile, if it is not the same."""
    late_numbers: Numbers | None = None
    setup: tuple[str, ...] = (TABLE, PUBLISHED)
    """What is done before the first capture."""
    can_copy: bool = True
    """Whether the stale table is one that can be copied."""


INSERT, MORE = "INSERT INTO t (id) VALUES (1)", "INSERT INTO t (id) VALUES (2)"
BEFORE = ("id name", (1, 2))
CASES = {
    "a column renamed": Case((INSERT, "ALTER TABLE t RENAME name TO label", MORE), [BEFORE, ("id label", (1, 2))]),
    "names exchanged": Case(
        (INSERT, "ALTER TABLE t RENAME id TO x", "ALTER TABLE t RENAME name TO id", "INSERT INTO t VALUES (2, 'b')"),
        [BEFORE, ("x id", (1, 2))],
    ),
    "a constant default": Case(
        (INSERT, "ALTER TABLE t ADD extra text DEFAULT 'it''s'", MORE),
        [BEFORE, ("id name extra", (1, 2, 3))],
        ("it's",),
    ),
    "a default that was taken away again": Case(
        (INSERT, "ALTER TABLE t ADD n int DEFAULT 5", "ALTER TABLE t ALTER n DROP DEFAULT", MORE),
        [BEFORE, ("id name n", (1, 2, 3))],
        ("5",),
    ),
    "a default set later": Case(
        (INSERT, "ALTER TABLE t ADD n int", "ALTER TABLE t ALTER n SET DEFAULT 5", MORE),
        [BEFORE, ("id name n", (1, 2, 3))],
        (None,),
    ),
    "a volatile default": Case(
        (INSERT, "ALTER TABLE t ADD n float8 DEFAULT random()", MORE),
        [BEFORE, ("id name n", (1, 2, 3))],
        stale="was rewritten",
    ),
    "a type changed": Case(
        (INSERT, "ALTER TABLE t ALTER name TYPE int USING length(name)", MORE),
        [BEFORE, BEFORE],
        stale="was rewritten",
    ),
    "values changed, but no type": Case(
        (INSERT, "ALTER TABLE t ALTER name TYPE varchar(20) USING 'x' || name", MORE),
        [BEFORE],
        stale="was rewritten",
    ),
    "the same bytes as another type": Case((INSERT, "ALTER TABLE t ALTER name TYPE text", MORE), [BEFORE, BEFORE]),
    "files rewritten, but no values": Case(
        (INSERT, "VACUUM FULL t", MORE, "CLUSTER t USING t_pkey", "INSERT INTO t VALUES (3)", "TRUNCATE t", MORE),
        [BEFORE],
    ),
    "a column dropped, and another one of its name": Case(
        (INSERT, "ALTER TABLE t DROP name", "ALTER TABLE t ADD name varchar(20)", MORE),
        [BEFORE, ("id name", (1, 3))],
        late="was altered several times in a row",
        late_numbers=[],
    ),
    "a column that was there for a moment": Case(
        (INSERT, "ALTER TABLE t ADD n int", "ALTER TABLE t DROP n", "ALTER TABLE t ADD m text", MORE),
        [BEFORE, ("id name m", (1, 2, 4))],
    ),
    "several names": Case(
        (
            INSERT,
            "ALTER TABLE t RENAME name TO a",
            MORE,
            "ALTER TABLE t RENAME a TO b",
            "INSERT INTO t VALUES (3, 'c')",
        ),
        [BEFORE, ("id a", (1, 2)), ("id b", (1, 2))],
    ),
    "inside one transaction": Case(
        (
            "BEGIN; INSERT INTO t VALUES (1, 'a'); ALTER TABLE t ADD n int DEFAULT 5; INSERT INTO t VALUES (2, 'b', 6);"
            "ALTER TABLE t RENAME name TO label; INSERT INTO t VALUES (3, 'c', 7); COMMIT",
            "INSERT INTO t VALUES (4, 'd', 8)",
        ),
        [BEFORE, ("id name n", (1, 2, 3)), ("id label n", (1, 2, 3))],
        ("5",),
    ),
    "in a transaction that is rolled back": Case(
        (INSERT, f"BEGIN; ALTER TABLE t ADD n int DEFAULT 5; {BIG.format(10, 10)}; ROLLBACK", MORE), [BEFORE]
    ),
    "in a subtransaction of a stream that is rolled back": Case(
        (
            f"BEGIN; {BIG.format(10, 10)}; SAVEPOINT s; ALTER TABLE t ADD n int DEFAULT 5; {BIG.format(5000, 5000)};"
            f"ROLLBACK TO s; ALTER TABLE t ADD m int DEFAULT 6; {BIG.format(9000, 9000)}; COMMIT",
            MORE,
        ),
        [BEFORE, ("id name m", (1, 2, 3))],
        ("6",),
    ),
    "partitions with columns in another order": Case(
        (INSERT, "ALTER TABLE t ADD n int DEFAULT 5", MORE),
        [BEFORE, ("id name n", (1, 2, 3))],
        ("5",),
        setup=(ROOT, *OTHER_ORDER, PUBLISHED),
    ),
    "a partition created": Case((INSERT, TWO, MORE), [BEFORE], setup=(ROOT, ONE, PUBLISHED)),
    "a partition attached": Case(
        ("INSERT INTO t (id) VALUES (150)", *OTHER_ORDER, MORE),
        [BEFORE],
        setup=(ROOT, TWO, PUBLISHED),
        stale="was given a table as a partition",
    ),
    "a partition detached": Case(
        (INSERT, "ALTER TABLE t DETACH PARTITION t_1"), [BEFORE], setup=(ROOT, ONE, TWO, PUBLISHED), stale="lost a part"
    ),
    "a partition dropped": Case(
        (INSERT, "DROP TABLE t_1"), [BEFORE], setup=(ROOT, ONE, TWO, PUBLISHED), stale="lost a partition"
    ),
    "a partition truncated": Case(
        (INSERT, "TRUNCATE t_1"), [BEFORE], setup=(ROOT, ONE, TWO, PUBLISHED), stale="has a partition that was trunc"
    ),
    "a partitioned table truncated": Case((INSERT, "TRUNCATE t", MORE), [BEFORE], setup=(ROOT, ONE, TWO, PUBLISHED)),
    "published later": Case((INSERT, PUBLISHED, MORE), [BEFORE], setup=(TABLE,)),
    "no longer published": Case(
        (INSERT, "ALTER PUBLICATION p DROP TABLE t", MORE), [BEFORE], stale="is no longer published", can_copy=False
    ),
    "taken out and added again": Case(
        (INSERT, "ALTER PUBLICATION p DROP TABLE t", MORE, PUBLISHED, "INSERT INTO t VALUES (3)"),
        [BEFORE],
        stale="is no longer published; public.",
        late="was taken out of the publication and added again",
    ),
    "deletes no longer published": Case(
        (INSERT, "ALTER PUBLICATION p_t SET (publish = 'insert, update')", "DELETE FROM t; INSERT INTO t VALUES (3)"),
        [BEFORE],
        setup=(TABLE, "CREATE PUBLICATION p_t FOR TABLE t"),
        stale="is published with insert, update, before with delete,",
    ),
    "a row filter": Case(
        (INSERT, AGAIN.format(f"{PUBLISHED} WHERE (id > 0)"), MORE), [BEFORE], stale="has another row filter"
    ),
    "more columns": Case(
        (INSERT, AGAIN.format(f"{PUBLISHED} (id, name)"), MORE),
        [("id", (1,)), BEFORE],
        setup=(TABLE, f"{PUBLISHED} (id)"),
        stale="has more columns",
    ),
    "a published column renamed": Case(
        (INSERT, "ALTER TABLE t RENAME id TO x", "INSERT INTO t VALUES (2)"),
        [("id", (1,)), ("x", (1,))],
        setup=(TABLE, f"{PUBLISHED} (id)"),
    ),
    "a table dropped": Case((INSERT, "DROP TABLE t"), [BEFORE]),
    "a name reused": Case((INSERT, "DROP TABLE t", TABLE, PUBLISHED, MORE), [BEFORE]),
    "a table and its schema renamed": Case(
        (
            INSERT,
            "CREATE SCHEMA t_schema",
            "ALTER TABLE t SET SCHEMA t_schema",
            "INSERT INTO t_schema.t VALUES (2)",
            "ALTER SCHEMA t_schema RENAME TO t_renamed",
            "ALTER TABLE t_renamed.t RENAME name TO label",
            "INSERT INTO t_renamed.t VALUES (3)",
        ),
        [BEFORE, ("id label", (1, 2))],
    ),
}


@dataclass(frozen=True)
class Altered:
    """A log of all cases, each with a table of its own, and their tables."""

    shop: Shop
    late: bool
    before: dict[str, int]
    """The OID of each case's table at first."""
    after: dict[str, int]
    """At the end; 0 for none."""
    said: list[str]
    """What the captures logged."""

    @property
    def log(self) -> ChangeLog:
        """The log."""
        return self.shop.log()


def named(case: str, statement: str) -> str:
    """Return a statement about the table of a case."""
    return re.sub(r"\b(p_)?t(?=\b|_)", rf"\g<1>t{[*CASES].index(case)}", statement)


def oid_of(shop: Shop, case: str) -> int:
    """Ask the server for the OID of a case's table; 0 where there is none in its schema."""
    with shop.connect() as connection:
        row = connection.execute("SELECT to_regclass(%s)::oid::bigint", [f"public.{named(case, 't')}"]).fetchone()
        return int(row[0]) if row and row[0] else 0


@pytest.fixture(scope="module", params=[False, True], ids=["noticed", "late"])
def altered(request: pytest.FixtureRequest, server: EmbeddedServer, tmp_path_factory: Any) -> Iterator[Altered]:
    """All cases together: while a capture runs that receives each statement before the next, or while none does."""
    directory = tmp_path_factory.mktemp("altered") / "log"
    with Shop.create(server, "altered", directory, two_phase=False) as shop, logged() as said:
        shop.execute("CREATE PUBLICATION p FOR TABLE item WITH (publish_via_partition_root)")
        shop.execute(*(named(case, statement) for case in CASES for statement in CASES[case].setup))
        publications = ["p", *(named(case, "p_t") for case in CASES if "p_t" in CASES[case].setup[-1])]
        options: dict[str, Any] = {
            "publications": publications,
            "streaming": "on",
            "proto_version": 2,
            "create_slot": True,
        }
        shop.slot += "_later"
        before = {case: oid_of(shop, case) for case in CASES}
        shop.capture(**options)
        shop.execute("INSERT INTO item VALUES (-1, 'a')")
        shop.capture(**options)
        if request.param:
            for statements in _steps():
                shop.execute(*statements)
        else:
            with shop.capturing(status_interval=0.2, limits=SegmentLimits(seconds=0.1), **options) as outcome:
                wait_until(lambda: is_active(shop))
                for statements in _steps():
                    end = shop.execute(*statements, "INSERT INTO item SELECT count(*) FROM item")
                    wait_until(lambda end=end: bool(outcome) or shop.confirmed() >= end)  # type: ignore[misc]
                    time.sleep(0.4)
            assert "error" not in outcome
        shop.capture(**options)
        yield Altered(shop, request.param, before, {case: oid_of(shop, case) for case in CASES}, said)


@contextmanager
def logged() -> Iterator[list[str]]:
    """Collect what captures log."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("pgoutput_construct")
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


def _steps() -> Iterator[list[str]]:
    """Yield the first statements of all cases, then the second ones, and so on."""
    for step in range(max(len(case.statements) for case in CASES.values())):
        yield [named(name, case.statements[step]) for name, case in CASES.items() if step < len(case.statements)]


def known(log: ChangeLog, lineage: Lineage, oid: int, copied: bool = False) -> Numbers:
    """Return the columns of each description of a table whose numbers are known, and these."""
    sent = log.index.entries("descriptions").to_pylist()
    seqs = {row["seq"] for row in sent if ((row["stream_xid"] or 0) < OUTSIDE) == copied}
    found = []
    for description in log.descriptions():
        numbers = lineage.numbers(description)
        if description.relation.relation_oid == oid and numbers is not None and description.seq in seqs:
            found.append((" ".join(column.name for column in description.relation.columns), numbers))
    return once(found)


def once(found: Numbers) -> Numbers:
    """Leave out what is like the one before it."""
    return [each for place, each in enumerate(found) if place == 0 or found[place - 1] != each]


@pytest.mark.parametrize("name", CASES)
def test_altered(altered: Altered, name: str) -> None:
    """Columns keep their numbers, old rows have what the catalog says; what was rewritten is told, and copied again."""
    case, log = CASES[name], altered.log
    oid = altered.after[name] or altered.before[name]
    lineage = lineage_of(log.index)
    numbers, stale = case.numbers, case.stale
    if altered.late:
        numbers, stale = numbers if case.late_numbers is None else case.late_numbers, case.late or stale
    assert known(log, lineage, oid) == once(numbers)
    assert tuple(lineage.missing(oid, 3 + place) for place in range(len(case.missing))) == case.missing
    told = [text for text in altered.said if text.startswith(f"public.{named(name, 't')} ")]
    assert any(f"{named(name, 't')} {stale}" in text for text in told) if stale else not told
    copies = latest_copies(log.index)
    assert (oid in copies) == (stale is not None and case.can_copy) == bool(known(log, lineage, oid, copied=True))
    assert (oid in lineage.stale) == (not case.can_copy), lineage.stale.get(oid)


def test_names_and_ends(altered: Altered) -> None:
    """What a table is called, and that it is gone, is in the log; and the log is sound."""
    log = altered.log
    last = {oid: readings[-1] for oid, readings in table_readings(log.index).items()}
    moved = last[altered.before["a table and its schema renamed"]]
    assert moved.namespace == named("a table and its schema renamed", "t_renamed")
    for name in ("a table dropped", "a name reused"):
        assert last[altered.before[name]].gone
    words = f"publication 'p' was changed: it publishes also public.{named('published later', 't')}"
    assert sum(text.startswith("publication 'p' was changed") for text in altered.said) < 9
    assert any(named("published later", "public.t") in text for text in altered.said if "publishes also" in text), words
    assert f"table {named('a table dropped', 'public.t')} was dropped" in altered.said
    assert not lineage_of(log.index).stale[altered.before["no longer published"]].published
    assert verify(log.store).problems == ()
