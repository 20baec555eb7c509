# Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

"""Logical replication messages: the message classes, fields in wire order.

Constants, counts and lengths are on the wire and not here; what is absent on the wire is None.
Source: PostgreSQL's documentation, protocol-logicalrep-message-formats.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

from pgoutput_construct.wire.types import (
    REQUIRED,
    FormattedBytes,
    Lsn,
    Marker,
    Timestamp,
    require,
)

__all__ = [
    "UNCHANGED",
    "Begin",
    "BeginPrepare",
    "Binary",
    "Commit",
    "CommitPrepared",
    "Delete",
    "Insert",
    "Message",
    "Origin",
    "PgoutputMessage",
    "Prepare",
    "Relation",
    "RelationColumn",
    "RollbackPrepared",
    "StreamAbort",
    "StreamCommit",
    "StreamPrepare",
    "StreamStart",
    "StreamStop",
    "Truncate",
    "TupleData",
    "Type",
    "Unchanged",
    "Update",
]


class Unchanged(Marker):
    """An unchanged TOASTed value, which is not sent."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
"""An unchanged TOASTed value, which is not sent."""


class Binary(FormattedBytes):
    """The value as binary, by its type's send function; under the option binary."""

    __slots__ = ()


VALUES: Final[Mapping[str, object]] = {
    "null": None,
    "unchanged": UNCHANGED,
    "text": bytes,
    "binary": Binary,
}
"""The Python type of each kind of value: a constant, or a class of bytes."""

VALUE_TAGS: Final[Mapping[str, int]] = {
    "null": 0x6E,
    "unchanged": 0x75,
    "text": 0x74,
    "binary": 0x62,
}
"""The tag of each kind of value on the wire."""

FORMS: Final[Mapping[str, str]] = {
    "text": "text",
    "binary": "binary",
}
"""The kinds of values whose bytes are in text or binary format; those of other kinds are in neither."""

TupleData: TypeAlias = tuple[Unchanged | bytes | Binary | None, ...]
"""The values of one row, or of its key."""


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """One published column of the table.

    Attributes:
        flags: Bit 1 is set when the column is part of the replica identity.
        name: Name of the column.
        type_oid: OID of the column's type.
        type_modifier: Type modifier, as atttypmod in pg_attribute; -1 for none.
    """

    flags: int
    name: str
    type_oid: int
    type_modifier: int


@dataclass(frozen=True, slots=True)
class Begin:
    """Opens a transaction that has committed; its changes follow.

    Source: protocol-logicalrep-message-formats, Begin.
    PostgreSQL 10 and newer.

    Attributes:
        final_lsn: LSN of the commit record, the same as Commit's commit_lsn.
        commit_time: Time of the commit, in microseconds since 2000-01-01 UTC.
        xid: Transaction ID.
    """

    TAG = b"B"

    final_lsn: Lsn
    commit_time: Timestamp
    xid: int


