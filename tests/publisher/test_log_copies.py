"""Copies of tables in a log: each is served once, at a place that stays, and nothing beside it is lost."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import pgoutput_construct as pgo
from pgoutput_construct.changelog._facts.visibility import Visibility
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.cli.group import cli
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.publisher._feed.cursor import Cursor
from pgoutput_construct.publisher._feed.rendering import Withholding
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.server import ThreadedPublisher
from tests.publisher.logs import OPTIONS, WrittenLog, insert, relation, served
from tests.publisher.subscriber import Subscriber, database


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    """An empty log."""
    return WrittenLog(tmp_path)


@pytest.mark.parametrize("tables", [3, 12, pytest.param(60, marks=pytest.mark.long)])
def test_wherever_it_was_cut(log: WrittenLog, tables: int) -> None:
    """Tables that were copied under one snapshot, more of them than there are positions before the next commit."""
    for oid in range(1, tables + 1):
        log.copy(oid, 700, [f"copied {oid}"], 1000)
    log.commit(700, 1008, 1048, relation(1), insert(1, "first"))
    log.commit(701, 1060, 1100, insert(1, "second"))
    log.publish()
    feed = log.feed()
    order = feed.order()
    whole = served(Cursor(feed, OPTIONS, 0, order.copied_until))
    assert sum(each.startswith("copied") for each in whole) == tables
    ends = [int(item.end_lsn or 0) for item in order]
    assert ends == sorted(set(ends))
    for end in ends:
        rest = served(Cursor(feed, OPTIONS, end, order.copied_until))
        assert whole[whole.index(f"@{end}") + 1 :] == rest


def test_a_copy_that_is_ahead_of_the_stream(log: WrittenLog) -> None:
    """It waits until the stream has come to its snapshot: transactions before that change other tables, too."""
    log.commit(700, 1000, 1010, relation(1), relation(2), insert(1, "a"), insert(2, "a"))
    log.copy(1, 703, ["a", "b"], 1200)
    log.publish(1150)
    feed = log.feed()
    cursor = Cursor(feed, OPTIONS, 0)
    assert served(cursor) == ["a", "a", "@1010"]
    log.commit(702, 1160, 1170, insert(1, "b"), insert(2, "b"))
    log.commit(703, 1290, 1300, insert(2, "c"))
    log.publish()
    feed.refresh()
    assert served(cursor) == ["b", "@1170", "truncate 1", "a", "b", "@1200", "c", "@1300"]
    assert served(Cursor(feed, OPTIONS, 1200, feed.order().copied_until)) == ["c", "@1300"]
    # Whoever comes now has no rows yet: what the copy has is withheld before it, and nothing is emptied.
    whole = ["a", "@1010", "b", "@1170", "a", "b", "@1200", "c", "@1300"]
    assert served(Cursor(feed, OPTIONS, 0, feed.order().copied_until)) == whole


def test_a_table_from_its_first_row_on(log: WrittenLog) -> None:
    """Where the log has all of its rows without a copy, its changes come before the copy, too."""
    log.commit(700, 1000, 1010, relation(1), pgo.Truncate(options=0, relation_oids=(1,)), insert(1, "a"))
    log.copy(1, 701, ["a"], 1050, visibility=Visibility.at(pgo.Lsn(1060)))
    log.commit(701, 1100, 1110, insert(1, "b"))
    log.publish()
    feed = log.feed()
    expected = ["truncate 1", "a", "@1010", "truncate 1", "a", "@1050", "b", "@1110"]
    assert served(Cursor(feed, OPTIONS, 0, feed.order().copied_until)) == expected


def test_another_copy_moves_no_other(log: WrittenLog) -> None:
    """Who has one of two copies gets the other one, though the first table is copied again meanwhile."""
    for oid in (1, 2):
        log.copy(oid, 700, [f"copied {oid}"], 1000)
    log.commit(700, 1208, 1248, relation(1), insert(1, "first"))
    log.publish()
    copied = log.feed().order().copied_until
    log.copy(1, 701, ["copied 1", "first"], 1300)
    log.publish(1300)
    expected = ["copied 2", "@1001", "first", "@1248", "truncate 1", "copied 1", "first", "@1300"]
    assert served(Cursor(log.feed(), OPTIONS, 1000, copied)) == expected


def test_a_copy_behind_the_client(log: WrittenLog) -> None:
    """It comes late: the table is emptied, and what followed the copy is repeated behind its rows."""
    log.commit(700, 1000, 1010, relation(1), relation(2), insert(1, "a"), insert(2, "a"))
    log.commit(702, 1060, 1070, insert(1, "b"), insert(2, "b"))
    log.publish()
    feed = log.feed()
    cursor = Cursor(feed, OPTIONS, 0)
    assert served(cursor) == ["a", "a", "@1010", "b", "b", "@1070"]
    cursor.told = 1090
    log.copy(1, 702, ["before", "a"], 1050)
    log.commit(705, 1200, 1210, insert(1, "c"))
    log.publish()
    feed.refresh()
    assert served(cursor) == ["truncate 1", "before", "a", "b", "@1090", "c", "@1210"]
    cursor.confirmed = 1090
    assert cursor.has_late  # nobody knows whether it was applied
    assert served(Cursor(feed, OPTIONS, 1090)) == ["truncate 1", "before", "a", "b", "@1090", "c", "@1210"]
    cursor.confirmed = 1210
    assert not cursor.has_late


def test_late_copies_take_no_position(log: WrittenLog) -> None:
    """Those of many tables come while the client waits, also where it was told more than it got; each comes once."""
    log.commit(700, 1000, 1010, relation(9), insert(9, "a"))
    log.publish(1060)
    feed = log.feed()
    cursor = Cursor(feed, OPTIONS, 0)
    assert served(cursor) == ["a", "@1010"]
    cursor.told = 1060
    for oid in range(1, 5):
        log.copy(oid, 701, [f"copied {oid}"], 1050)
        log.publish(1060)
        feed.refresh()
        assert served(cursor) == [f"truncate {oid}", f"copied {oid}", "@1060"]
    log.put(pgo.Message(None, 0, pgo.Lsn(1060), "p", b""))
    log.commit(702, 1062, 1100, insert(9, "b"))
    log.publish()
    feed.refresh()
    assert served(cursor) == ["message 1060", "b", "@1100"]
    assert served(Cursor(feed, OPTIONS, 1060, cursor.copied)) == ["message 1060", "b", "@1100"]


def test_copies_of_a_lost_history(log: WrittenLog) -> None:
    """What was copied where the server's history was lost counts nothing, and is named."""
    log.commit(700, 3000, 3010, relation(1), insert(1, "a"))
    log.copy(1, 1000, ["a", "lost"], 5000)
    log.publish(5000)
    log.writer.append_event(BEGUN_ANEW, pgo.Lsn(4000), reason="", void_after=4000, snapshot=[1, 1, []])
    log.commit(922, 4500, 4510, insert(1, "b"))
    log.publish(5200)
    feed = log.feed()
    assert served(Cursor(feed, OPTIONS, 0, feed.order().copied_until)) == ["a", "@3010", "b", "@4510"]
    assert any("the copy made at 0/1388 is skipped" in lack for lack in feed.lacks())


