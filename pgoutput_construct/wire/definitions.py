# Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

"""Logical replication messages: the construct definitions, which parse and build.

Every parse and build takes the parameters as keywords: proto_version (int), in_stream (bool), parallel (bool).
Source: PostgreSQL's documentation, protocol-logicalrep-message-formats.
"""

from collections.abc import Mapping
from typing import Final

from construct import FocusedSeq, Struct, Switch, this

from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.composites import (
    Counted,
    Kind,
    Record,
    SizeOf,
    Valued,
    when,
)
from pgoutput_construct.wire.given import Given
from pgoutput_construct.wire.primitives import (
    Absent,
    Bits,
    Constant,
    Data,
    End,
    Letter,
    Oid,
    OneOf,
    Since,
    SInt32,
    String,
    TimestampTz,
    UInt8,
    UInt16,
    UInt32,
    Xid,
    XLogRecPtr,
)

__all__ = [
    "DEFINITIONS",
    "Begin",
    "BeginPrepare",
    "Commit",
    "CommitPrepared",
    "Delete",
    "Insert",
    "Message",
    "Origin",
    "Prepare",
    "Relation",
    "RollbackPrepared",
    "StreamAbort",
    "StreamCommit",
    "StreamPrepare",
    "StreamStart",
    "StreamStop",
    "Truncate",
    "TupleData",
    "Type",
    "Update",
]

given: Final = Given(proto_version=1, in_stream=False, parallel=False)
"""The parameters, and what holds where one is left out."""

TupleData = FocusedSeq(
    "columns",
    "column_count" / SizeOf("columns", UInt16),
    "columns"
    / Counted(
        this.column_count,
        Valued(
            {
                "n": None,
                "u": m.UNCHANGED,
                "t": bytes,
                "b": m.Binary,
            },
            {
                "t": FocusedSeq(
                    "data",
                    "length" / SizeOf("data", UInt32),
                    "data" / Data(this.length),
                ),
                "b": FocusedSeq(
                    "data",
                    "length" / SizeOf("data", UInt32),
                    "data" / Data(this.length),
                ),
            },
        ),
    ),
)

Begin = given.layout(
    "tag" / Constant(b"B"),
    "final_lsn" / XLogRecPtr,
    "commit_time" / TimestampTz,
    "xid" / Xid,
    End,
)

Message = given.layout(
    "tag" / Constant(b"M"),
    "xid" / when((given.proto_version >= 2) & (given.in_stream), Xid),
    "flags" / Bits(UInt8, 0x1),
    "lsn" / XLogRecPtr,
    "prefix" / String,
    "content_length" / SizeOf("content", UInt32),
    "content" / Data(this.content_length),
    End,
)

Commit = given.layout(
    "tag" / Constant(b"C"),
    "flags" / Constant(b"\x00"),
    "commit_lsn" / XLogRecPtr,
    "end_lsn" / XLogRecPtr,
    "commit_time" / TimestampTz,
    End,
)

Origin = given.layout(
    "tag" / Constant(b"O"),
    "origin_lsn" / XLogRecPtr,
    "name" / String,
    End,
)

Relation = given.layout(
    "tag" / Constant(b"R"),
    "xid" / when((given.proto_version >= 2) & (given.in_stream), Xid),
    "relation_oid" / Oid,
    "namespace" / String,
    "name" / String,
    "replica_identity" / Letter("dnfi"),
    "column_count" / SizeOf("columns", UInt16),
    "columns"
    / Counted(
        this.column_count,
        Record(
            m.RelationColumn,
            Struct(
                "flags" / Bits(UInt8, 0x1),
                "name" / String,
                "type_oid" / Oid,
                "type_modifier" / SInt32,
            ),
        ),
    ),
    End,
)

Type = given.layout(
    "tag" / Constant(b"Y"),
    "xid" / when((given.proto_version >= 2) & (given.in_stream), Xid),
    "type_oid" / Oid,
    "namespace" / String,
    "name" / String,
    End,
)

Insert = given.layout(
    "tag" / Constant(b"I"),
    "xid" / when((given.proto_version >= 2) & (given.in_stream), Xid),
    "relation_oid" / Oid,
    "new_tag" / Constant(b"N"),
    "new" / TupleData,
    End,
)

