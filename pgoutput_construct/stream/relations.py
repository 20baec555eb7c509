"""The relation cache: which Relation describes the rows of an OID, at this point of the stream."""

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.wire.messages import (
    PgoutputMessage,
    Relation,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    Type,
)

__all__ = ["RelationCache"]


class RelationCache:
    """Relations by OID, replaced as Relation messages arrive; types by OID, as Type messages name them.

    A streamed transaction has relations of its own: PostgreSQL sends each once per relation and top-level
    transaction (maybe_send_schema()), because the table may look different inside it. When the transaction
    commits they count for everyone; when it or a subtransaction of it aborts, PostgreSQL forgets having sent them
    (cleanup_rel_sync_cache()) and so do we; after Stream Prepare PostgreSQL sends them again as well.
    """

    def __init__(self) -> None:
        self.shared: dict[int, Relation] = {}
        self.streams: dict[int, dict[int, Relation]] = {}
        self.types: dict[int, Type] = {}

    def update(self, message: PgoutputMessage, stream_xid: int | None = None) -> None:
        """Take in the next message; ``stream_xid`` is the top-level xid of the open stream, None outside."""
        match message:
            case Relation():
                self._scope(stream_xid)[message.relation_oid] = message
            case Type():
                self.types[message.type_oid] = message
            case StreamCommit():
                self.shared.update(self.streams.pop(message.xid, {}))
            case StreamAbort() | StreamPrepare():
                self.streams.pop(message.xid, None)

    def get(self, relation_oid: int, stream_xid: int | None = None) -> Relation:
        """Return the Relation that describes an OID here; raise ProtocolError when none has been sent."""
        relation = self._scope(stream_xid).get(relation_oid)
        if relation is None:
            where = "" if stream_xid is None else f" in the stream of xid {stream_xid}"
            raise ProtocolError(
                f"no Relation has described the relation OID {relation_oid}{where}: "
                "read the stream from its start, or from the reconnection"
            )
        return relation

    def _scope(self, stream_xid: int | None) -> dict[int, Relation]:
        return self.shared if stream_xid is None else self.streams.setdefault(stream_xid, {})
