"""A stream that a server could send after all changes: its messages, their bytes, and the rows that they make."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pgoutput_construct as pgo
from pgoutput_construct.changelog import LogOptions

OPTIONS: Final[dict[str, Any]] = {"proto_version": 5, "streaming": "eager", "checksums": "row", "timings": True}
TIME: Final = pgo.Timestamp(800_000_000_000_000)
TIME_HEX: Final = "0002d79883d20000"


class Sent(NamedTuple):
    """A message, its bytes written by hand, and where it stands."""

    message: Any
    hex: str
    in_stream: bool = False
    in_block: bool = False

    @property
    def payload(self) -> bytes:
        """Its bytes."""
        return bytes.fromhex(self.hex)

    @property
    def states(self) -> dict[str, bool]:
        """Where it stands, as keywords of parse."""
        return {"in_stream": self.in_stream, "in_block": self.in_block}


def row(*values: Any) -> pgo.TupleData:
    """A row in which every value has its neighbours."""
    columns = tuple(pgo.TupleColumn(value, compression="l", crc=9, rank=-2, note="n") for value in values)
    return pgo.TupleData(columns, row_flags=1, written_at=pgo.Timestamp(5), collation="C")


def row_hex(*values: str) -> str:
    """The bytes of such a row."""
    columns = "".join(f"6c 00000009 {value} fffe 6e00" for value in values)
    return f"01 0000000000000005 {len(values):04x} 4300 {columns}"


def text(value: str) -> str:
    """The bytes of a value as text."""
    return f"74 {len(value):08x} {value.encode().hex()}"


NULL: Final = "6e"
KEY = pgo.RelationColumn(1, "id", 23, -1, attnum=-7, default="0")
NOTE = pgo.RelationColumn(0, "note", 25, -1, attnum=2, default="")
COLUMNS_HEX: Final = "0002 fff9 01 696400 3000 00000017 ffffffff 0002 00 6e6f746500 00 00000019 ffffffff"
FILTER = pgo.RowFilter(pgo.Bounds(-1, -128), "a > 1")
FILTER_HEX: Final = "ffffffffffffffff 80 61203e203100"

STREAM: Final = [
    Sent(pgo.Begin(pgo.Lsn(16), TIME, 700), f"42 0000000000000010 {TIME_HEX} 000002bc"),
    Sent(
        pgo.Publication("p", -5, FILTER, (23, 25), (pgo.PublishedTable(7, FILTER),)),
        f"46 7000 fffffffffffffffb {FILTER_HEX} 0002 0001 00000017 00000019 00000007 {FILTER_HEX}",
    ),
    Sent(
        pgo.Relation(None, 7, "public", "t", "d", (KEY, NOTE)),
        f"52 00000007 7075626c696300 7400 64 {COLUMNS_HEX}",
    ),
    Sent(
        pgo.Truncate(None, 1, (pgo.TruncatedTable(7, reason="r", row_count=-1),)),
        "54 00000001 01 7200 00000007 ffffffffffffffff",
    ),
    Sent(
        pgo.Insert(None, 7, row(b"1", b"a"), change_number=-1, label="l", comment="c", cost=3),
        f"49 ffffffffffffffff 6c00 00000007 4e {row_hex(text('1'), text('a'))} 6300 0000000000000003",
    ),
    Sent(pgo.BlockStart(4), "5b 00000004"),
    Sent(
        pgo.Insert(
            None,
            7,
            row(pgo.Binary(b"\0\0\0\2"), pgo.Packed(b"b")),
            change_number=2,
            label="",
            block_seq=6,
            comment="",
            cost=0,
        ),
        "49 0000000000000002 00 00000006 00000007 4e "
        f"{row_hex('62 00000004 00000002', '7a 00000001 62')} 00 0000000000000000",
        in_block=True,
    ),
    Sent(
        pgo.Update(
            None,
            7,
            "K",
            row(b"1", None),
            row(b"3", pgo.UNCHANGED),
            block_seq=1,
            label="u",
            change_number=-3,
            cost=1,
            comment="",
        ),
        f"55 00000001 7500 fffffffffffffffd 00000007 4b {row_hex(text('1'), NULL)} "
        f"4e {row_hex(text('3'), '75')} 0000000000000001 00",
        in_block=True,
    ),
    Sent(
        pgo.Relation(None, 8, "", "u", "f", (KEY, NOTE), block_uses=1),
        f"52 00000008 00 7500 0001 66 {COLUMNS_HEX}",
        in_block=True,
    ),
    Sent(pgo.BlockStop(), "5d", in_block=True),
    Sent(pgo.Upsert(7, new=row(b"2", b"B")), f"58 00000007 4e {row_hex(text('2'), text('B'))}"),
    Sent(pgo.Upsert(7, new=row(b"2", pgo.EXTERNAL)), f"58 00000007 4e {row_hex(text('2'), '65')}"),
    Sent(
        pgo.Commit(pgo.Lsn(16), pgo.Lsn(32), TIME, digest=255),
        f"43 00 0000000000000010 0000000000000020 {TIME_HEX} 00000000000000ff",
    ),
    Sent(pgo.StreamStart(701, first_segment=1, worker=8), "53 000002bd 00000008 01"),
    Sent(
        pgo.Relation(701, 7, "public", "t", "d", (KEY, NOTE)),
        f"52 000002bd 00000007 7075626c696300 7400 64 {COLUMNS_HEX}",
        in_stream=True,
    ),
    Sent(
        pgo.Insert(701, 7, row(b"4", None), change_number=0, label="", comment="", cost=0),
        f"49 0000000000000000 000002bd 00 00000007 4e {row_hex(text('4'), NULL)} 00 0000000000000000",
        in_stream=True,
    ),
    Sent(pgo.StreamBlockStart(5), "7b 00000005", in_stream=True),
    Sent(
        pgo.Delete(701, 7, "K", row(b"3", None), change_number=0, block_name="b", label="d", comment="e"),
        f"44 0000000000000000 000002bd 00000007 6200 6400 4b {row_hex(text('3'), NULL)} 6500",
        in_stream=True,
        in_block=True,
    ),
    Sent(
        pgo.Upsert(7, "K", row(b"4", None), row(b"5", b"e"), xid=702),
        f"58 000002be 00000007 4b {row_hex(text('4'), NULL)} 4e {row_hex(text('5'), text('e'))}",
        in_stream=True,
        in_block=True,
    ),
    Sent(
        pgo.Insert(702, 7, row(b"6", b""), change_number=0, label="", block_seq=3, comment="", cost=0),
        f"49 0000000000000000 000002be 00 00000003 00000007 4e {row_hex(text('6'), text(''))} 00 0000000000000000",
        in_stream=True,
        in_block=True,
    ),
    Sent(pgo.StreamBlockStop(), "7d", in_stream=True, in_block=True),
    Sent(pgo.StreamStop(), "45", in_stream=True),
    Sent(
        pgo.StreamCommit(701, pgo.Lsn(48), pgo.Lsn(64), TIME),
        f"63 000002bd 00 0000000000000030 0000000000000040 {TIME_HEX}",
    ),
]
PAYLOADS: Final = [sent.payload for sent in STREAM]

FRAMES_SENT: Final = [
    (
        pgo.WALGap(-1, (pgo.Gap(pgo.LsnRange(pgo.Lsn(1), pgo.Lsn(2)), "x"),)),
        "67 ffffffffffffffff 0001 0000000000000001 0000000000000002 7800",
    ),
    (pgo.SlotHint(pgo.LsnRange(pgo.Lsn(1), pgo.Lsn(2)), -2), "71 0000000000000001 0000000000000002 fffffffe"),
]

INSERTED: Final = [
    ("truncate", None, None),
    ("insert", 1, "a"),
    ("insert", 2, None),
    ("update", 3, None),
    ("upsert", 2, "B"),
    ("upsert", 2, None),
    ("insert", 4, None),
    ("delete", None, None),
    ("upsert", 5, "e"),
    ("insert", 6, ""),
]
UNTYPED: Final = [None, None, [("note", "packed \\x62")], *[None] * 7]
"""What the columns of the same in Arrow cannot hold: values of a kind that nothing is known of."""
BEFORE: Final = [None, None, None, 1, None, None, None, 3, 4, None]
STATE: Final = [(2, "B"), (5, "e"), (6, "")]
"""The table after all: row 1 became 3, which was deleted; row 4 became 5."""


def log_options(**others: Any) -> LogOptions:
    """The options of a log that no server has written."""
    return LogOptions(
        slot="slot",
        publications=("pub",),
        server_version=200000,
        system_identifier="1",
        database="test",
        **OPTIONS,
        **others,
    )


def refused(call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Check that a call is refused with an error of ours."""
    try:
        call(*arguments, **options)
    except pgo.PgoutputError as error:
        assert not isinstance(error, pgo.EngineError), error
        return
    raise AssertionError(f"accepted: {call.__name__}{arguments} {options}")