Update = given.layout(
    "tag" / Constant(b"U"),
    "xid" / when((given.proto_version >= 2) & (given.in_stream), Xid),
    "relation_oid" / Oid,
    "old_kind" / Kind("KO", before=b"N"),
    "old" / Switch(this.old_kind, {"K": TupleData, "O": TupleData}, default=Absent),
    "new_tag" / Constant(b"N"),
    "new" / TupleData,
    End,
)

Delete = given.layout(
    "tag" / Constant(b"D"),
    "xid" / when((given.proto_version >= 2) & (given.in_stream), Xid),
    "relation_oid" / Oid,
    "old_kind" / Kind("KO"),
    "old" / Switch(this.old_kind, {"K": TupleData, "O": TupleData}, default=Absent),
    End,
)

Truncate = given.layout(
    "tag" / Constant(b"T"),
    "xid" / when((given.proto_version >= 2) & (given.in_stream), Xid),
    "relation_count" / SizeOf("relation_oids", UInt32),
    "options" / Bits(UInt8, 0x3),
    "relation_oids" / Counted(this.relation_count, Oid),
    End,
)

StreamStart = given.layout(
    Since(2),
    "tag" / Constant(b"S"),
    "xid" / Xid,
    "first_segment" / OneOf(UInt8, 0, 1),
    End,
)

StreamStop = given.layout(
    Since(2),
    "tag" / Constant(b"E"),
    End,
)

StreamCommit = given.layout(
    Since(2),
    "tag" / Constant(b"c"),
    "xid" / Xid,
    "flags" / Constant(b"\x00"),
    "commit_lsn" / XLogRecPtr,
    "end_lsn" / XLogRecPtr,
    "commit_time" / TimestampTz,
    End,
)

StreamAbort = given.layout(
    "tag" / Constant(b"A"),
    "xid" / Xid,
    "subxid" / Xid,
    "abort_lsn" / when((given.proto_version >= 4) & (given.parallel), XLogRecPtr),
    "abort_time" / when((given.proto_version >= 4) & (given.parallel), TimestampTz),
    End,
)

BeginPrepare = given.layout(
    "tag" / Constant(b"b"),
    "prepare_lsn" / XLogRecPtr,
    "end_lsn" / XLogRecPtr,
    "prepare_time" / TimestampTz,
    "xid" / Xid,
    "gid" / String,
    End,
)

Prepare = given.layout(
    "tag" / Constant(b"P"),
    "flags" / Constant(b"\x00"),
    "prepare_lsn" / XLogRecPtr,
    "end_lsn" / XLogRecPtr,
    "prepare_time" / TimestampTz,
    "xid" / Xid,
    "gid" / String,
    End,
)

CommitPrepared = given.layout(
    "tag" / Constant(b"K"),
    "flags" / Constant(b"\x00"),
    "commit_lsn" / XLogRecPtr,
    "end_lsn" / XLogRecPtr,
    "commit_time" / TimestampTz,
    "xid" / Xid,
    "gid" / String,
    End,
)

RollbackPrepared = given.layout(
    "tag" / Constant(b"r"),
    "flags" / Constant(b"\x00"),
    "prepare_end_lsn" / XLogRecPtr,
    "rollback_end_lsn" / XLogRecPtr,
    "prepare_time" / TimestampTz,
    "rollback_time" / TimestampTz,
    "xid" / Xid,
    "gid" / String,
    End,
)

StreamPrepare = given.layout(
    "tag" / Constant(b"p"),
    "flags" / Constant(b"\x00"),
    "prepare_lsn" / XLogRecPtr,
    "end_lsn" / XLogRecPtr,
    "prepare_time" / TimestampTz,
    "xid" / Xid,
    "gid" / String,
    End,
)

DEFINITIONS: Final[Mapping[type, Struct]] = {
    m.Begin: Begin,
    m.Message: Message,
    m.Commit: Commit,
    m.Origin: Origin,
    m.Relation: Relation,
    m.Type: Type,
    m.Insert: Insert,
    m.Update: Update,
    m.Delete: Delete,
    m.Truncate: Truncate,
    m.StreamStart: StreamStart,
    m.StreamStop: StreamStop,
    m.StreamCommit: StreamCommit,
    m.StreamAbort: StreamAbort,
    m.BeginPrepare: BeginPrepare,
    m.Prepare: Prepare,
    m.CommitPrepared: CommitPrepared,
    m.RollbackPrepared: RollbackPrepared,
    m.StreamPrepare: StreamPrepare,
}
"""The definition of each message class."""
