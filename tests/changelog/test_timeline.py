"""What a log holds, in its order."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogEvent
from pgoutput_construct.changelog._facts.catalog_readings import table_readings
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.visibility import Visibility
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, CONNECTED, TABLE_FACTS
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.changelog.decoding_order import PlacedCopies
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.changelog.reader import index_as_of
from pgoutput_construct.changelog.timeline import (
    NOTHING_ENDED,
    ItemKind,
    LogicalMessage,
    Timeline,
    TimelineFollower,
    TimelineItem,
    first_uncontained,
    last_ends,
    lasting_transactions,
    lsn_before,
    point_at,
)
from pgoutput_construct.stream.transaction_reader import COMMITTED, FINISHED, PREPARED, EndedTransaction
from tests.publisher.logs import WrittenLog, insert, relation


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    """An empty log."""
    return WrittenLog(tmp_path)


def prepare(log: WrittenLog, xid: int, lsn: int, *changes: pgo.PgoutputMessage) -> None:
    """Append a transaction that is prepared at an LSN, and ends ten bytes later."""
    numbers = pgo.Lsn(lsn), pgo.Lsn(lsn + 10), pgo.Timestamp(lsn), xid, f"gid {xid}"
    log.put(pgo.BeginPrepare(*numbers), *changes, pgo.Prepare(*numbers))


def commit_prepared(log: WrittenLog, xid: int, lsn: int) -> None:
    """Append the commit of a prepared transaction."""
    log.put(pgo.CommitPrepared(pgo.Lsn(lsn), pgo.Lsn(lsn + 10), pgo.Timestamp(lsn), xid, f"gid {xid}"))


def told(item: TimelineItem | PlacedCopies) -> str:
    """Return an item in short: an outcome and an LSN."""
    match item:
        case TableCopy():
            return f"copy of {item.relation_oid} at {int(item.snapshot.lsn)}"
        case PlacedCopies():
            return f"copy of {', '.join(map(str, sorted(item.relation_oids)))} @{item.end_lsn}"
        case LogicalMessage():
            return f"message {int(item.message.lsn)}"
        case LogEvent():
            return item.name
        case EndedTransaction():
            return f"{item.outcome} {item.commit_lsn}"
    raise AssertionError(item)


def yielded(log: WrittenLog, *args: Any, **options: Any) -> list[str]:
    """Return the items of a slice in short."""
    return [told(item) for item in Timeline(ChangeLog(log.directory), *args, **options)]


def ordered(log: WrittenLog, two_phase_at: int | None = None, until: int | None = None) -> list[str]:
    """Return what a slot is sent, in short."""
    opened = ChangeLog(log.directory)
    follower = TimelineFollower(None if until is None else point_at(opened.index, pgo.Lsn(until)))
    follower.update(opened)
    return [told(item) for item in follower.order(two_phase_at)]


def fill(log: WrittenLog) -> None:
    """Append one of all kinds, in segments that part some."""
    log.writer.append_event(CONNECTED, pgo.Lsn(0))
    log.commit(700, 1000, 1010, relation(1), relation(2), insert(1, "a"))
    log.put(pgo.Message(None, 0, pgo.Lsn(1020), "p", b""))
    log.publish()
    prepare(log, 701, 1030, insert(1, "b"))
    log.commit(702, 1050, 1060, insert(2, "c"))
    log.publish()
    log.copy(1, 703, ["a", "b"], 1065, visibility=Visibility.at(pgo.Lsn(1070)))
    commit_prepared(log, 701, 1080)
    log.put(pgo.Message(None, 1, pgo.Lsn(1085), "within", b""))
    log.commit(704, 1100, 1110, insert(2, "d"))
    log.publish()


ALL = list(ItemKind)


def test_all_kinds_in_one_order(log: WrittenLog) -> None:
    """Whatever a log holds stands at its seq; by default what the index alone says is yielded."""
    fill(log)
    kinds = [ItemKind.TRANSACTION, ItemKind.PREPARED, ItemKind.COPY, ItemKind.MESSAGE, ItemKind.EVENT]
    expected = ["connected", "committed 1000", "message 1020", "prepared 1030", "committed 1050", "copy of 1 at 1065"]
    expected += ["committed 1080", "committed 1100"]
    assert yielded(log, kinds) == expected
    assert yielded(log) == [each for each in expected if not each.startswith(("message", "prepared"))]
    assert yielded(log, [ItemKind.EVENT]) == ["connected", "copied table"]
    seqs = [item.seq for item in Timeline(ChangeLog(log.directory), kinds)]
    assert seqs == sorted(set(seqs))


def test_what_an_item_has(log: WrittenLog) -> None:
    """A transaction has its LSNs, its time and its spans; so has one that is prepared, at the PREPARE."""
    fill(log)
    items = {told(item): item for item in Timeline(ChangeLog(log.directory), ALL)}
    for name, lsn, outcome in (
        ("committed 1050", 1050, COMMITTED),
        ("prepared 1030", 1030, PREPARED),
        ("committed 1080", 1080, COMMITTED),
    ):
        found = items[name]
        assert isinstance(found, EndedTransaction)
        assert (found.outcome, found.commit_lsn, found.end_lsn, found.time) == (outcome, lsn, lsn + 10, lsn)
    prepared, committed = items["prepared 1030"], items["committed 1080"]
    assert isinstance(prepared, EndedTransaction) and isinstance(committed, EndedTransaction)
    assert prepared.transaction == committed.transaction
    assert prepared.transaction.spans == [(prepared.seq - 2, prepared.seq)]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (
            {"first_lsn": 1050},
            ["committed 1050", "copy of 1 at 1065", "committed 1080", "committed 1100"],
        ),
        ({"last_lsn": 1049}, ["connected", "committed 1000", "message 1020", "prepared 1030"]),
        ({"first_lsn": 1030, "last_lsn": 1030}, ["prepared 1030"]),
        ({"relation_oids": {1}}, ["committed 1000", "prepared 1030", "copy of 1 at 1065", "committed 1080"]),
        ({"relation_oids": {2}, "first_lsn": 1060}, ["committed 1100"]),
        ({"relation_oids": ()}, []),
    ],
    ids=str,
)
def test_slices(log: WrittenLog, bounds: dict[str, Any], expected: list[str]) -> None:
    """By LSN, and by table: what a log has outside of transactions is of no table."""
    fill(log)
    kinds = [ItemKind.TRANSACTION, ItemKind.PREPARED, ItemKind.COPY, ItemKind.MESSAGE, ItemKind.EVENT]
    assert yielded(log, kinds, **bounds) == expected


@pytest.mark.slow
def test_slices_by_seq_and_time(log: WrittenLog) -> None:
    """Between any two seqs, and any two times, is what has them; events have the times of the machine."""
    fill(log)
    items = list(Timeline(ChangeLog(log.directory), ALL))
    for after in range(-1, items[-1].seq + 1):
        for until in range(after, items[-1].seq + 1, 3):
            expected = [told(item) for item in items if after < item.seq <= until]
            assert yielded(log, ALL, after=after, until=until) == expected
    kinds = [ItemKind.TRANSACTION, ItemKind.PREPARED]
    assert yielded(log, kinds, first_time=1030, last_time=1080) == ["prepared 1030", "committed 1050", "committed 1080"]


def test_only_segments_of_the_slice_are_read(log: WrittenLog) -> None:
    """Payloads are read for messages and PREPAREs alone, and of no segment that has none in the slice."""
    fill(log)
    opened, read = ChangeLog(log.directory), list[str]()

    def noted(segment: Any) -> Any:
        read.append(segment.name)
        return opened.table(segment)

    assert len(list(Timeline(opened, read=noted))) == 6 and not read
    names = [segment.name for segment in opened.segments]
    assert [told(item) for item in Timeline(opened, [ItemKind.PREPARED], read=noted)] == ["prepared 1030"]
    assert read == names[1:]  # in the last one a prepared transaction ends
    read.clear()
    assert [told(item) for item in Timeline(opened, [ItemKind.MESSAGE], last_lsn=1020, until=5, read=noted)] == []
    assert read == names[:1]


def test_a_lost_history(log: WrittenLog) -> None:
    """What ended after the position that was lost is void, and so is what was prepared and copied there."""
    log.commit(700, 3000, 3010, relation(1), insert(1, "a"))
    log.commit(701, 4100, 4110, insert(1, "lost"))
    prepare(log, 702, 4200, insert(1, "lost, too"))
    log.copy(1, 1000, ["a", "lost"], 5000)
    log.publish(5000)
    log.writer.append_event(BEGUN_ANEW, pgo.Lsn(4000), reason="", void_after=4000, snapshot=[1, 1, []])
    log.commit(922, 4500, 4510, insert(1, "b"))
    log.publish(5200)
    assert yielded(log, ALL) == ["committed 3000", BEGUN_ANEW, "committed 4500"]
    assert yielded(log, [ItemKind.TRANSACTION], lost=()) == ["committed 3000", "committed 4100", "committed 4500"]
    assert ordered(log) == ["committed 3000", "committed 4500"]


def read(log: WrittenLog, lsn: int, *, gone: bool = False) -> None:
    """Append what the catalog said of table 1 at an LSN."""
    facts = {"oid": 1, "schema": "public", "name": "t1", "snapshot": [1, 1, []], "since": 0, "unchanged": 0}
    log.writer.append_fact(TABLE_FACTS, pgo.Lsn(lsn), **facts, **({"gone": True} if gone else {}))


@pytest.mark.slow
@pytest.mark.parametrize("repeated", [True, False])
def test_readings_of_a_lost_history(log: WrittenLog, repeated: bool) -> None:
    """They do not count before the log was restarted; what was read before counts if it was true by then."""
    read(log, 900)
    log.commit(700, 2000, 2010, relation(1), insert(1, "a"))
    read(log, 2600)
    log.commit(701, 3900, 3910, insert(1, "lost"))
    read(log, 3920, gone=True)
    log.publish(3930)
    log.writer.append_fact(BEGUN_ANEW, pgo.Lsn(3050), reason="", snapshot=[1, 1, []], void_after=3000)
    if repeated:
        read(log, 3100)
    log.commit(922, 3500, 3510, relation(1), insert(1, "b"))
    log.publish(3600)
    opened = ChangeLog(log.directory)

    def found(at: int) -> list[tuple[int, bool]]:
        index = index_as_of(opened, point_at(opened.index, pgo.Lsn(at)))
        return [(int(each.snapshot.lsn), each.gone) for each in table_readings(index)[1]]

    assert found(2500) == [(900, False)]
    assert found(2700) == found(3050) == [(900, False), (2600, False)]
    later = [(900, False), (2600, False), (3920, True), *([(3100, False)] if repeated else [])]
    assert found(3499) == found(3550) == later
    readings = table_readings(opened.index)[1]
    assert [(int(each.snapshot.lsn), each.gone) for each in readings] == later
    assert point_at(opened.index, pgo.Timestamp.now()).lsn == 3500
    assert point_at(opened.index, pgo.Timestamp(3000)).lsn == 2000


@pytest.mark.parametrize("with_visibility", [False, True])
def test_where_a_copy_stands(log: WrittenLog, with_visibility: bool) -> None:
    """Before the first commit that it does not contain, though the log says it later."""
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.commit(701, 1100, 1110, insert(1, "b"))
    log.commit(702, 1200, 1210, insert(1, "c"))
    seen = Visibility(pgo.Lsn(1100), frozenset({702}), pgo.Lsn(1300))
    log.copy(1, 701, ["a", "c"], 1050, visibility=seen if with_visibility else None)
    log.commit(703, 1400, 1410, insert(1, "d"))
    log.publish()
    assert ordered(log) == ["committed 1000", "copy of 1 @1050", "committed 1100", "committed 1200", "committed 1400"]
    follower = TimelineFollower()
    follower.update(ChangeLog(log.directory))
    order = follower.order()
    transactions = [item for item in order if isinstance(item, EndedTransaction)]
    contained = [item.commit_lsn for item in transactions if order.contains(1, item)]
    assert contained == ([1200] if with_visibility else [])
    # What comes before the first copy of a table is in that, unless the log holds the table from its first row on.
    awaiting = [item.commit_lsn for item in transactions if order.awaited(1, item)]
    assert awaiting == [1000] and not order.awaited(2, transactions[0])
    begun = follower.order(begun={1: 0})
    assert [item for item in begun if isinstance(item, EndedTransaction) and begun.awaited(1, item)] == []
    assert [order.contains(1, item, without=[order.copied_until]) for item in transactions] == [False] * 4
    assert ordered(log, until=1150) == ["committed 1000", "copy of 1 @1050", "committed 1100"]
    assert ordered(log, until=1049) == ["committed 1000"]


@pytest.mark.slow
def test_positions_of_copies(log: WrittenLog) -> None:
    """They are between those of the items around them, and do not change as the log grows or is compacted."""
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.publish(1030)
    for oid in (2, 3, 4, 5):
        log.copy(oid, 701, ["row"], 1020, visibility=Visibility.at(pgo.Lsn(1024)))
        log.publish(1030)
    first = ordered(log)
    assert first == ["committed 1000", *(f"copy of {oid} @{1018 + oid}" for oid in (2, 3, 4, 5))]
    log.commit(701, 1022, 1024, insert(1, "b"))
    log.publish()
    shared = ["committed 1000", "copy of 2 @1020", "copy of 3 @1021", "copy of 4 @1022", "copy of 5 @1023"]
    assert ordered(log) == [*shared, "committed 1022"]
    log.copy(6, 702, ["row"], 1020, visibility=Visibility.at(pgo.Lsn(1022)))
    log.publish()
    # There is no LSN left for it: it comes with the last one.
    assert ordered(log) == [*shared[:-1], "copy of 5, 6 @1023", "committed 1022"]
    before = ordered(log)
    compact(log.directory, CompactionLimits(grace=0))
    assert ordered(log) == before


def test_prepared_transactions(log: WrittenLog) -> None:
    """With two phases they have two places, and no copy stands between these."""
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    prepare(log, 701, 1030, insert(1, "b"))
    log.commit(702, 1050, 1060, insert(1, "c"))
    log.copy(1, 703, ["a", "c"], 1065, visibility=Visibility.at(pgo.Lsn(1070)))
    commit_prepared(log, 701, 1080)
    prepare(log, 704, 1100, insert(1, "open"))
    log.publish(1200)
    assert ordered(log) == ["committed 1000", "committed 1050", "copy of 1 @1065", "committed 1080"]
    expected = ["committed 1000", "copy of 1 @1031", "prepared 1030", "committed 1050", "finished 1080"]
    follower = TimelineFollower()
    follower.update(ChangeLog(log.directory))
    order = follower.order(0)
    assert [told(item) for item in order] == [*expected, "prepared 1100"]
    kinds = {item.seq: order.contains(1, item) for item in order if isinstance(item, EndedTransaction)}
    assert [*kinds.values()] == [False, False, True, False, False]
    # What was prepared before the slot had two phases is sent whole, before its COMMIT PREPARED.
    assert [told(item) for item in follower.order(1040)][-3:] == ["prepared 1080", "finished 1080", "prepared 1100"]
    assert [place for place in range(len(order) + 1) if order.has_prepared(place)] == [3, 4, 6]
    assert FINISHED in {item.outcome for item in order if isinstance(item, EndedTransaction)}


def test_it_follows_a_log(log: WrittenLog) -> None:
    """Each transaction is taken in once; where items are no longer what they were, the generation is another."""
    follower, generations = TimelineFollower(), list[int]()

    def followed() -> list[str]:
        follower.update(ChangeLog(log.directory))
        order = follower.order()
        generations.append(order.generation)
        return [told(item) for item in order]

    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.publish()
    assert followed() == ["committed 1000"]
    log.commit(701, 1100, 1110, insert(1, "b"))
    log.publish()
    assert followed() == ["committed 1000", "committed 1100"]
    log.copy(1, 702, ["a", "b"], 1120, visibility=Visibility.at(pgo.Lsn(1120)))
    log.publish(1120)
    assert followed() == ["committed 1000", "committed 1100", "copy of 1 @1120"]
    log.commit(702, 1200, 1210, insert(1, "c"))
    log.publish()
    followed()
    prune(log.directory, pgo.Lsn(1150))
    assert followed() == ["copy of 1 @1120", "committed 1200"]
    assert follower.begins == 1110 and follower.order().begins == 1110
    first, grown, copied, more, pruned = generations
    assert first == grown and copied == more and len({first, copied, pruned}) == 3


def test_what_was_pruned(log: WrittenLog) -> None:
    """A copy that needs a commit which was pruned has no place."""
    log.copy(1, 700, ["a"], 990, visibility=Visibility.at(pgo.Lsn(1000)))
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.publish()
    log.commit(701, 1100, 1110, insert(1, "b"))
    log.publish()
    prune(log.directory, pgo.Lsn(1050), states=False)
    assert ordered(log) == ["committed 1100"]


def test_a_moment_of_a_log_that_grows(log: WrittenLog) -> None:
    """What is added to the log after it was known does not count, even if it was true by then."""
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.publish()
    opened = ChangeLog(log.directory)
    moment = point_at(opened.index, pgo.Lsn(2000))._replace(known=opened.index.last_seq)
    read(log, 1100)
    log.copy(1, 701, ["a"], 1200)
    log.publish(1300)
    opened = ChangeLog(log.directory)
    assert not table_readings(index_as_of(opened, moment))
    for each, copies in ((moment, 0), (moment._replace(known=None), 1)):
        follower = TimelineFollower(each)
        follower.update(opened)
        assert len(follower.copies) == copies


def test_superfluous_copies(log: WrittenLog) -> None:
    """They have a place, at which nothing is sent, and contain nothing."""
    log.copy(1, 701, ["a"], 1050)
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    log.commit(701, 1100, 1110, insert(1, "b"))
    log.publish()
    follower = TimelineFollower()
    follower.update(ChangeLog(log.directory))
    (placed,) = follower.order(superfluous=[follower.copies[0].seq]).copies
    assert (placed.copies, placed.emptied, placed.seqs) == ((), {}, {follower.copies[0].seq})


def of_each(values: Iterable[Any]) -> list[int]:
    """Return numbers as Python's."""
    return [int(value) for value in values]


