"""A small client that does everything right, with a method for each thing that one can do wrong.

It is written for this: the wrong clients of ``proofs`` are subclasses of it. It reads messages with our parser, and
everything around them by hand, as PostgreSQL's apply worker does.
"""

import json
import socket
import struct
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pgoutput_construct as pgo
from pgoutput_construct.conformance import ClientTask, ConformanceClient, RunningClient
from pgoutput_construct.wire import Lsn

__all__ = ["ModelClient", "Refused", "ThreadClient"]

_TRANSIENT = ("57P01", "57P03", "55006", "53300")
"""SQLSTATEs after which it connects again."""
_STARTED, _PASSWORD, _SASL, _SASL_MORE, _SASL_END = 0, 3, 10, 11, 12

Spooled = tuple[int | None, Any]
"""A message, and the xid of the subtransaction that made it where it was streamed."""


class Refused(Exception):  # noqa: N818 - the client does what it should
    """Something that the client does not accept."""


class Lost(Exception):  # noqa: N818 - the client connects again
    """The connection is lost."""


class ModelClient:
    """Reads a slot, and reports what was committed."""

    def __init__(self, task: ClientTask, report: Callable[[dict[str, Any]], None], is_stopped: threading.Event) -> None:
        self.task = task
        self.report = report
        self.is_stopped = is_stopped
        self.options = dict(task.options)
        self.stored = Lsn(0)
        """The end of the last transaction that was reported: what a client stores along with its changes."""
        self.prepared: dict[str, list[Spooled]] = {}
        """What is prepared, by gid: stored durably, too."""
        self.number = 0
        self.socket = socket.socket()
        self.reset()

    def reset(self) -> None:
        """Forget what belongs to a connection."""
        self.relations: dict[int, Any] = {}
        self.open: list[Spooled] | None = None
        """The changes since Begin or Begin Prepare; None outside of transactions."""
        self.begin: Any = None
        self.streams: dict[int, list[Spooled]] = {}
        self.in_stream: int | None = None
        """The xid of the stream between Stream Start and Stream Stop."""
        self.told = Lsn(0)
        """The LSN of the last keepalive."""
        self.received = b""

    def run(self) -> None:
        """Read until it is stopped; raise Refused for what it does not accept."""
        while not self.is_stopped.is_set():
            try:
                self.connect()
                while not self.is_stopped.is_set():
                    self.take(*self.message())
            except (OSError, Lost):
                self.reset()
                self.is_stopped.wait(0.02)
            finally:
                self.socket.close()

    # The connection

    def connect(self) -> None:
        self.socket = socket.create_connection((self.task.host, self.task.port), self.task.timeout)
        pairs = {"user": self.task.user, "database": self.task.database, "replication": "database"}
        parameters = b"".join(f"{name}\0{value}\0".encode() for name, value in pairs.items()) + b"\0"
        self.socket.sendall(struct.pack(">iI", len(parameters) + 8, 3 << 16) + parameters)
        self.until(b"Z")
        self.send(b"Q", self.command().encode() + b"\0")
        self.until(b"W")

    def command(self) -> str:
        names = {**self.options, "publication_names": self.quoted(self.task.publication)}
        asked = {name: value for name, value in names.items() if self.asks_for(name, value)}
        options = ", ".join(f"{name} '{self.word(value)}'" for name, value in asked.items())
        return f"START_REPLICATION SLOT {self.task.slot} LOGICAL {self.start_lsn()} ({options})"

    def asks_for(self, name: str, value: Any) -> bool:
        return value not in (False, "off", "any")

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def word(self, value: Any) -> str:
        return "true" if value is True else str(value).replace("'", "''")

    def start_lsn(self) -> Lsn:
        return self.stored

    def until(self, wanted: bytes) -> None:
        """Read up to a message of a type."""
        scram: Any = None
        while True:
            tag, body = self.message()
            if tag == b"R":
                scram = self.authenticate(struct.unpack_from(">i", body)[0], body[4:], scram)
            elif tag == b"E":
                self.error(body)
            elif tag == wanted:
                return

    def authenticate(self, kind: int, data: bytes, scram: Any) -> Any:
        from scramp import ScramClient

        if kind == _PASSWORD:
            self.send(b"p", self.task.password.encode() + b"\0")
        elif kind == _SASL:
            scram = ScramClient(["SCRAM-SHA-256"], self.task.user, self.task.password)
            first = scram.get_client_first().encode()
            self.send(b"p", b"SCRAM-SHA-256\0" + struct.pack(">i", len(first)) + first)
        elif kind == _SASL_MORE:
            scram.set_server_first(data.decode())
            self.send(b"p", scram.get_client_final().encode())
        elif kind == _SASL_END:
            scram.set_server_final(data.decode())
        return scram

    def error(self, body: bytes) -> None:
        fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
        if self.is_transient(fields[b"C"]):
            raise Lost
        raise Refused(f"the server says: {fields[b'M']}")

    def is_transient(self, sqlstate: str) -> bool:
        return sqlstate in _TRANSIENT

    def send(self, tag: bytes, body: bytes) -> None:
        self.socket.sendall(tag + struct.pack(">i", len(body) + 4) + body)

    def message(self) -> tuple[bytes, bytes]:
        """Return the next message of the server: its type, and the rest without its length."""
        while True:
            if len(self.received) >= 5:
                (length,) = struct.unpack_from(">i", self.received, 1)
                self.check_length(length)
                if len(self.received) > length:
                    found = self.received[:1], self.received[5 : length + 1]
                    self.received = self.received[length + 1 :]
                    return found
            self.fill()

    def check_length(self, length: int) -> None:
        if not 4 <= length < 1 << 30:
            raise Refused(f"a message of {length} bytes: lost synchronization with the server")

    def fill(self) -> None:
        try:
            data = self.socket.recv(1 << 20)
        except TimeoutError:
            data = self.silent()
        if not data:
            raise Lost
        self.received += data

    def silent(self) -> bytes:
        return b""

    # The stream

    def take(self, tag: bytes, body: bytes) -> None:
        if tag == b"d":
            self.frame(body)
        elif tag == b"E":
            self.error(body)
        elif tag == b"c":
            raise Lost
        else:
            self.asynchronous(tag)

    def asynchronous(self, tag: bytes) -> None:
        """Take a notice, or a setting."""
        if tag not in (b"N", b"S"):
            raise Refused(f"an unexpected message {tag!r}")

    def frame(self, data: bytes) -> None:
        if data[:1] == b"w":
            if len(data) < 25:
                raise Refused("an XLogData frame is too short")
            self.payload(data[25:], Lsn(struct.unpack_from(">Q", data, 1)[0]))
        elif data[:1] == b"k":
            if len(data) < 18:
                raise Refused("a keepalive is too short")
            self.keepalive(Lsn(struct.unpack_from(">Q", data, 1)[0]), data[17] == 1)
        else:
            self.unknown_frame(data)

    def unknown_frame(self, data: bytes) -> None:
        """Ignore a frame of a later version."""

    def keepalive(self, wal_end: Lsn, is_asked: bool) -> None:
        self.told = max(self.told, wal_end)
        if is_asked:
            self.confirm(self.flush_lsn())

    def flush_lsn(self) -> Lsn:
        """Return what may be confirmed: everything, unless something is missing of a transaction."""
        return self.stored if self.open is not None else max(self.stored, self.told)

    def confirm(self, lsn: Lsn) -> None:
        self.send(b"d", b"r" + struct.pack(">QQQqB", lsn, lsn, lsn, 0, 0))

    def payload(self, data: bytes, lsn: Lsn) -> None:
        try:
            message = self.parse(data)
        except pgo.PgoutputError as error:
            self.damaged(error)
            return
        self.dispatch(message)

    def parse(self, data: bytes) -> Any:
        layout = {name: self.options[name] for name in ("proto_version", "streaming")}
        return pgo.parse(data, **layout, in_stream=self.in_stream is not None)

    def damaged(self, error: pgo.PgoutputError) -> None:
        raise Refused(str(error))

    def dispatch(self, message: Any) -> None:
        name = type(message).__name__
        method = {"Begin": self.begins, "BeginPrepare": self.begins, "Commit": self.commits, "Prepare": self.prepares}
        method |= {"StreamStart": self.starts, "StreamStop": self.stops, "StreamCommit": self.stream_commits}
        method |= {"StreamAbort": self.stream_aborts, "StreamPrepare": self.stream_prepares}
        method |= {"CommitPrepared": self.commits_prepared, "RollbackPrepared": self.rolls_back_prepared}
        method |= {"Message": self.logical_message, "Origin": self.origin, "Type": self.type}
        method.get(name, self.change)(message)

    def begins(self, message: Any) -> None:
        if not (message.final_lsn if isinstance(message, pgo.Begin) else message.prepare_lsn):
            raise Refused("a Begin without an LSN")
        self.begin, self.open = message, []

    def commits(self, message: Any) -> None:
        if self.open is None or message.commit_lsn != self.begin.final_lsn:
            raise Refused("a Commit that is not that of its Begin")
        changes, self.open = self.open, None
        self.committed(changes, message.commit_lsn, message.end_lsn)

    def prepares(self, message: Any) -> None:
        if self.open is None or message.prepare_lsn != self.begin.prepare_lsn:
            raise Refused("a Prepare that is not that of its Begin Prepare")
        changes, self.open = self.open, None
        self.is_prepared(message.gid, changes, message.end_lsn)

    def is_prepared(self, gid: str, changes: list[Spooled], end: Lsn) -> None:
        self.prepared[gid] = [(None, each) for each in self.described(changes)]
        self.stored = max(self.stored, end)
        self.confirm(self.flush_lsn())

    def described(self, changes: list[Spooled]) -> list[Any]:
        """Return changes preceded by the descriptions of their tables, which a later connection does not have."""
        own = [message for _, message in changes]
        return [*self.relations.values(), *own]

    def commits_prepared(self, message: Any) -> None:
        self.committed(self.prepared.pop(message.gid, []), message.commit_lsn, message.end_lsn)

    def rolls_back_prepared(self, message: Any) -> None:
        self.prepared.pop(message.gid, None)
        self.ended(message.rollback_end_lsn)

    def starts(self, message: Any) -> None:
        if self.in_stream is not None:
            raise Refused("a Stream Start within a segment")
        if not message.xid:
            raise Refused("a stream without an xid")
        self.in_stream = message.xid
        if message.first_segment:
            self.streams[message.xid] = []

    def stops(self, message: Any) -> None:
        if self.in_stream is None:
            raise Refused("a Stream Stop without a Stream Start")
        self.in_stream = None

    def outside(self, what: str) -> None:
        if self.in_stream is not None:
            raise Refused(f"a {what} within a segment")

    def stream_commits(self, message: Any) -> None:
        self.outside("Stream Commit")
        self.committed(self.streams.pop(message.xid, []), message.commit_lsn, message.end_lsn)

    def stream_aborts(self, message: Any) -> None:
        self.outside("Stream Abort")
        if message.xid == message.subxid:
            self.streams.pop(message.xid, None)
        elif message.xid in self.streams:
            kept = [each for each in self.streams[message.xid] if each[0] != message.subxid]
            self.streams[message.xid] = kept

    def stream_prepares(self, message: Any) -> None:
        self.is_prepared(message.gid, self.streams.pop(message.xid, []), message.end_lsn)

    def origin(self, message: Any) -> None:
        """Take an Origin, which changes nothing."""

    def type(self, message: Any) -> None:
        """Take a Type, which changes nothing."""

    def logical_message(self, message: Any) -> None:
        if message.flags & 1:
            self.change(message)
        else:
            self.report(self.line("message", message))

    def change(self, message: Any) -> None:
        """Keep a change, or a Relation, until its transaction commits."""
        if self.in_stream is not None:
            if not message.xid:
                raise Refused("a change without an xid in a stream")
            self.streams.setdefault(self.in_stream, []).append((self.xid_of(message), message))
        elif isinstance(message, pgo.Relation):
            self.describe(message)
            if self.open is not None:
                self.open.append((None, message))
        elif self.open is None:
            raise Refused(f"{type(message).__name__} outside of a transaction")
        else:
            self.check_described(message)
            self.open.append((None, message))

    def xid_of(self, message: Any) -> int:
        return int(message.xid)

    def describe(self, message: Any) -> None:
        self.relations[message.relation_oid] = message

    def check_described(self, message: Any) -> None:
        oids = getattr(message, "relation_oids", None) or [getattr(message, "relation_oid", None)]
        for oid in oids:
            if oid is not None and oid not in self.relations:
                raise Refused(f"no Relation describes {oid}")

    # What is committed

    def committed(self, changes: list[Spooled], commit_lsn: Lsn, end: Lsn) -> None:
        if end <= self.stored:
            return  # it was reported before, and comes again since its confirmation was lost
        self.number += 1
        for line in self.lines([message for _, message in changes]):
            self.report(line)
        self.ended(end)

    def ended(self, end: Lsn) -> None:
        self.stored = max(self.stored, end)
        self.confirm(self.flush_lsn())

    def lines(self, changes: list[Any]) -> Iterator[dict[str, Any]]:
        for message in changes:
            if isinstance(message, pgo.Relation):
                self.describe(message)
            elif isinstance(message, pgo.Message):
                yield self.line(self.number, message)
            elif isinstance(message, pgo.Truncate):
                for oid in message.relation_oids:
                    yield self.row(self.relations[oid], "truncate", None, None)
            else:
                yield self.row_change(self.relations[message.relation_oid], message)

    def row_change(self, relation: Any, message: Any) -> dict[str, Any]:
        new, old = getattr(message, "new", None), getattr(message, "old", None)
        is_key = getattr(message, "old_kind", None) == "K"
        before = None if old is None else self.old_row(relation, old, is_key)
        after = None if new is None else self.new_row(relation, new)
        return self.row(relation, type(message).__name__.lower(), after, before)

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        pairs = zip(relation.columns, values, strict=True)
        return {self.name(column): self.value(value, column) for column, value in pairs if value is not pgo.UNCHANGED}

    def old_row(self, relation: Any, values: Any, is_key: bool) -> dict[str, Any]:
        pairs = zip(relation.columns, values, strict=True)
        return {self.name(c): self.value(value, c) for c, value in pairs if c.flags & 1 or not is_key}

    def row(self, relation: Any, operation: str, new: Any, old: Any) -> dict[str, Any]:
        return {
            "transaction": self.number,
            "table": self.table(relation),
            "operation": operation,
            "new": new,
            "old": old,
        }

    def table(self, relation: Any) -> str:
        return f"{relation.namespace or 'pg_catalog'}.{relation.name}"

    def name(self, column: Any) -> str:
        return str(column.name)

    def value(self, value: Any, column: Any) -> Any:
        if isinstance(value, pgo.Binary):
            return {"binary": value.hex()}
        return None if value is None else self.text(bytes(value), column)

    def text(self, value: bytes, column: Any) -> Any:
        return value.decode("utf-8")

    def line(self, transaction: Any, message: Any) -> dict[str, Any]:
        kept = {"prefix": message.prefix, "content": self.content(message.content)}
        return {"transaction": None if transaction == "message" else transaction, "operation": "message", **kept}

    def content(self, content: bytes) -> str:
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            return f"\\x{content.hex()}"