@dataclass(frozen=True, slots=True)
class Message:
    """A message written by pg_logical_emit_message(), sent when the option messages is on.

    Source: protocol-logicalrep-message-formats, Message.
    PostgreSQL 14 and newer.

    Attributes:
        xid: Top-level transaction ID, present only inside a stream.
        flags: Bit 1 is set when the message belongs to a transaction.
        lsn: LSN of the message.
        prefix: Prefix given by the writer.
        content: Content given by the writer, never converted to the client's encoding.
    """

    TAG = b"M"

    xid: int | None = None
    flags: int = REQUIRED
    lsn: Lsn = REQUIRED
    prefix: str = REQUIRED
    content: bytes = REQUIRED

    def __post_init__(self) -> None:
        require(self, "flags", "lsn", "prefix", "content")

    if TYPE_CHECKING:  # what a default would hide: these fields have none

        @overload
        def __init__(self, xid: int | None, flags: int, lsn: Lsn, prefix: str, content: bytes) -> None: ...
        @overload
        def __init__(self, *, xid: int | None = None, flags: int, lsn: Lsn, prefix: str, content: bytes) -> None: ...
        def __init__(self, *args: Any, **given: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Commit:
    """Ends a transaction.

    Source: protocol-logicalrep-message-formats, Commit.
    PostgreSQL 10 and newer.

    Attributes:
        commit_lsn: LSN at which the commit record starts.
        end_lsn: LSN after the commit record: the position to confirm.
        commit_time: Time of the commit, in microseconds since 2000-01-01 UTC.
    """

    TAG = b"C"

    commit_lsn: Lsn
    end_lsn: Lsn
    commit_time: Timestamp


@dataclass(frozen=True, slots=True)
class Origin:
    """Names the replication origin of the transaction that has just begun.

    Source: protocol-logicalrep-message-formats, Origin.
    PostgreSQL 10 and newer.

    Attributes:
        origin_lsn: LSN of the transaction's commit on its origin, 0/0 inside a stream.
        name: Name of the origin.
    """

    TAG = b"O"

    origin_lsn: Lsn
    name: str


@dataclass(frozen=True, slots=True)
class Relation:
    """Describes a table before its first change.

    Source: protocol-logicalrep-message-formats, Relation.
    PostgreSQL 10 and newer.

    Attributes:
        xid: Transaction or subtransaction ID, present only inside a stream.
        relation_oid: OID of the table.
        namespace: Schema of the table, empty for pg_catalog.
        name: Name of the table.
        replica_identity: Replica identity setting, as relreplident in pg_class.
        columns: One published column of the table.
    """

    TAG = b"R"

    xid: int | None = None
    relation_oid: int = REQUIRED
    namespace: str = REQUIRED
    name: str = REQUIRED
    replica_identity: str = REQUIRED
    columns: tuple[RelationColumn, ...] = REQUIRED

    def __post_init__(self) -> None:
        require(self, "relation_oid", "namespace", "name", "replica_identity", "columns")

    if TYPE_CHECKING:  # what a default would hide: these fields have none

        @overload
        def __init__(
            self,
            xid: int | None,
            relation_oid: int,
            namespace: str,
            name: str,
            replica_identity: str,
            columns: tuple[RelationColumn, ...],
        ) -> None: ...
        @overload
        def __init__(
            self,
            *,
            xid: int | None = None,
            relation_oid: int,
            namespace: str,
            name: str,
            replica_identity: str,
            columns: tuple[RelationColumn, ...],
        ) -> None: ...
        def __init__(self, *args: Any, **given: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Type:
    """Names a type that is not built in, before the Relation that uses it.

    Source: protocol-logicalrep-message-formats, Type.
    PostgreSQL 10 and newer.

    Attributes:
        xid: Transaction or subtransaction ID, present only inside a stream.
        type_oid: OID of the type.
        namespace: Schema of the type, empty for pg_catalog.
        name: Name of the type; for a domain, of its base type.
    """

    TAG = b"Y"

    xid: int | None = None
    type_oid: int = REQUIRED
    namespace: str = REQUIRED
    name: str = REQUIRED

    def __post_init__(self) -> None:
        require(self, "type_oid", "namespace", "name")

    if TYPE_CHECKING:  # what a default would hide: these fields have none

        @overload
        def __init__(self, xid: int | None, type_oid: int, namespace: str, name: str) -> None: ...
        @overload
        def __init__(self, *, xid: int | None = None, type_oid: int, namespace: str, name: str) -> None: ...
        def __init__(self, *args: Any, **given: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row.

    Source: protocol-logicalrep-message-formats, Insert.
    PostgreSQL 10 and newer.

    Attributes:
        xid: Transaction or subtransaction ID, present only inside a stream.
        relation_oid: OID of a table that a Relation has described.
        new: Values of the new row, in the order of the Relation's columns.
    """

    TAG = b"I"

    xid: int | None = None
    relation_oid: int = REQUIRED
    new: TupleData = REQUIRED

    def __post_init__(self) -> None:
        require(self, "relation_oid", "new")

    if TYPE_CHECKING:  # what a default would hide: these fields have none

        @overload
        def __init__(self, xid: int | None, relation_oid: int, new: TupleData) -> None: ...
        @overload
        def __init__(self, *, xid: int | None = None, relation_oid: int, new: TupleData) -> None: ...
        def __init__(self, *args: Any, **given: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Update:
    """A changed row.

    Source: protocol-logicalrep-message-formats, Update.
    PostgreSQL 10 and newer.

    Attributes:
        xid: Transaction or subtransaction ID, present only inside a stream.
        relation_oid: OID of a table that a Relation has described.
        old_kind: What old is: K (key), O (row).
        old: The row before the change: the whole row, or its key where that changed or is TOASTed, or nothing.
        new: Values of the new row, in the order of the Relation's columns.
    """

    TAG = b"U"

    xid: int | None = None
    relation_oid: int = REQUIRED
    old_kind: str | None = None
    old: TupleData | None = None
    new: TupleData = REQUIRED

    def __post_init__(self) -> None:
        require(self, "relation_oid", "new")

    if TYPE_CHECKING:  # what a default would hide: these fields have none

        @overload
        def __init__(
            self, xid: int | None, relation_oid: int, old_kind: str | None, old: TupleData | None, new: TupleData
        ) -> None: ...
        @overload
        def __init__(
            self,
            *,
            xid: int | None = None,
            relation_oid: int,
            old_kind: str | None = None,
            old: TupleData | None = None,
            new: TupleData,
        ) -> None: ...
        @overload
        def __init__(
            self,
            xid: int | None,
            relation_oid: int,
            *,
            old_kind: str | None = None,
            old: TupleData | None = None,
            new: TupleData,
        ) -> None: ...
        @overload
        def __init__(
            self,
            xid: int | None,
            relation_oid: int,
            old_kind: str | None,
            *,
            old: TupleData | None = None,
            new: TupleData,
        ) -> None: ...
        def __init__(self, *args: Any, **given: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Delete:
    """A removed row.

    Source: protocol-logicalrep-message-formats, Delete.
    PostgreSQL 10 and newer.

    Attributes:
        xid: Transaction or subtransaction ID, present only inside a stream.
        relation_oid: OID of a table that a Relation has described.
        old_kind: What old is: K (key), O (row).
        old: The removed row: whole, or its key.
    """

    TAG = b"D"

    xid: int | None = None
    relation_oid: int = REQUIRED
    old_kind: str = REQUIRED
    old: TupleData = REQUIRED

    def __post_init__(self) -> None:
        require(self, "relation_oid", "old_kind", "old")

    if TYPE_CHECKING:  # what a default would hide: these fields have none

        @overload
        def __init__(self, xid: int | None, relation_oid: int, old_kind: str, old: TupleData) -> None: ...
        @overload
        def __init__(self, *, xid: int | None = None, relation_oid: int, old_kind: str, old: TupleData) -> None: ...
        def __init__(self, *args: Any, **given: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables emptied by one TRUNCATE.

    Source: protocol-logicalrep-message-formats, Truncate.
    PostgreSQL 11 and newer.

    Attributes:
        xid: Transaction or subtransaction ID, present only inside a stream.
        options: Bit 1 for CASCADE, bit 2 for RESTART IDENTITY.
        relation_oids: One emptied table.
    """

    TAG = b"T"

    xid: int | None = None
    options: int = REQUIRED
    relation_oids: tuple[int, ...] = REQUIRED

    def __post_init__(self) -> None:
        require(self, "options", "relation_oids")

    if TYPE_CHECKING:  # what a default would hide: these fields have none

        @overload
        def __init__(self, xid: int | None, options: int, relation_oids: tuple[int, ...]) -> None: ...
        @overload
        def __init__(self, *, xid: int | None = None, options: int, relation_oids: tuple[int, ...]) -> None: ...
        def __init__(self, *args: Any, **given: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Opens one segment of a transaction that is still running.

    Source: protocol-logicalrep-message-formats, Stream Start.
    PostgreSQL 14 and newer, protocol version 2 and newer.

    Attributes:
        xid: Top-level transaction ID.
        first_segment: 1 for the transaction's first segment and 0 for the others.
    """

    TAG = b"S"

    xid: int
    first_segment: int


@dataclass(frozen=True, slots=True)
class StreamStop:
    """Ends a segment; others may follow.

    Source: protocol-logicalrep-message-formats, Stream Stop.
    PostgreSQL 14 and newer, protocol version 2 and newer.
    """

    TAG = b"E"


@dataclass(frozen=True, slots=True)
class StreamCommit:
    """Commits a streamed transaction.

    Source: protocol-logicalrep-message-formats, Stream Commit.
    PostgreSQL 14 and newer, protocol version 2 and newer.

    Attributes:
        xid: Top-level transaction ID.
        commit_lsn: LSN at which the commit record starts.
        end_lsn: LSN after the commit record: the position to confirm.
        commit_time: Time of the commit, in microseconds since 2000-01-01 UTC.
    """

    TAG = b"c"

    xid: int
    commit_lsn: Lsn
    end_lsn: Lsn
    commit_time: Timestamp


@dataclass(frozen=True, slots=True)
class StreamAbort:
    """Rolls back a streamed transaction or one of its subtransactions.

    Source: protocol-logicalrep-message-formats, Stream Abort.
    PostgreSQL 14 and newer, protocol version 2 and newer.

    Attributes:
        xid: Top-level transaction ID.
        subxid: ID of the transaction that is rolled back: a subtransaction, or the top-level transaction itself.
        abort_lsn: LSN after the abort record, 0/0 for a transaction lost in a crash.
        abort_time: Time of the abort, in microseconds since 2000-01-01 UTC.
    """

    TAG = b"A"

    xid: int
    subxid: int
    abort_lsn: Lsn | None = None
    abort_time: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class BeginPrepare:
    """Opens a transaction that has been prepared; its changes follow.

    Source: protocol-logicalrep-message-formats, Begin Prepare.
    PostgreSQL 15 and newer, protocol version 3 and newer.

    Attributes:
        prepare_lsn: LSN at which the prepare record starts.
        end_lsn: LSN after the prepare record.
        prepare_time: Time of the prepare, in microseconds since 2000-01-01 UTC.
        xid: Transaction ID.
        gid: Name given in PREPARE TRANSACTION.
    """

    TAG = b"b"

    prepare_lsn: Lsn
    end_lsn: Lsn
    prepare_time: Timestamp
    xid: int
    gid: str


@dataclass(frozen=True, slots=True)
class Prepare:
    """Ends the changes of a prepared transaction; without any, PostgreSQL 18 sends no Begin Prepare.

    Source: protocol-logicalrep-message-formats, Prepare.
    PostgreSQL 15 and newer, protocol version 3 and newer.

    Attributes:
        prepare_lsn: LSN at which the prepare record starts.
        end_lsn: LSN after the prepare record: the position to confirm.
        prepare_time: Time of the prepare, in microseconds since 2000-01-01 UTC.
        xid: Transaction ID.
        gid: Name given in PREPARE TRANSACTION.
    """

    TAG = b"P"

    prepare_lsn: Lsn
    end_lsn: Lsn
    prepare_time: Timestamp
    xid: int
    gid: str


@dataclass(frozen=True, slots=True)
class CommitPrepared:
    """Commits a transaction that was prepared earlier.

    Source: protocol-logicalrep-message-formats, Commit Prepared.
    PostgreSQL 15 and newer, protocol version 3 and newer.

    Attributes:
        commit_lsn: LSN at which the commit record starts.
        end_lsn: LSN after the commit record: the position to confirm.
        commit_time: Time of the commit, in microseconds since 2000-01-01 UTC.
        xid: Transaction ID.
        gid: Name given in PREPARE TRANSACTION.
    """

    TAG = b"K"

    commit_lsn: Lsn
    end_lsn: Lsn
    commit_time: Timestamp
    xid: int
    gid: str


@dataclass(frozen=True, slots=True)
class RollbackPrepared:
    """Rolls back a transaction that was prepared earlier.

    Source: protocol-logicalrep-message-formats, Rollback Prepared.
    PostgreSQL 15 and newer, protocol version 3 and newer.

    Attributes:
        prepare_end_lsn: LSN after the prepare record, which tells whether that prepare was received.
        rollback_end_lsn: LSN after the rollback record: the position to confirm.
        prepare_time: Time of the prepare, in microseconds since 2000-01-01 UTC.
        rollback_time: Time of the rollback, in microseconds since 2000-01-01 UTC.
        xid: Transaction ID.
        gid: Name given in PREPARE TRANSACTION.
    """

    TAG = b"r"

    prepare_end_lsn: Lsn
    rollback_end_lsn: Lsn
    prepare_time: Timestamp
    rollback_time: Timestamp
    xid: int
    gid: str


@dataclass(frozen=True, slots=True)
class StreamPrepare:
    """Ends a streamed transaction that has been prepared.

    Source: protocol-logicalrep-message-formats, Stream Prepare.
    PostgreSQL 15 and newer, protocol version 3 and newer.

    Attributes:
        prepare_lsn: LSN at which the prepare record starts.
        end_lsn: LSN after the prepare record: the position to confirm.
        prepare_time: Time of the prepare, in microseconds since 2000-01-01 UTC.
        xid: Top-level transaction ID.
        gid: Name given in PREPARE TRANSACTION.
    """

    TAG = b"p"

    prepare_lsn: Lsn
    end_lsn: Lsn
    prepare_time: Timestamp
    xid: int
    gid: str


PgoutputMessage: TypeAlias = (
    Begin
    | Message
    | Commit
    | Origin
    | Relation
    | Type
    | Insert
    | Update
    | Delete
    | Truncate
    | StreamStart
    | StreamStop
    | StreamCommit
    | StreamAbort
    | BeginPrepare
    | Prepare
    | CommitPrepared
    | RollbackPrepared
    | StreamPrepare
)
"""Any of the messages."""

BY_TAG: Final[Mapping[bytes, type[PgoutputMessage]]] = {
    b"B": Begin,
    b"M": Message,
    b"C": Commit,
    b"O": Origin,
    b"R": Relation,
    b"Y": Type,
    b"I": Insert,
    b"U": Update,
    b"D": Delete,
    b"T": Truncate,
    b"S": StreamStart,
    b"E": StreamStop,
    b"c": StreamCommit,
    b"A": StreamAbort,
    b"b": BeginPrepare,
    b"P": Prepare,
    b"K": CommitPrepared,
    b"r": RollbackPrepared,
    b"p": StreamPrepare,
}
"""The class of each first byte."""
