"""What the stream does not say: tables altered while a capture runs, and while none does; the log knows what became
of them."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.catalog_readings import table_readings
from pgoutput_construct.changelog._facts.copies import latest_copies
from pgoutput_construct.changelog._facts.lineage import Lineage, lineage_of
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tests.postgres.alterations import CASES, REATTACHED, Numbers
from tests.postgres.shop import Shop, counted_polls, is_active, wait_until

pytestmark = pytest.mark.server


@dataclass(frozen=True)
class Altered:
    """A log of all cases, each with a table of its own, and their tables."""

    late: bool
    before: dict[str, int]
    """The OID of each case's table at first."""
    after: dict[str, int]
    """At the end; 0 for none."""
    said: list[str]
    """What the captures logged."""

    log: ChangeLog
    """The whole log."""
    lineage: Lineage
    """What it says of columns."""
    sent: list[dict[str, Any]]
    """Its descriptions of tables."""


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
            with counted_polls() as polls, shop.capturing(status_interval=0.2, **options) as outcome:
                wait_until(lambda: is_active(shop))
                for statements in _steps():
                    end = shop.execute(*statements, "INSERT INTO item SELECT count(*) FROM item")
                    wait_until(lambda end=end: outcome.done() or shop.confirmed() >= end)  # type: ignore[misc]
                    polls.clear()
                    wait_until(lambda: outcome.done() or len(polls) > 1)  # one of them began since
        shop.capture(**options)
        after, log = {case: oid_of(shop, case) for case in CASES}, shop.log()
        sent = log.index.entries("descriptions").to_pylist()
        yield Altered(request.param, before, after, said, log, lineage_of(log.index), sent)


def test_a_partition_that_is_not_published_for_a_time(server: EmbeddedServer, tmp_path: Path) -> None:
    """Detached from a table that is published, and attached again, while nobody looks."""
    setup = CASES["a partition detached and attached again"].setup[:-1]
    with Shop.create(server, "detached", tmp_path / "log", two_phase=False) as shop, logged() as said:
        shop.execute(*setup, "CREATE PUBLICATION q FOR TABLE t", "INSERT INTO t VALUES (150)")
        for statements in ([], ["ALTER TABLE t DETACH PARTITION t_1", "INSERT INTO t_1 VALUES (151)", REATTACHED], []):
            shop.execute(*statements, "INSERT INTO t VALUES (1)")
            shop.capture(publications=["q"], create_slot=True)
        told = [text for text in said if "was detached from a published table and attached again" in text]
        assert told and all(text.startswith("public.t_1 ") for text in told)


def test_a_partition_that_is_sent_as_its_root_for_a_time(server: EmbeddedServer, tmp_path: Path) -> None:
    """It is sent by itself whenever anybody looks, and in between its rows are those of the partitioned table."""
    setup = CASES["a partition detached and attached again"].setup[:-1]
    via_root = "ALTER PUBLICATION q SET (publish_via_partition_root = {})"
    rounds = (
        ["INSERT INTO t VALUES (150)"],
        [via_root.format(True), "INSERT INTO t VALUES (151)", "ALTER TABLE t DETACH PARTITION t_1"],
        ["INSERT INTO t_1 VALUES (152)"],
        [REATTACHED, "INSERT INTO t VALUES (153)", via_root.format(False)],
        ["INSERT INTO t VALUES (154)"],
    )
    with Shop.create(server, "as_root", tmp_path / "log", two_phase=False) as shop:
        shop.execute(*setup, "CREATE PUBLICATION q FOR ALL TABLES")
        found = []
        for statements in rounds:
            shop.execute(*statements)
            with logged() as said:
                shop.capture(publications=["q"], create_slot=True)
            found.append(any("public.t_1 may have been sent as a partition of another" in text for text in said))
    assert found == [False, True, False, True, False]


def test_a_column_that_is_re_created(server: EmbeddedServer, tmp_path: Path) -> None:
    """A capture that begins later, and finds rows of which column they have the values: it does not leave that open."""
    with Shop.create(server, "made_again", tmp_path / "log", two_phase=False) as shop:
        shop.execute("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1)")
        shop.capture()
        shop.execute("BEGIN; ALTER TABLE t DROP n; ALTER TABLE t ADD n int; INSERT INTO t VALUES (2, 2); COMMIT")
        with logged() as said:
            shop.capture()
        assert any("its columns cannot be matched with certainty" in text for text in said)
        index = shop.log().index
        (copy,) = latest_copies(index).values()
        assert copy.rows == 2 and not lineage_of(index).stale


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


def known(altered: Altered, oid: int, copied: bool = False) -> Numbers:
    """Return the columns of each description of a table whose numbers are known, and these."""
    seqs = {row["seq"] for row in altered.sent if ((row["stream_xid"] or 0) < OUTSIDE) == copied}
    found = []
    for description in altered.log.descriptions():
        if description.relation.relation_oid != oid or description.seq not in seqs:
            continue
        numbers = altered.lineage.numbers(description)
        if numbers is not None:
            found.append((" ".join(column.name for column in description.relation.columns), numbers))
    return once(found)


def once(found: Numbers) -> Numbers:
    """Leave out what is like the one before it."""
    return [each for place, each in enumerate(found) if place == 0 or found[place - 1] != each]


@pytest.mark.parametrize("name", CASES)
def test_altered(altered: Altered, name: str) -> None:
    """Columns keep their numbers, old rows have the catalog's values; after a rewrite the table is copied again."""
    case, log = CASES[name], altered.log
    oid = altered.after[name] or altered.before[name]
    lineage = altered.lineage
    numbers, stale = case.numbers, case.stale
    if altered.late:
        numbers, stale = numbers if case.late_numbers is None else case.late_numbers, case.late or stale
    assert known(altered, oid) == once(numbers)
    assert tuple(lineage.missing(oid, 3 + place) for place in range(len(case.missing))) == case.missing
    told = [text for text in altered.said if text.startswith(f"public.{named(name, 't')} ")]
    assert any(f"{named(name, 't')} {stale}" in text for text in told) if stale else not told
    copies = latest_copies(log.index)
    assert (oid in copies) == (stale is not None and case.can_copy) == bool(known(altered, oid, copied=True))
    assert (oid in lineage.stale) == (not case.can_copy), lineage.stale.get(oid)


def test_names_and_ends(altered: Altered) -> None:
    """The log records renamed and dropped tables, and is valid."""
    log = altered.log
    last = {oid: readings[-1] for oid, readings in table_readings(log.index).items()}
    moved = last[altered.before["a table and its schema renamed"]]
    assert moved.namespace == named("a table and its schema renamed", "t_renamed")
    for name in ("a table dropped", "a name reused"):
        assert last[altered.before[name]].gone
    words = f"publication 'p' was changed: it now also publishes public.{named('published later', 't')}"
    assert sum(text.startswith("publication 'p' was changed") for text in altered.said) < 9
    assert any(named("published later", "public.t") in text for text in altered.said if "now also publishes" in text), (
        words
    )
    assert f"table {named('a table dropped', 'public.t')} was dropped" in altered.said
    assert not altered.lineage.stale[altered.before["no longer published"]].published
    assert verify(log.store).problems == ()