class ThreadClient(ConformanceClient):
    """Runs a client of a class in a thread."""

    def __init__(self, kind: type[ModelClient]) -> None:
        self.name = kind.__name__
        self._kind = kind

    def start(self, task: ClientTask) -> RunningClient:
        return _RunningThread(self._kind, task)


class _RunningThread(RunningClient):
    def __init__(self, kind: type[ModelClient], task: ClientTask) -> None:
        self._lines: list[str] = []
        self._lock = threading.Lock()
        self._is_stopped = threading.Event()
        self._status: int | None = None
        self._errors = ""
        self._client = kind(task, self._report, self._is_stopped)
        self._thread = threading.Thread(target=self._run, name=kind.__name__, daemon=True)
        self._thread.start()

    def _report(self, line: dict[str, Any]) -> None:
        with self._lock:
            self._lines.append(json.dumps(line))

    def _run(self) -> None:
        try:
            self._client.run()
            self._status = 0
        except Exception:
            self._errors = traceback.format_exc()
            self._status = 1

    def read(self) -> list[str]:
        with self._lock:
            lines, self._lines = self._lines, []
        return lines

    @property
    def status(self) -> int | None:
        return self._status

    @property
    def errors(self) -> str:
        return self._errors

    def stop(self) -> None:
        self._is_stopped.set()
        with suppress(OSError):
            self._client.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
