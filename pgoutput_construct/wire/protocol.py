# Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

"""Logical replication messages: versions, options, states, groups of messages, and names of bits and values."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum
from typing import Final, Literal, NamedTuple, TypeAlias, TypedDict

from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.spec_metadata import Bound, Option, OptionValue

__all__ = [
    "ASKED_BY",
    "BEGINS",
    "BOUNDS",
    "CHANGES",
    "DESCRIPTIONS",
    "ENDS",
    "LAID_OUT_BY_STATE",
    "OPTIONS",
    "PARAMETERS",
    "PROTOCOL_VERSIONS",
    "SINCE",
    "STATES",
    "TRANSITIONS",
    "UNREAD",
    "DeleteOldKind",
    "GivenOptions",
    "MessageFlags",
    "MoreOptions",
    "OriginOption",
    "ParseOptions",
    "RelationColumnFlags",
    "RelationReplicaIdentity",
    "ReplicationOptions",
    "StreamStartFirstSegment",
    "Streaming",
    "TruncateOptions",
    "UpdateOldKind",
]

PROTOCOL_VERSIONS: Final[Mapping[int, int]] = {
    1: 10,
    2: 14,
    3: 15,
    4: 16,
}
"""The protocol versions, each with the first PostgreSQL version that supports it."""

Streaming: TypeAlias = Literal["off", "on", "parallel"]
"""How transactions are sent that are still running."""

OriginOption: TypeAlias = Literal["any", "none"]
"""The origins whose changes are sent."""

OPTIONS: Final[Mapping[str, Option]] = {
    "proto_version": Option(1, {}, 10, "The protocol version.", 1),
    "publication_names": Option(None, {}, 10, "Names of publications, separated by commas.", 1),
    "binary": Option(
        False,
        {False: OptionValue(14, 1), True: OptionValue(14, 1, ())},
        14,
        "Whether values are sent in binary format, if their types have one.",
        1,
    ),
    "messages": Option(
        False, {False: OptionValue(14, 1), True: OptionValue(14, 1, ())}, 14, "Whether Message messages are sent.", 1
    ),
    "streaming": Option(
        "off",
        {"off": OptionValue(14, 1, ()), "on": OptionValue(14, 2, ()), "parallel": OptionValue(16, 4, ("parallel",))},
        14,
        "How transactions are sent that are still running.",
        2,
    ),
    "two_phase": Option(
        False,
        {False: OptionValue(15, 1), True: OptionValue(15, 3, ())},
        15,
        "Whether prepared transactions are sent at their PREPARE.",
        3,
    ),
    "origin": Option(
        "any",
        {"any": OptionValue(16, 1, ()), "none": OptionValue(16, 1, ())},
        16,
        "The origins whose changes are sent.",
        1,
    ),
}
"""The options of START_REPLICATION."""


class ParseOptions(NamedTuple):
    """What determines a message's layout besides its bytes; ``_asdict()`` returns the keywords of parse."""

    proto_version: int = 1
    """The protocol version."""
    streaming: Streaming = "off"
    """How transactions are sent that are still running."""
    in_stream: bool = False
    """A state: between Stream Start and Stream Stop."""


class MoreOptions(TypedDict, total=False):
    """Keywords of parse and build besides proto_version, streaming and in_stream: those of later versions."""


@dataclass(frozen=True, kw_only=True)
class ReplicationOptions:
    """The options of START_REPLICATION except the names of publications."""

    proto_version: int = 1
    """The protocol version."""
    binary: bool = False
    """Whether values are sent in binary format, if their types have one."""
    messages: bool = False
    """Whether Message messages are sent."""
    streaming: Streaming = "off"
    """How transactions are sent that are still running."""
    two_phase: bool = False
    """Whether prepared transactions are sent at their PREPARE."""
    origin: OriginOption = "any"
    """The origins whose changes are sent."""


