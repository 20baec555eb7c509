"""Relations at any position of a log."""

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.stream import RelationCache
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.stream.state import ControlMessage
from tests.live.recording import Recording

OLD = pgo.Relation(None, 1, "public", "t", "d", ())
NEW = pgo.Relation(7, 1, "public", "t2", "d", ())


def history(*controls: tuple[int, int | None, pgo.PgoutputMessage]) -> RelationHistory:
    """The history of messages with their seq and stream."""
    found = RelationHistory()
    for control in controls:
        found.read(ControlMessage(*control))
    return found


def describe(found: RelationHistory, oid: int, seq: int, stream: int | None = None) -> Description:
    """What describes the rows of an OID at a position."""
    return found.descriptions[found.index(oid, seq, stream)]


@pytest.mark.slow
def test_same_as_the_cache(recordings: dict[str, Recording]) -> None:
    """For every row of every recording, the history returns afterwards what the cache returned at that row."""
    for recording in recordings.values():
        session, cache = pgo.Session(recording.mode.proto_version, recording.mode.streaming), RelationCache()
        controls, then = [], {}
        for seq, payload in enumerate(recording.payloads):
            stream = session.stream_xid
            message = session.parse(payload)
            controls.append(ControlMessage(seq, stream, message))
            cache.update(message)
            if isinstance(message, pgo.Insert | pgo.Update | pgo.Delete):
                then[message.relation_oid, seq, stream] = cache.get(message.relation_oid)
        found = history(*controls)
        assert {key: describe(found, *key).relation for key in then} == then


def test_a_stream_has_its_own() -> None:
    """Inside a stream only its own relations count; its commit publishes them from there on."""
    found = history(
        (1, None, OLD), (5, 7, NEW), (9, None, pgo.StreamCommit(7, pgo.Lsn(1), pgo.Lsn(2), pgo.Timestamp(3)))
    )
    assert [describe(found, 1, seq).relation for seq in (1, 8, 9, 99)] == [OLD, OLD, NEW, NEW]
    assert describe(found, 1, 8, 7).relation == NEW


@pytest.mark.parametrize("end", [pgo.StreamAbort(7, 7), pgo.StreamAbort(7, 8), pgo.StreamStart(7, 1)])
def test_forgotten(end: pgo.PgoutputMessage) -> None:
    """After an abort, or when the stream is sent again, its relations are to be sent again."""
    found = history((1, None, OLD), (5, 7, NEW), (9, None, end))
    assert describe(found, 1, 10).relation == OLD
    with pytest.raises(pgo.ProtocolError, match=r"seq 10: no Relation .* OID 1 in the stream of xid 7"):
        describe(found, 1, 10, 7)


def test_missing() -> None:
    """A row before any Relation is an error that names its seq."""
    with pytest.raises(pgo.ProtocolError, match=r"seq 3: no Relation .* OID 1 before"):
        history((4, None, OLD)).index(1, 3)


def test_types_come_along() -> None:
    """A description has the types of its columns, as named before it."""
    kind = pgo.Type(None, 20000, "public", "mood")
    column = pgo.RelationColumn(0, "feeling", 20000, -1)
    found = history((0, None, kind), (1, None, pgo.Relation(None, 1, "public", "t", "d", (column,))))
    assert describe(found, 1, 2).types == {20000: kind}
