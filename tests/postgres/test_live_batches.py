"""The batches of the live client: what is read of many messages at a time is what is read of them one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.columnar.envelope import Frames
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.postgres._live_batches import CommittedChange, LiveBatches
from pgoutput_construct.stream import RowReader, Session
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.wire.protocol import CHANGES
from tests.live.recording import Recording

LAYOUT = {"proto_version": 1, "streaming": "off"}
Values = Literal["python", "raw"]
KEEPALIVE = pgo.build_frame(pgo.PrimaryKeepalive(pgo.Lsn(9), pgo.Timestamp(1), 0))


def frame(lsn: int, payload: bytes) -> bytes:
    """Return a payload as the server sends it."""
    return pgo.build_frame(pgo.XLogData(pgo.Lsn(lsn), pgo.Lsn(lsn), pgo.Timestamp(0), payload))


@dataclass
class Failed:
    """An error by its class and text: what comes after it does not count."""

    text: str


def one_by_one(payloads: Sequence[bytes], values: Values) -> list[Any]:
    """Read messages with the session and the reader of rows."""
    session, rows, found = Session(), RowReader(values=values), list[Any]()
    try:
        for lsn, payload in enumerate(payloads, 2**63):
            message = session.parse(payload)
            changes = [
                CommittedChange(full_name(row.relation), row.op, row.new, row.old, row.unchanged, pgo.Lsn(lsn))
                for row in rows.read(message)
            ]
            found += changes if type(message) in CHANGES else [message]
    except pgo.PgoutputError as error:
        found.append(Failed(f"{type(error).__name__}: {error}"))
    return found


def together(payloads: Sequence[bytes], values: Values, size: int, *, as_messages: bool = False) -> list[Any]:
    """Read them in batches of a size, a keepalive after each fifth message."""
    batches, found = LiveBatches(LAYOUT, values, as_messages=as_messages), list[Any]()
    frames = [frame(lsn, payload) for lsn, payload in enumerate(payloads, 2**63)]
    for begin in range(0, len(frames), size):
        some = frames[begin : begin + size]
        sent = [data for number, each in enumerate(some) for data in ([each, KEEPALIVE] if number % 5 == 4 else [each])]
        batch = batches.read(Frames.of(*sent))
        assert sum(isinstance(item, pgo.PrimaryKeepalive) for item in batch.items) == len(sent) - len(some)
        for item in batch.items:
            if isinstance(item, pgo.PgoutputError):
                return [*found, Failed(f"{type(item).__name__}: {item}")]
            if not isinstance(item, pgo.PrimaryKeepalive):
                found += item if type(item) is list else [item]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("values", ["python", "raw"])
@pytest.mark.parametrize("name", ["16-v1-text", "18-v1-text", "18-v1-binary", "19-v1-text"])
def test_recordings(recordings: dict[str, Recording], name: str, values: Values) -> None:
    """Every type, key changes, unsent values, altered tables: the same changes, with values of the same types."""
    if name not in recordings:
        pytest.skip(f"no recording {name}")
    payloads = recordings[name].payloads
    expected = repr(one_by_one(payloads, values))
    assert "CommittedChange" in expected
    for size in (1, 7, 100, len(payloads)):
        assert repr(together(payloads, values, size)) == expected


@given(testing.streams(), st.integers(1, 200), st.sampled_from(["python", "raw"]))
def test_streams(stream: list[testing.Sent], size: int, values: Values) -> None:
    """Whatever a server may send."""
    payloads = [sent.payload for sent in stream]
    assert repr(together(payloads, values, size)) == repr(one_by_one(payloads, values))
    messages = together(payloads, values, size, as_messages=True)
    assert messages == [sent.message for sent in stream]


@given(testing.streams().filter(len), st.data())
def test_errors(stream: list[testing.Sent], data: st.DataObject) -> None:
    """A damaged, doubled or lost message: everything before it, then the same error."""
    payloads = [sent.payload for sent in stream]
    place = data.draw(st.integers(0, len(payloads) - 1))
    damaged = data.draw(testing.damaged(st.just(payloads[place])))
    payloads[place : place + 1] = data.draw(st.sampled_from([[damaged], [], [payloads[place]] * 2]))
    size = data.draw(st.integers(1, 100))
    if payloads:
        assert repr(together(payloads, "python", size)) == repr(one_by_one(payloads, "python"))


def test_rows_that_are_not_like_the_others() -> None:
    """In a batch of one table: a value that is not sent, binary, too large for Python, NULL, or one too many."""
    columns = [pgo.RelationColumn(1, "id", TYPE_NAMES["int4"].oid, -1)]
    columns += [pgo.RelationColumn(0, "at", TYPE_NAMES["date"].oid, -1)]
    table = pgo.Relation(None, 7, "public", "t", "d", tuple(columns))
    rows = [pgo.Insert(None, 7, (b"%d" % number, b"2026-11-26")) for number in range(20)]
    odd = {
        3: pgo.Update(None, 7, None, None, (b"3", pgo.UNCHANGED)),
        5: pgo.Insert(None, 7, (pgo.Binary(b"\0\0\0\5"), b"2026-11-26")),
        8: pgo.Insert(None, 7, (b"8", b"infinity")),
        9: pgo.Insert(None, 7, (b"9", None)),
        11: pgo.Delete(None, 7, "K", (b"11", None)),
        12: pgo.Update(None, 7, "K", (b"12", None), (b"13", b"2026-11-26")),
        14: pgo.Truncate(None, 0, (7,)),
    }
    messages = [table, *(odd.get(number, row) for number, row in enumerate(rows))]
    payloads = [pgo.build(message) for message in messages]
    found = together(payloads, "python", 100)
    assert found == one_by_one(payloads, "python")
    assert [change.new for change in found[1:]][3:10:5] == [{"id": 3}, {"id": 8, "at": "infinity"}]
    payloads[8] = pgo.build(pgo.Insert(None, 7, (b"7", b"2026-11-26", None)))
    found = together(payloads, "python", 100)
    assert found == one_by_one(payloads, "python") and "has 3 values" in found[-1].text and len(found) == 9
