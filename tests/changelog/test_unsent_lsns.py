"""A streamed transaction that was rolled back has no LSN and no time, or zeros: readers of the log ask the next end."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._notes.confirmation_note import note_after
from pgoutput_construct.changelog._segment.events import BEGUN_ANEW, CONNECTED
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.cli.commands._log_report import describe_log, describe_segments
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.forensics import fixture
from pgoutput_construct.postgres._capture.overlap import Overlap, find_overlap
from pgoutput_construct.publisher._feed.cursor import confirmed
from pgoutput_construct.publisher._feed.message_feed import MessageFeed
from pgoutput_construct.publisher._feed.message_lines import read_message_lines
from pgoutput_construct.wire.json_lines import Decoded, format_line
from tests.publisher.logs import WrittenLog, insert, relation
from tests.publisher.reading import ABOUT
from tests.spark.logs import log_options

UNSENT: Any = {
    "v2": (2, "on", {}),
    "v3": (3, "on", {}),
    "v4 after a crash": (4, "parallel", {"abort_lsn": pgo.Lsn(0), "abort_time": pgo.Timestamp(0)}),
}
"""Protocol versions, streaming, and what the Stream Abort of a top-level transaction says (ReorderBufferAbortOld)."""
RollBack = Callable[[int], None]


@pytest.fixture(params=UNSENT)
def options(request: pytest.FixtureRequest) -> Any:
    """Return one of the ways in which the server does not say where a transaction was rolled back."""
    return UNSENT[request.param]


@pytest.fixture
def log(options: Any, tmp_path: Path) -> WrittenLog:
    """Return a log with a connection and a transaction, which committed at 1000."""
    log = WrittenLog(tmp_path, log_options(*options[:2], two_phase=options[0] > 2))
    log.writer.append_event(CONNECTED, pgo.Lsn(500))
    log.commit(700, 1000, 1010, relation(1), insert(1, "a"))
    return log


@pytest.fixture
def roll_back(log: WrittenLog, options: Any) -> RollBack:
    """Return what appends the streams of a transaction that was rolled back, given its xid."""

    def append(xid: int) -> None:
        log.put(pgo.StreamStart(xid, 1), _described(xid))
        log.put(pgo.Insert(xid, 1, (b"ghost",)), pgo.StreamStop(), pgo.StreamAbort(xid, xid, **options[2]))

    return append


def _described(xid: int) -> pgo.Relation:
    return pgo.Relation(xid, 1, "public", "t1", "d", (pgo.RelationColumn(1, "id", 25, -1),))


def _overlap(log: WrittenLog, slot: int) -> Overlap:
    opened, end = ChangeLog(log.directory), pgo.Lsn(2000)
    found = find_overlap(opened.store, pgo.Lsn(slot), opened.segments[-1].position, note_after(end, 0, None))
    assert found is not None
    return found


def _committed(xid: int, lsn: int) -> pgo.Commit:
    return pgo.Commit(pgo.Lsn(lsn), pgo.Lsn(lsn + 10), pgo.Timestamp(lsn))


@pytest.mark.parametrize("rolled_back", [1, 2])
def test_the_witness_is_before_it(log: WrittenLog, roll_back: RollBack, rolled_back: int) -> None:
    """A server that was reset must send the last commit, which one that crashed sends: the log does not lack it."""
    for number in range(rolled_back):
        roll_back(801 + number)
        log.publish(1500 + number)
    reset, crashed = _overlap(log, 600), _overlap(log, 600)
    assert (reset.witness, reset.start_lsn) == (1010, 1000)
    with pytest.raises(ChangeLogError, match="the log has transaction 700"):
        reset.advance(pgo.Lsn(1500))
    crashed.compare(_committed(700, 1000), 1010, 700)
    crashed.advance(pgo.Lsn(1501))
    assert crashed.witness is None


def test_a_fixture_has_it(log: WrittenLog, roll_back: RollBack) -> None:
    """Between an LSN or a time and another, and in a log that was restarted before it."""
    roll_back(801)
    log.commit(702, 1200, 1210, insert(1, "b"))
    log.publish()
    log.writer.append_event(BEGUN_ANEW, pgo.Lsn(1100), reason="test", snapshot=[702, 702, []], void_after=1100)
    log.commit(703, 1300, 1310, insert(1, "c"))
    roll_back(804)
    log.publish()
    bounds: Any
    for bounds, expected in (
        ({}, [801, 804]),
        ({"since": pgo.Lsn(0)}, [801, 804]),
        ({"since": pgo.Timestamp(1000), "until": pgo.Timestamp(1100)}, [801]),
        ({"since": pgo.Lsn(1300)}, [804]),
        ({"until": pgo.Lsn(999)}, []),
        ({"xids": [804], "since": pgo.Lsn(1300)}, [804]),
    ):
        sent = [message for _, message in fixture(log.directory, **bounds).messages()]
        assert [each.xid for each in sent if isinstance(each, pgo.StreamAbort)] == expected


def test_its_time_is_none(log: WrittenLog, roll_back: RollBack) -> None:
    """Neither the first commit of a log, nor of a segment, nor the last one that was pruned."""
    log.publish()
    roll_back(801)
    log.publish(1500)
    log.put(pgo.StreamStart(802, 1))
    log.publish(1600)
    opened = ChangeLog(log.directory)
    report = describe_log(opened)
    assert report["transactions"] == {"committed": 1, "aborted": 1}
    assert report["first_commit"] == report["last_commit"] == str(pgo.Timestamp(1000))
    assert [each["first_commit"] for each in describe_segments(opened)][1:] == [None, None]
    for before in (1010, 1500):
        prune(log.directory, pgo.Lsn(before), states=False)
        assert read_pruned(opened.store).time == 1000
    assert verify(log.directory).problems == ()


def test_what_opens_a_transaction_before_an_origin(tmp_path: Path) -> None:
    """Its frame has no LSN: where the transaction began is not known, rather than 0/0."""
    log = WrittenLog(tmp_path)
    log.put(pgo.Begin(pgo.Lsn(1000), pgo.Timestamp(1000), 700), pgo.Origin(pgo.Lsn(900), "far"))
    log.publish()
    (row,) = describe_log(ChangeLog(log.directory))["open_transactions"]
    assert (row["first_seq"], row["since_lsn"]) == (0, None)


def test_lines_without_an_lsn(options: Any) -> None:
    """A publisher sends such an abort unless what ends next was confirmed."""
    proto_version, streaming, said = options
    session = pgo.Session(proto_version, streaming)
    messages = [
        *(pgo.StreamStart(801, 1), pgo.StreamStop(), pgo.StreamAbort(801, 801, **said)),
        *(pgo.Begin(pgo.Lsn(1000), pgo.Timestamp(1000), 700), _committed(700, 1000)),
        *(pgo.StreamStart(802, 1), pgo.StreamStop(), pgo.StreamAbort(802, 802, **said)),
    ]
    given = {"proto_version": proto_version, "streaming": streaming}
    read = read_message_lines([format_line(Decoded(each, session.build(each), given)) for each in messages], "lines")
    feed = MessageFeed(ABOUT, read.messages)
    script = [*feed.read(0, feed.last_seq)]
    assert confirmed(script, 0, None) == set() and confirmed(script, 1010, None) == {0, 1, 2, 3, 4}