def test_what_a_prune_asks(log: WrittenLog) -> None:
    """By segment where something ended last; what lies in several; and what follows a copy."""
    fill(log)
    log.writer.append_event(CONNECTED, pgo.Lsn(0))
    prepare(log, 710, 1200, insert(1, "open"))
    log.publish(1300)
    index = ChangeLog(log.directory).index
    assert of_each(last_ends(index, "end_lsn")) == [1010, 1060, 1110, 1300]
    assert of_each(last_ends(index, "commit_time")) == [1000, 1050, 1100, NOTHING_ENDED]
    first, last, xids = lasting_transactions(index)
    lasting = dict(zip(xids.to_pylist(), zip(of_each(first), of_each(last), strict=True), strict=True))
    assert lasting[701][0] < index.table["first_seq"][2].as_py() < lasting[701][1]
    assert lasting[710][1] == 2**63 - 1
    follower = TimelineFollower()
    follower.update(ChangeLog(log.directory))
    (copy,) = follower.copies
    (found,) = first_uncontained(index, [copy]).values()
    assert found == lasting[701][0]  # it is prepared before the copy, and commits after it
    assert first_uncontained(index, []) == {}


def test_the_lsn_before_a_time(log: WrittenLog) -> None:
    """Of the commits that are later the one with the least LSN decides, whatever their clocks say."""
    for xid, lsn, time in ((700, 1000, 50), (701, 1100, 90), (702, 1200, 70), (703, 1300, 95)):
        stamp = pgo.Timestamp(time)
        log.put(pgo.Begin(pgo.Lsn(lsn), stamp, xid), pgo.Commit(pgo.Lsn(lsn), pgo.Lsn(lsn + 10), stamp))
        log.publish(lsn + 10)
    index = ChangeLog(log.directory).index
    found = {time: lsn_before(index, pgo.Timestamp(time)) for time in (0, 50, 80, 90, 95)}
    assert found == {0: 999, 50: 1099, 80: 1099, 90: 1299, 95: None}