@dataclass(frozen=True, kw_only=True, repr=False)
class GivenOptions:
    """The options of START_REPLICATION that a caller gives: None for one that is not given."""

    proto_version: int | None = None
    """The protocol version."""
    binary: bool | None = None
    """Whether values are sent in binary format, if their types have one."""
    messages: bool | None = None
    """Whether Message messages are sent."""
    streaming: Streaming | None = None
    """How transactions are sent that are still running."""
    two_phase: bool | None = None
    """Whether prepared transactions are sent at their PREPARE."""
    origin: OriginOption | None = None
    """The origins whose changes are sent."""


PARAMETERS: Final = ("proto_version", "in_stream", "parallel")
"""The parameters of the layouts, in the engines' order."""

STATES: Final[Mapping[str, frozenset[str]]] = {
    "idle": frozenset(),
    "transaction": frozenset(),
    "preparing": frozenset(),
    "stream": frozenset({"in_stream"}),
}
"""The states of a stream, the initial one first, each with the parameters that it sets."""

TRANSITIONS: Final[Mapping[type[m.PgoutputMessage], Mapping[str, str]]] = {
    m.Begin: {"idle": "transaction"},
    m.Message: {"idle": "idle", "transaction": "transaction", "preparing": "preparing", "stream": "stream"},
    m.Commit: {"transaction": "idle"},
    m.Origin: {"transaction": "transaction", "preparing": "preparing", "stream": "stream"},
    m.Relation: {"transaction": "transaction", "preparing": "preparing", "stream": "stream"},
    m.Type: {"transaction": "transaction", "preparing": "preparing", "stream": "stream"},
    m.Insert: {"transaction": "transaction", "preparing": "preparing", "stream": "stream"},
    m.Update: {"transaction": "transaction", "preparing": "preparing", "stream": "stream"},
    m.Delete: {"transaction": "transaction", "preparing": "preparing", "stream": "stream"},
    m.Truncate: {"transaction": "transaction", "preparing": "preparing", "stream": "stream"},
    m.StreamStart: {"idle": "stream"},
    m.StreamStop: {"stream": "idle"},
    m.StreamCommit: {"idle": "idle"},
    m.StreamAbort: {"idle": "idle"},
    m.BeginPrepare: {"idle": "preparing"},
    m.Prepare: {"idle": "idle", "preparing": "idle"},
    m.CommitPrepared: {"idle": "idle"},
    m.RollbackPrepared: {"idle": "idle"},
    m.StreamPrepare: {"idle": "idle"},
}
"""The states in which each message is permitted, each with the state that follows."""

CHANGES: Final[frozenset[type[m.PgoutputMessage]]] = frozenset({m.Insert, m.Update, m.Delete, m.Truncate})
"""The messages that change rows of tables."""

DESCRIPTIONS: Final[frozenset[type[m.PgoutputMessage]]] = frozenset({m.Relation, m.Type})
"""The messages that describe rows."""

BEGINS: Final[frozenset[type[m.PgoutputMessage]]] = frozenset({m.Begin, m.StreamStart, m.BeginPrepare})
"""The messages that open a transaction, or a segment of one."""

ENDS: Final[frozenset[type[m.PgoutputMessage]]] = frozenset(
    {
        m.Commit,
        m.StreamStop,
        m.StreamCommit,
        m.StreamAbort,
        m.Prepare,
        m.CommitPrepared,
        m.RollbackPrepared,
        m.StreamPrepare,
    }
)
"""The messages that end a transaction, or a segment of one."""

UNREAD: Final[frozenset[type[m.PgoutputMessage]]] = frozenset()
"""The messages that may change rows in a way that readers of tables do not know: they refuse a log with one."""

LAID_OUT_BY_STATE: Final[Mapping[type[m.PgoutputMessage], frozenset[str]]] = {
    m.Message: frozenset({"in_stream"}),
    m.Relation: frozenset({"in_stream"}),
    m.Type: frozenset({"in_stream"}),
    m.Insert: frozenset({"in_stream"}),
    m.Update: frozenset({"in_stream"}),
    m.Delete: frozenset({"in_stream"}),
    m.Truncate: frozenset({"in_stream"}),
}
"""The messages whose layout depends on the stream state, each with the parameters that it depends on."""

