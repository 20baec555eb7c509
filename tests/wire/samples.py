"""One message of each kind and shape, built by hand from the documents: options, bytes, object."""

from pgoutput_construct import (
    UNCHANGED,
    Begin,
    BeginPrepare,
    Binary,
    Commit,
    CommitPrepared,
    Delete,
    Insert,
    Lsn,
    Message,
    Origin,
    PgoutputMessage,
    Prepare,
    Relation,
    RelationColumn,
    RollbackPrepared,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Timestamp,
    Truncate,
    Type,
    Update,
)
from pgoutput_construct.testing import ParseOptions

__all__ = ["SAMPLES", "Sample"]

Sample = tuple[ParseOptions, bytes, PgoutputMessage]

PLAIN = ParseOptions()
STREAM = ParseOptions(proto_version=2, streaming="on", in_stream=True)
OUTSIDE = ParseOptions(proto_version=2, streaming="on")
TWO_PHASE = ParseOptions(proto_version=3, streaming="on")
PARALLEL = ParseOptions(proto_version=4, streaming="parallel")

LSN = "00000016 b374d848"
NEXT = "00000016 b374d878"
TIME = "00029e0b 1c3d4f80"
A, B, T = Lsn("16/B374D848"), Lsn("16/B374D878"), Timestamp(0x29E0B1C3D4F80)


def _sample(options: ParseOptions, hexadecimal: str, message: PgoutputMessage) -> Sample:
    return options, bytes.fromhex(hexadecimal), message


SAMPLES = {
    "Begin": _sample(PLAIN, f"42 {LSN} {TIME} 000002f1", Begin(A, T, 753)),
    "Message": _sample(PLAIN, f"4d 00 {LSN} 6100 00000002 00ff", Message(None, 0, A, "a", b"\0\xff")),
    "Message in a stream": _sample(STREAM, f"4d ffffffff 01 {LSN} 00 00000000", Message(2**32 - 1, 1, A, "", b"")),
    "Commit": _sample(PLAIN, f"43 00 {LSN} {NEXT} {TIME}", Commit(A, B, T)),
    "Origin": _sample(PLAIN, f"4f {LSN} 6f726967696e00", Origin(A, "origin")),
    "Relation": _sample(
        PLAIN,
        "52 00004001 7075626c696300 7400 64 0002 01 696400 00000017 ffffffff 00 7600 00000413 00000024",
        Relation(None, 16385, "public", "t", "d", (RelationColumn(1, "id", 23, -1), RelationColumn(0, "v", 1043, 36))),
    ),
    "Relation in a stream": _sample(
        STREAM, "52 00000007 00004001 00 ff00 66 0000", Relation(7, 16385, "", "\udcff", "f", ())
    ),
    "Type": _sample(PLAIN, "59 00008034 7300 6d6f6f6400", Type(None, 32820, "s", "mood")),
    "Insert": _sample(
        PLAIN,
        "49 00004001 4e 0004 6e 75 74 00000001 35 62 00000002 0005",
        Insert(None, 16385, (None, UNCHANGED, b"5", Binary(b"\0\5"))),
    ),
    "Insert in a stream": _sample(STREAM, "49 00000008 00004001 4e 0000", Insert(8, 16385, ())),
    "Update": _sample(PLAIN, "55 00004001 4e 0001 6e", Update(None, 16385, None, None, (None,))),
    "Update of a key": _sample(
        PLAIN, "55 00004001 4b 0001 74 00000001 31 4e 0001 6e", Update(None, 16385, "K", (b"1",), (None,))
    ),
    "Update of a whole row": _sample(
        STREAM, "55 00000009 00004001 4f 0001 74 00000000 4e 0001 75", Update(9, 16385, "O", (b"",), (UNCHANGED,))
    ),
    "Delete by key": _sample(PLAIN, "44 00004001 4b 0001 74 00000001 31", Delete(None, 16385, "K", (b"1",))),
    "Delete of a whole row": _sample(PLAIN, "44 00004001 4f 0001 6e", Delete(None, 16385, "O", (None,))),
    "Truncate": _sample(PLAIN, "54 00000002 03 00004001 00004002", Truncate(None, 3, (16385, 16386))),
    "Stream Start": _sample(OUTSIDE, "53 000002f1 01", StreamStart(753, 1)),
    "Stream Stop": _sample(STREAM, "45", StreamStop()),
    "Stream Commit": _sample(OUTSIDE, f"63 000002f1 00 {LSN} {NEXT} {TIME}", StreamCommit(753, A, B, T)),
    "Stream Abort": _sample(OUTSIDE, "41 000002f1 000002f2", StreamAbort(753, 754)),
    "Stream Abort in parallel": _sample(PARALLEL, f"41 000002f1 000002f2 {LSN} {TIME}", StreamAbort(753, 754, A, T)),
    "Begin Prepare": _sample(TWO_PHASE, f"62 {LSN} {NEXT} {TIME} 000002f1 6700", BeginPrepare(A, B, T, 753, "g")),
    "Prepare": _sample(TWO_PHASE, f"50 00 {LSN} {NEXT} {TIME} 000002f1 6700", Prepare(A, B, T, 753, "g")),
    "Commit Prepared": _sample(
        TWO_PHASE, f"4b 00 {LSN} {NEXT} {TIME} 000002f1 6700", CommitPrepared(A, B, T, 753, "g")
    ),
    "Rollback Prepared": _sample(
        TWO_PHASE, f"72 00 {LSN} {NEXT} {TIME} {TIME} 000002f1 6700", RollbackPrepared(A, B, T, T, 753, "g")
    ),
    "Stream Prepare": _sample(TWO_PHASE, f"70 00 {LSN} {NEXT} {TIME} 000002f1 6700", StreamPrepare(A, B, T, 753, "g")),
}