def test_a_late_copy_waits_for_what_is_prepared(log: WrittenLog) -> None:
    """A table cannot be emptied while a prepared transaction has changed it."""
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    prepared = (pgo.Lsn(1060), pgo.Lsn(1070), pgo.Timestamp(0), 702, "gid")
    log.put(pgo.BeginPrepare(*prepared), insert(1, "b"), pgo.Prepare(*prepared))
    log.publish(1075)
    feed = log.feed()
    options = replace(OPTIONS, two_phase=True)
    cursor = Cursor(feed, options, 0, two_phase_at=0)
    assert served(cursor) == ["a", "@1010", "b"]
    log.copy(1, 702, ["before", "a"], 1050)
    log.commit(705, 1200, 1210, insert(1, "c"))
    log.put(pgo.CommitPrepared(pgo.Lsn(1300), pgo.Lsn(1310), pgo.Timestamp(0), 702, "gid"))
    log.publish(1310)
    feed.refresh()
    assert served(cursor) == ["c", "@1210", "@1310", "truncate 1", "before", "a", "c", "b", "@1310"]


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("two_phase_at", [None, 0])
def test_what_a_copy_says_that_it_contains(log: WrittenLog, two_phase_at: int | None, after: int) -> None:
    """Commits decide: a transaction that was prepared before the copy, and committed after it, counts."""
    log.commit(700, 1000, 1010, relation(1), relation(2), insert(1, "a"))
    prepared = (pgo.Lsn(1020), pgo.Lsn(1030), pgo.Timestamp(0), 702, "gid")
    log.put(pgo.BeginPrepare(*prepared), insert(1, "b"), pgo.Prepare(*prepared))
    log.commit(701, 1040, 1050, insert(1, "c"), insert(2, "c"))
    log.commit(703, 1060, 1070, insert(1, "d"))
    seen = Visibility(pgo.Lsn(1060), frozenset({705}), pgo.Lsn(1090))
    log.commit(705, 1080, 1085, insert(1, "e"), insert(2, "e"))
    log.copy(1, 700, ["a", "c", "e"], 1055, visibility=seen)
    log.put(pgo.CommitPrepared(pgo.Lsn(1100), pgo.Lsn(1110), pgo.Timestamp(0), 702, "gid"))
    log.commit(705, 1120, 1130, insert(1, "f"))
    log.publish()
    feed = log.feed()
    options = replace(OPTIONS, two_phase=two_phase_at is not None)
    copied_until = feed.order(two_phase_at).copied_until
    found = served(Cursor(feed, options, after, copied_until, two_phase_at=two_phase_at))
    rows = found.index("a")
    assert found[rows : rows + 3] == ["a", "c", "e"]
    # Whoever comes back may have rows of before.
    assert (found[rows - 1], found.count("truncate 1")) == ("truncate 1", 1) if after else "truncate 1" not in found
    # What follows the rows is what the copy lacks; of the other table all is served, wherever the copy stands.
    before, later = ([each for each in some if each in "abcdef"] for some in (found[:rows], found[rows + 3 :]))
    assert later == (["d", "e", "b", "f"] if two_phase_at is None else ["b", "c", "d", "e", "f"])
    assert before == (["c"] if two_phase_at is None else [])