SINCE: Final[Mapping[type[m.PgoutputMessage], int]] = {
    m.StreamStart: 2,
    m.StreamStop: 2,
    m.StreamCommit: 2,
}
"""The first protocol version of each later message, except those that servers send in every version."""

ASKED_BY: Final[Mapping[type[m.PgoutputMessage], str]] = {
    m.StreamStart: "streaming",
}
"""The option that each optional message requires, except those that servers send in any case."""

BOUNDS: Final[Mapping[type[m.PgoutputMessage], Bound]] = {
    m.Begin: Bound("begin", {"lsn": ("final_lsn",), "time": ("commit_time",), "xid": ("xid",)}),
    m.Commit: Bound("commit", {"lsn": ("commit_lsn",), "end_lsn": ("end_lsn",), "time": ("commit_time",)}),
    m.StreamStart: Bound("begin_segment", {"xid": ("xid",), "first": ("first_segment",)}),
    m.StreamStop: Bound("end_segment", {}),
    m.StreamCommit: Bound(
        "commit_streamed", {"xid": ("xid",), "lsn": ("commit_lsn",), "end_lsn": ("end_lsn",), "time": ("commit_time",)}
    ),
    m.StreamAbort: Bound(
        "abort_streamed", {"xid": ("xid",), "subxid": ("subxid",), "lsn": ("abort_lsn",), "time": ("abort_time",)}
    ),
    m.BeginPrepare: Bound(
        "begin_prepared",
        {"lsn": ("prepare_lsn",), "end_lsn": ("end_lsn",), "time": ("prepare_time",), "xid": ("xid",), "gid": ("gid",)},
    ),
    m.Prepare: Bound(
        "prepare",
        {"lsn": ("prepare_lsn",), "end_lsn": ("end_lsn",), "time": ("prepare_time",), "xid": ("xid",), "gid": ("gid",)},
    ),
    m.CommitPrepared: Bound(
        "commit_prepared",
        {"lsn": ("commit_lsn",), "end_lsn": ("end_lsn",), "time": ("commit_time",), "xid": ("xid",), "gid": ("gid",)},
    ),
    m.RollbackPrepared: Bound(
        "rollback_prepared",
        {
            "lsn": ("prepare_end_lsn",),
            "end_lsn": ("rollback_end_lsn",),
            "time": ("rollback_time",),
            "xid": ("xid",),
            "gid": ("gid",),
        },
    ),
    m.StreamPrepare: Bound(
        "prepare_streamed",
        {"lsn": ("prepare_lsn",), "end_lsn": ("end_lsn",), "time": ("prepare_time",), "xid": ("xid",), "gid": ("gid",)},
    ),
}
"""The effect of each message that begins or ends a transaction, and its fields by role."""


class MessageFlags(IntFlag):
    """Bit 1 is set when the message belongs to a transaction."""

    TRANSACTIONAL = 1


class RelationReplicaIdentity(StrEnum):
    """Replica identity setting, as relreplident in pg_class."""

    DEFAULT = "d"
    NOTHING = "n"
    FULL = "f"
    INDEX = "i"


class UpdateOldKind(StrEnum):
    """The row before the change: the whole row, or its key where that changed or is TOASTed, or nothing."""

    KEY = "K"
    ROW = "O"


class DeleteOldKind(StrEnum):
    """The removed row: whole, or its key."""

    KEY = "K"
    ROW = "O"


class TruncateOptions(IntFlag):
    """Bit 1 for CASCADE, bit 2 for RESTART IDENTITY."""

    CASCADE = 1
    RESTART_IDENTITY = 2


class StreamStartFirstSegment(IntEnum):
    """1 for the transaction's first segment and 0 for the others."""

    LATER_SEGMENT = 0
    FIRST_SEGMENT = 1


class RelationColumnFlags(IntFlag):
    """Bit 1 is set when the column is part of the replica identity."""

    KEY = 1
