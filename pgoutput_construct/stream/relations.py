"""The relation cache: which Relation describes the rows of an OID, at this point of the stream."""

from pgoutput_construct.errors import ProtocolError
from pgoutput_construct.wire.messages import (
    PgoutputMessage,
    Relation,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
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
        self.stream_xid: int | None = None
        """The top-level xid of the stream that is open, None outside a stream."""

    def update(self, message: PgoutputMessage) -> None:
        """Take in the next message of the stream, whatever it is."""
        match message:
            case Relation():
                self._scope()[message.relation_oid] = message
            case Type():
                self.types[message.type_oid] = message
            case StreamStart():
                self.stream_xid = message.xid
                if message.first_segment:  # after a lost connection a stream begins anew
                    self.streams.pop(message.xid, None)
            case StreamStop():
                self.stream_xid = None
            case StreamCommit():
                self.shared.update(self.streams.pop(message.xid, {}))
            case StreamAbort() | StreamPrepare():
                self.streams.pop(message.xid, None)

    def get(self, relation_oid: int) -> Relation:
        """Return the Relation that describes an OID here; raise ProtocolError when none has been sent."""
        relation = self._scope().get(relation_oid)
        if relation is None:
            where = "" if self.stream_xid is None else f" in the stream of xid {self.stream_xid}"
            raise ProtocolError(
                f"no Relation has described the relation OID {relation_oid}{where}: "
                "read the stream from its start, or from the reconnection"
            )
        return relation

    def _scope(self) -> dict[int, Relation]:
        return self.shared if self.stream_xid is None else self.streams.setdefault(self.stream_xid, {})