@pytest.mark.slow
def test_postgresql_applies_a_late_copy(log: WrittenLog, server18: EmbeddedServer) -> None:
    """A subscription that is where the log ends gets the rows of before."""
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.commit(702, 1060, 1070, insert(1, "b"))
    log.publish()
    with database(server18, "late_copies") as target, ThreadedPublisher(log.feed(), Settings()) as running:
        target.execute("CREATE TABLE t1 (id text)")
        subscriber = Subscriber(server18, target, running.dsn, "late_copies")
        subscriber.subscribe(publications="pub")
        try:
            subscriber.wait(1070)
            log.copy(1, 702, ["before", "a"], 1050)
            log.commit(705, 1200, 1210, insert(1, "c"))
            log.publish()
            subscriber.wait(1210)
        finally:
            subscriber.unsubscribe()
        assert subscriber.rows("t1") == [("a",), ("b",), ("before",), ("c",)]


def test_what_was_pruned(log: WrittenLog) -> None:
    """A client that had rows of before gets its table emptied; new ones are served from what is left."""
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.publish()
    log.commit(702, 1060, 1070, insert(1, "b"))
    log.publish()
    log.copy(1, 703, ["a", "b"], 1080)
    log.publish(1080)
    log.commit(703, 1090, 1100, insert(1, "c"))
    log.publish()
    feed = log.feed()
    for two_phase_at in (None, 0):
        feed.order(two_phase_at)
    prune(log.directory, pgo.Lsn(1085))
    feed.refresh()
    for each in (feed, log.feed()):
        for two_phase_at in (None, 0):
            order = each.order(two_phase_at)
            new = Cursor(each, OPTIONS, 0, order.copied_until, two_phase_at)
            assert served(new) == ["a", "b", "@1080", "c", "@1100"]
            late = Cursor(each, OPTIONS, 1075, -1, two_phase_at)
            assert served(late) == ["truncate 1", "a", "b", "@1080", "c", "@1100"]


def test_messages_beside_copies(log: WrittenLog) -> None:
    """Those outside of transactions come at their places, also to who has confirmed a copy."""
    log.commit(690, 500, 510, relation(1), insert(1, "a"))
    log.put(pgo.Message(None, 0, pgo.Lsn(520), "p", b""))
    log.commit(701, 600, 610, insert(1, "b"))
    log.put(pgo.Message(None, 0, pgo.Lsn(700), "p", b""))
    log.copy(1, 700, ["a"], 515)
    log.publish()
    feed = log.feed()
    rest = ["message 520", "b", "@610", "message 700"]
    assert served(Cursor(feed, OPTIONS, 0, feed.order().copied_until)) == ["@510", "a", "@515", *rest]
    again = ["@510", "truncate 1", "a", "@515", *rest]
    assert served(Cursor(feed, OPTIONS, 505, feed.order().copied_until)) == again
    assert served(Cursor(feed, OPTIONS, 515, feed.order().copied_until)) == rest


def archived(log: WrittenLog, after: int = 0, withheld: Iterable[int] = ()) -> tuple[Cursor, dict[int | None, str]]:
    """Return a cursor of a client that retains rows, and where is noted what it is not served."""
    feed, noted = log.feed(), dict[int | None, str]()
    withholding = Withholding(["pub"], withheld, lambda title, seq: noted.update({seq: title}))
    return Cursor(feed, OPTIONS, after, feed.order().copied_until, withholding=withholding), noted


