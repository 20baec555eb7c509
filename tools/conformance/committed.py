"""Gathers the messages of a stream until they commit, as PostgreSQL's apply worker does."""

from collections.abc import Iterator
from typing import Any

import pgoutput_construct as pgo
from pgoutput_construct.errors import ProtocolError

__all__ = ["TransactionAssembler"]


class TransactionAssembler:
    """Takes messages in order, and returns the lines of what has committed."""

    def __init__(self) -> None:
        self._prepared: dict[str, list[tuple[int | None, Any]]] = {}
        self.reconnected()

    def reconnected(self) -> None:
        """Forget what belongs to a connection: what was not committed comes again."""
        self.in_stream: int | None = None
        """The xid of the stream that is open."""
        self._relations: dict[int, Any] = {}
        self._open: list[tuple[int | None, Any]] | None = None
        self._begin: Any = None
        self._streams: dict[int, list[tuple[int | None, Any]]] = {}

    def take(self, message: Any) -> list[dict[str, Any]]:
        """Take a message; return the lines of the transaction that it commits; raise ProtocolError."""
        match message:
            case pgo.Begin() | pgo.BeginPrepare():
                if not (message.final_lsn if isinstance(message, pgo.Begin) else message.prepare_lsn):
                    raise ProtocolError("a Begin without an LSN")
                self._begin, self._open = message, []
            case pgo.Commit():
                return self._lines(self._ended(message.commit_lsn, "final_lsn"), message.end_lsn)
            case pgo.Prepare():
                self._prepare(message.gid, self._ended(message.prepare_lsn, "prepare_lsn"))
            case pgo.CommitPrepared():
                return self._lines(self._prepared.pop(message.gid, []), message.end_lsn)
            case pgo.RollbackPrepared():
                self._prepared.pop(message.gid, None)
            case pgo.Message() if not message.flags & 1:
                return [_logical(None, message)]
            case pgo.Origin() | pgo.Type():
                pass
            case pgo.StreamStart() | pgo.StreamStop() | pgo.StreamCommit() | pgo.StreamAbort() | pgo.StreamPrepare():
                return self._stream(message)
            case _:
                self._keep(message)
        return []

    def _stream(self, message: Any) -> list[dict[str, Any]]:
        if isinstance(message, pgo.StreamStop) == (self.in_stream is None):
            raise ProtocolError(
                f"{type(message).__name__} {'outside' if self.in_stream is None else 'inside'} of a stream"
            )
        match message:
            case pgo.StreamStart():
                if not message.xid:
                    raise ProtocolError("a stream without an xid")
                self.in_stream = message.xid
                if message.first_segment:
                    self._streams[message.xid] = []
            case pgo.StreamStop():
                self.in_stream = None
            case pgo.StreamCommit():
                return self._lines(self._streams.pop(message.xid, []), message.end_lsn)
            case pgo.StreamPrepare():
                self._prepare(message.gid, self._streams.pop(message.xid, []))
            case pgo.StreamAbort() if message.xid == message.subxid:
                self._streams.pop(message.xid, None)
            case pgo.StreamAbort():
                kept = [each for each in self._streams.get(message.xid, []) if each[0] != message.subxid]
                self._streams[message.xid] = kept
        return []

    def _prepare(self, gid: str, changes: list[tuple[int | None, Any]]) -> None:
        """Keep what is prepared with what describes it: a later connection may have the Commit Prepared alone."""
        self._prepared[gid] = [*((None, each) for each in self._relations.values()), *changes]

    def _ended(self, lsn: int, name: str) -> list[tuple[int | None, Any]]:
        changes, self._open = self._open, None
        if changes is None or lsn != getattr(self._begin, name, None):
            raise ProtocolError("the end of a transaction is not that of its beginning")
        return changes

    def _keep(self, message: Any) -> None:
        if self.in_stream is not None:
            if not message.xid:
                raise ProtocolError("a change without an xid in a stream")
            self._streams.setdefault(self.in_stream, []).append((message.xid, message))
            return
        if isinstance(message, pgo.Relation):
            self._relations[message.relation_oid] = message
        elif self._open is None:
            raise ProtocolError(f"{type(message).__name__} outside of a transaction")
        if self._open is not None:
            self._open.append((None, message))

    def _lines(self, changes: list[tuple[int | None, Any]], end: int) -> list[dict[str, Any]]:
        return [line for _, message in changes for line in self._line(str(pgo.Lsn(end)), message)]

    def _line(self, transaction: str, message: Any) -> Iterator[dict[str, Any]]:
        if isinstance(message, pgo.Relation):
            self._relations[message.relation_oid] = message
        elif isinstance(message, pgo.Message):
            yield _logical(transaction, message)
        elif isinstance(message, pgo.Truncate):
            for oid in message.relation_oids:
                yield {"transaction": transaction, "table": _name(self._relations[oid]), "operation": "truncate"}
        else:
            relation = self._relations[message.relation_oid]
            said = {"transaction": transaction, "table": _name(relation), "operation": type(message).__name__.lower()}
            is_key = getattr(message, "old_kind", None) == "K"
            rows = {
                name: _row(relation, getattr(message, name, None), is_key and name == "old") for name in ("new", "old")
            }
            yield {**said, **rows}


def _logical(transaction: str | None, message: Any) -> dict[str, Any]:
    try:
        content = message.content.decode("utf-8")
    except UnicodeDecodeError:
        content = f"\\x{message.content.hex()}"
    return {"transaction": transaction, "operation": "message", "prefix": message.prefix, "content": content}


def _name(relation: Any) -> str:
    return f"{relation.namespace or 'pg_catalog'}.{relation.name}"


def _row(relation: Any, values: Any, is_key: bool) -> dict[str, Any] | None:
    if values is None:
        return None
    pairs = zip(relation.columns, values, strict=True)
    return {
        column.name: _value(value)
        for column, value in pairs
        if value is not pgo.UNCHANGED and (column.flags & 1 or not is_key)
    }


def _value(value: Any) -> Any:
    if isinstance(value, pgo.Binary):
        return {"binary": value.hex()}
    return None if value is None else value.decode("utf-8", "surrogateescape")
