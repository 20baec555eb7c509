# Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

"""Logical replication messages: the construct definitions, which parse and build.

Every parse and build takes the parameters as keywords: proto_version (int), in_stream (bool), parallel (bool).
Source: PostgreSQL's documentation, protocol-logicalrep-message-formats.
"""

from collections.abc import Mapping
from typing import Final

from construct import FocusedSeq, Struct, Switch, this

from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.parameters import ParameterDefaults
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
from pgoutput_construct.wire.structures import (
    Counted,
    Kind,
    Record,
    SizeOf,
    Valued,
    when,
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

parameters: Final = ParameterDefaults(proto_version=1, in_stream=False, parallel=False)
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

Begin = parameters.definition(
    "tag" / Constant(b"B"),
    "final_lsn" / XLogRecPtr,
    "commit_time" / TimestampTz,
    "xid" / Xid,
    End,
)

Message = parameters.definition(
    "tag" / Constant(b"M"),
    "xid" / when((parameters.proto_version >= 2) & (parameters.in_stream), Xid),
    "flags" / Bits(UInt8, 0x1),
    "lsn" / XLogRecPtr,
    "prefix" / String,
    "content_length" / SizeOf("content", UInt32),
    "content" / Data(this.content_length),
    End,
)

Commit = parameters.definition(
    "tag" / Constant(b"C"),
    "flags" / Constant(b"\x00"),
    "commit_lsn" / XLogRecPtr,
    "end_lsn" / XLogRecPtr,
    "commit_time" / TimestampTz,
    End,
)

Origin = parameters.definition(
    "tag" / Constant(b"O"),
    "origin_lsn" / XLogRecPtr,
    "name" / String,
    End,
)

Relation = parameters.definition(
    "tag" / Constant(b"R"),
    "xid" / when((parameters.proto_version >= 2) & (parameters.in_stream), Xid),
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

Type = parameters.definition(
    "tag" / Constant(b"Y"),
    "xid" / when((parameters.proto_version >= 2) & (parameters.in_stream), Xid),
    "type_oid" / Oid,
    "namespace" / String,
    "name" / String,
    End,
)

Insert = parameters.definition(
    "tag" / Constant(b"I"),
    "xid" / when((parameters.proto_version >= 2) & (parameters.in_stream), Xid),
    "relation_oid" / Oid,
    "new_tag" / Constant(b"N"),
    "new" / TupleData,
    End,
)

Update = parameters.definition(
    "tag" / Constant(b"U"),
    "xid" / when((parameters.proto_version >= 2) & (parameters.in_stream), Xid),
    "relation_oid" / Oid,
    "old_kind" / Kind("KO", before=b"N"),
    "old" / Switch(this.old_kind, {"K": TupleData, "O": TupleData}, default=Absent),
    "new_tag" / Constant(b"N"),
    "new" / TupleData,
    End,
)

Delete = parameters.definition(
    "tag" / Constant(b"D"),
    "xid" / when((parameters.proto_version >= 2) & (parameters.in_stream), Xid),
    "relation_oid" / Oid,
    "old_kind" / Kind("KO"),
    "old" / Switch(this.old_kind, {"K": TupleData, "O": TupleData}, default=Absent),
    End,
)

Truncate = parameters.definition(
    "tag" / Constant(b"T"),
    "xid" / when((parameters.proto_version >= 2) & (parameters.in_stream), Xid),
    "relation_count" / SizeOf("relation_oids", UInt32),
    "options" / Bits(UInt8, 0x3),
    "relation_oids" / Counted(this.relation_count, Oid),
    End,
)

StreamStart = parameters.definition(
    Since(2),
    "tag" / Constant(b"S"),
    "xid" / Xid,
    "first_segment" / OneOf(UInt8, 0, 1),
    End,
)

StreamStop = parameters.definition(
    Since(2),
    "tag" / Constant(b"E"),
    End,
)

StreamCommit = parameters.definition(
    Since(2),
    "tag" / Constant(b"c"),
    "xid" / Xid,
    "flags" / Constant(b"\x00"),
    "commit_lsn" / XLogRecPtr,
    "end_lsn" / XLogRecPtr,
    "commit_time" / TimestampTz,
    End,
)

StreamAbort = parameters.definition(
    "tag" / Constant(b"A"),
    "xid" / Xid,
    "subxid" / Xid,
    "abort_lsn" / when((parameters.proto_version >= 4) & (parameters.parallel), XLogRecPtr),
    "abort_time" / when((parameters.proto_version >= 4) & (parameters.parallel), TimestampTz),
    End,
)

BeginPrepare = parameters.definition(
    "tag" / Constant(b"b"),
    "prepare_lsn" / XLogRecPtr,
    "end_lsn" / XLogRecPtr,
    "prepare_time" / TimestampTz,
    "xid" / Xid,
    "gid" / String,
    End,
)

Prepare = parameters.definition(
    "tag" / Constant(b"P"),
    "flags" / Constant(b"\x00"),
    "prepare_lsn" / XLogRecPtr,
    "end_lsn" / XLogRecPtr,
    "prepare_time" / TimestampTz,
    "xid" / Xid,
    "gid" / String,
    End,
)

CommitPrepared = parameters.definition(
    "tag" / Constant(b"K"),
    "flags" / Constant(b"\x00"),
    "commit_lsn" / XLogRecPtr,
    "end_lsn" / XLogRecPtr,
    "commit_time" / TimestampTz,
    "xid" / Xid,
    "gid" / String,
    End,
)

RollbackPrepared = parameters.definition(
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

StreamPrepare = parameters.definition(
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