@pytest.mark.parametrize(
    ("operations", "replaced"),
    [("insert", False), ("insert update delete", False), ("insert truncate", False), ("insert delete truncate", True)],
)
def test_an_archive_retains_its_rows(log: WrittenLog, operations: str, replaced: bool) -> None:
    """A later copy empties no table of which no deletes or no truncates are published; the first one is served."""
    log.published(operations, 1, 2)
    log.copy(1, 690, ["copied"], 900)
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.copy(2, 701, ["first of 2"], 1020)
    log.copy(1, 701, ["instead"], 1020)
    log.commit(702, 1060, 1070, insert(1, "b"))
    log.publish()
    cursor, noted = archived(log)
    instead = ["truncate 1", "instead"] if replaced else []
    found = [each for each in served(cursor) if not each.startswith("@")]
    assert found == ["copied", "a", "first of 2", *instead, "b"]
    assert [*noted.values()] == ([] if replaced else ["public.t1, copied at 0/3FC"])


def test_what_a_withheld_copy_contains_is_sent(log: WrittenLog) -> None:
    """A transaction that committed behind the copy's place comes, though the copy would have had it, also later."""
    log.published("insert", 1)
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.commit(705, 1100, 1110, relation(2), insert(2, "invisible"))
    log.commit(701, 1200, 1210, insert(1, "b"))
    log.copy(1, 702, ["a", "b"], 1300)
    log.publish(1300)
    expected = ["a", "@1010", "invisible", "@1110", "b", "@1210"]
    cursor, noted = archived(log)
    assert served(cursor) == expected
    (seq,) = noted
    assert seq is not None
    again, noted_again = archived(log, 1110, [seq])
    assert (served(again), noted_again) == (["b", "@1210"], {})
    feed = log.feed()
    assert "b" not in served(Cursor(feed, OPTIONS, 1110, feed.order().copied_until))  # the copy has it


def test_a_late_copy_replaces_no_archive(log: WrittenLog) -> None:
    """A copy that is complete when the client has passed its place is withheld; what follows comes."""
    log.published("insert", 1)
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.publish()
    cursor, noted = archived(log)
    assert served(cursor) == ["a", "@1010"]
    log.copy(1, 700, ["before"], 900)
    log.commit(705, 1200, 1210, insert(1, "b"))
    log.publish()
    cursor._feed.refresh()
    assert served(cursor) == ["b", "@1210"]
    assert [*noted.values()] == ["public.t1, copied at 0/384"]


@pytest.mark.parametrize("replaces_rows", [False, True])
def test_postgresql_keeps_an_archive(log: WrittenLog, server18: EmbeddedServer, replaces_rows: bool) -> None:
    """A subscriber of inserts alone has its rows after the table was copied again, unless that is asked for."""
    log.published("insert", 1)
    log.copy(1, 690, ["copied"], 900)
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.publish()
    told: list[str] = []
    settings = Settings(replaces_rows=replaces_rows)
    with database(server18, "archive") as target, ThreadedPublisher(log.feed(), settings, told.append) as running:
        target.execute("CREATE TABLE t1 (id text PRIMARY KEY)")
        subscriber = Subscriber(server18, target, running.dsn, "archive")
        subscriber.subscribe(publications="pub")
        try:
            subscriber.wait(1010)
            log.copy(1, 701, ["a", "again"], 1100)
            log.commit(705, 1200, 1210, insert(1, "b"))
            log.publish()
            subscriber.wait(1210)
            archive = [("a",), ("b",), ("copied",)]
            assert subscriber.rows("t1") == ([("a",), ("again",), ("b",)] if replaces_rows else archive)
        finally:
            subscriber.unsubscribe()
        warnings = [line for line in told if "--replace-rows" in line]
        assert len(warnings) == (not replaces_rows)
        assert all(
            line.startswith("warning: slot archive: public.t1, copied at 0/44C: table copy not sent")
            for line in warnings
        )


@pytest.mark.slow
def test_a_replay_names_what_it_does_not_replace(log: WrittenLog, server18: EmbeddedServer) -> None:
    """The rows of an archive are brought as they were inserted; the copy comes where that is asked for."""
    log.published("insert", 1)
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.commit(701, 1100, 1110, insert(1, "b"))
    log.copy(1, 702, ["b"], 1200)
    log.publish(1200)
    for options, rows, names in ((), "2 rows", True), (("--replace-rows",), "1 row,", False):
        with database(server18, "replayed_archive") as target:
            done = CliRunner().invoke(cli, ["replay", str(log.directory), "--into", target.info.dsn, *options])
            assert done.exit_code == 0, done.output
            assert f"t1: {rows}" in done.output
            assert ("public.t1, copied at 0/4B0: table copy not sent" in done.output) == names


def test_rows_that_do_not_count(log: WrittenLog) -> None:
    """A copy that was interrupted has rows that changed before it was resumed: they are not sent."""
    log.copy(1, 700, ["before", "a", "again", "b", "gone"], 1000, void=[0, 2, 4])
    log.commit(700, 1100, 1110, relation(1), insert(1, "c"))
    log.publish()
    feed = log.feed()
    assert served(Cursor(feed, OPTIONS, 0, feed.order().copied_until)) == ["a", "b", "@1000", "c", "@1110"]
