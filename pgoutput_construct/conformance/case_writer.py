"""Writes a case: transactions in, the script and its meaning out.

A writer keeps what a server keeps, the next LSN, xid and OID and which tables it has described, and a model of the
rows, from which follows what was not sent. Times and numbers are the same in each run: the suite is data, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from pgoutput_construct.conformance.conformance_case import ConformanceCase, Outcome, Play
from pgoutput_construct.conformance.meaning import ExpectedChange, ExpectedTransaction, SentBinary, Value
from pgoutput_construct.conformance.steps import SendBytes, SendKeepalive, SendMessage, Step
from pgoutput_construct.pgtypes.builtin_types import FIRST_USER_OID
from pgoutput_construct.testing.fake_tables import Change, FakeTable
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.connection_engine import build_connection
from pgoutput_construct.wire.connection_messages import CopyData
from pgoutput_construct.wire.engine import build, build_frame
from pgoutput_construct.wire.frames import XLogData
from pgoutput_construct.wire.protocol import (
    DeleteOldKind,
    MessageFlags,
    RelationColumnFlags,
    StreamStartFirstSegment,
    UpdateOldKind,
)
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["CaseWriter", "OpenStream", "PreparedTransaction", "TypedBinary"]

_START: Final = 0x1000000
_RECORD: Final = 0x40
"""Bytes of WAL of a record."""
_FIRST_XID: Final = 700
_EPOCH: Final = 822_312_000_000_000
"""The time of the first record: 2026-01-21 10:40:00 UTC, in microseconds since 2000."""
_LAST: Final = "done"
"""The table whose row ends each script: who has reported it has reported everything."""


class TypedBinary(m.Binary):
    """A value in binary format, whose text is known."""

    text: str

    def __new__(cls, text: str, data: str) -> "TypedBinary":
        """``text`` is PostgreSQL's, ``data`` the bytes in hexadecimal."""
        made = super().__new__(cls, bytes.fromhex(data))
        made.text = text
        return made


Item: TypeAlias = Change | Step
"""A change of a transaction, or a step that is taken between two."""


class CaseWriter:
    """Writes one case."""

    def __init__(self, case: ConformanceCase) -> None:
        """Begin an empty script, under the options that a case asks for."""
        self._layout = {name: case.options[name] for name in ("proto_version", "streaming")}
        self.script: list[Step] = []
        self.outcome = Outcome.COMMITTED
        """See Play; likewise ``refused``, ``once``, ``memory``, ``stores`` and ``reads``."""
        self.refused: int | None = None
        self.once = False
        self.memory: int | None = None
        self.stores = False
        self.reads = True
        self._only: Literal["", "first", "later"] = ""
        self._lsn, self._xid, self._oid, self._unit = _START, _FIRST_XID, FIRST_USER_OID, 0
        self._transactions: list[ExpectedTransaction] = []
        self._ends: dict[int, Lsn] = {}
        self._descriptions: dict[str, tuple[bytes, ...]] = {}
        self._described: dict[int, str] = {}
        """The name of the latest description of each table, by OID."""
        self._tables: list[m.Relation] = []
        self._rows: dict[str, list[dict[str, Value]]] = {}

    @property
    def lsn(self) -> Lsn:
        """The LSN of the next record."""
        return Lsn(self._lsn)

    @property
    def now(self) -> Timestamp:
        """The time of the next record."""
        return Timestamp(_EPOCH + self._lsn - _START)

    @property
    def reported(self) -> int:
        """The number of transactions that are expected so far."""
        return len(self._transactions)

    def table(
        self, name: str, columns: Mapping[str, str], key: Sequence[str] = (), namespace: str = "public", **more: Any
    ) -> FakeTable:
        """Create a table, which is described before its first change.

        Args:
            name: Its name.
            columns: The type of each column: built-in, or of ``types``.
            key: The columns of its replica identity; empty: REPLICA IDENTITY FULL.
            namespace: Its schema.
            more: Further fields of FakeTable: ``oid``, ``modifiers``, ``types``, ``identity``.
        """
        self._oid += 2
        table = FakeTable(name, columns, key, namespace, **{"oid": self._oid, **more})
        self.describe(table)
        return table

    def orders(self) -> FakeTable:
        """Create the table of most cases: ``orders`` with the columns ``id``, its key, and ``note``."""
        return self.table("orders", {"id": "int4", "note": "text"}, key=["id"])

    def alter(self, table: FakeTable, **changed: Any) -> FakeTable:
        """Alter a table: its later changes are described by another Relation; return the table as it is then.

        Args:
            table: The table as it was.
            changed: Fields of FakeTable, such as ``columns``.
        """
        altered = replace(table, **changed)
        self.describe(altered)
        return altered

    def describe(self, table: FakeTable) -> None:
        """Let a description precede the table's next change."""
        name = f"{table.namespace}.{table.name}#{len(self._descriptions) + 1}"
        types = [table.types[kind] for kind in table.columns.values() if kind in table.types]
        described: tuple[m.PgoutputMessage, ...] = (*types, table.relation)
        self._descriptions[name] = tuple(map(self._build, described))
        self._described[table.oid] = name
        self._tables.append(table.relation)

    def create_only(self, table: FakeTable) -> FakeTable:
        """List a table that the script describes itself, if at all; return it."""
        self._tables.append(table.relation)
        return table

    def known(self, table: FakeTable) -> None:
        """Let no description precede the table's next changes: the script has one, or lacks it on purpose."""
        self._described.pop(table.oid, None)

    def commit(
        self,
        *items: Item,
        origin: str | None = None,
        xid: int | None = None,
        time: int | None = None,
        expects: Sequence[Change] = (),
    ) -> None:
        """Write a transaction that commits.

        Args:
            items: Its changes, and steps among them.
            origin: Its replication origin.
            xid: Its xid; None: the next one.
            time: Its commit time, in microseconds since 2000; None: the next one.
            expects: Changes that steps send, see ``halves``; they come last.
        """
        unit = self.unit()
        start = Lsn(self._lsn + _RECORD * sum(isinstance(item, Change) for item in items))
        now = self.now if time is None else Timestamp(time)
        self.send(m.Begin(start, now, self.xid() if xid is None else xid), unit=unit)
        if origin is not None:
            self.send(m.Origin(Lsn(0x2000000), origin), Lsn(0), unit)
        expected = self.changes(items, unit)
        expected += [meant for change in expects for meant in self.meaning(change, -1)]
        self.send(m.Commit(start, self._end(unit), now), self._ends[unit], unit)
        self.expect(unit, expected)

    def begin(self, unit: int, records: int) -> Lsn:
        """Write a Begin; return the LSN of the commit record, for ``end``.

        Args:
            unit: The unit.
            records: The number of records before that of the commit.
        """
        start = Lsn(self._lsn + _RECORD * records)
        self.send(m.Begin(start, self.now, self.xid()), unit=unit)
        return start

    def end(self, unit: int, start: Lsn) -> None:
        """Write the Commit of a transaction that ``begin`` began; ``expect`` says what it means."""
        assert self.lsn == start, f"the commit record is at {self.lsn}, not at {start}"
        now = self.now
        self.send(m.Commit(start, self._end(unit), now), self._ends[unit], unit)

    def changes(self, items: Iterable[Item], unit: int | None) -> list[ExpectedChange]:
        """Write changes, each after its table's description if need be; return what they mean once they commit."""
        expected: list[ExpectedChange] = []
        for item in items:
            if not isinstance(item, Change):
                self.script.append(item)
                continue
            expected += self.meaning(item, len(self.script))
            oids = getattr(item.message, "relation_oids", (item.table.oid,))
            needs = tuple(self._described[oid] for oid in oids if oid in self._described)
            self.script.append(SendMessage(self._build(item.message), self.record(), unit, needs, self._only))
        return expected

    def meaning(self, change: Change, step: int) -> list[ExpectedChange]:
        """Return what a change means: for a truncate one for each of its tables."""
        message, table = change.message, change.table
        if isinstance(message, m.Truncate):
            named = {relation.relation_oid: _full_name(relation) for relation in self._tables}
            return [ExpectedChange(named[oid], "truncate", step=step) for oid in message.relation_oids]
        relation, operation = table.relation, type(message).__name__.lower()
        new, old = getattr(message, "new", None), getattr(message, "old", None)
        is_key = getattr(message, "old_kind", None) in (UpdateOldKind.KEY, DeleteOldKind.KEY)
        return [
            ExpectedChange(
                _full_name(relation),
                operation,
                None if new is None else _row(relation, new),
                None if old is None else _row(relation, old, is_key),
                unsent=_unsent(relation, new or ()),
                step=step,
            )
        ]

    def expect(self, unit: int, changes: Sequence[ExpectedChange]) -> None:
        """Expect a transaction to be reported next, unless it changes nothing."""
        if changes:
            found = tuple(self._applied(change) for change in changes)
            self._transactions.append(ExpectedTransaction(unit, found))

    def unexpect(self) -> None:
        """Do not expect the last transaction: a client must refuse it."""
        self._transactions.pop()

    def message(self, prefix: str, content: bytes, unit: int | None = None, stream_xid: int | None = None) -> None:
        """Write a logical message: of a transaction if ``unit`` is given, otherwise one that is reported at once.

        ``stream_xid`` is the xid of the open stream, if one is.
        """
        flags = 0 if unit is None else int(MessageFlags.TRANSACTIONAL)
        lsn = self.record()
        sent = m.Message(xid=stream_xid, flags=flags, lsn=lsn, prefix=prefix, content=content)
        if unit is not None:
            self.send(sent, lsn, unit, in_stream=stream_xid is not None)
            return
        own = self.unit()
        self._ends[own] = Lsn(lsn + _RECORD)
        self._transactions.append(ExpectedTransaction(own, (self.message_meaning(prefix, content),)))
        self.send(sent, lsn, own)

    def message_meaning(self, prefix: str, content: bytes) -> ExpectedChange:
        """Return what the next message written means."""
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            text = f"\\x{content.hex()}"
        return ExpectedChange("", "message", prefix=prefix, content=text, step=len(self.script))

    def stream(self, xid: int | None = None) -> "OpenStream":
        """Begin a transaction that is streamed."""
        return OpenStream(self, self.xid() if xid is None else xid)

    def prepare(self, gid: str, *items: Item, origin: str | None = None) -> "PreparedTransaction":
        """Write a transaction up to its PREPARE.

        Args:
            gid: Its identifier.
            items: Its changes, and steps among them.
            origin: Its replication origin.
        """
        unit, xid = self.unit(), self.xid()
        start = Lsn(self._lsn + _RECORD * sum(isinstance(item, Change) for item in items))
        end, now = Lsn(start + _RECORD), self.now
        self.send(m.BeginPrepare(start, end, now, xid, gid), unit=unit)
        if origin is not None:
            self.send(m.Origin(Lsn(0x2000000), origin), Lsn(0), unit)
        expected = self.changes(items, unit)
        self.send(m.Prepare(start, self._end(unit), now, xid, gid), end, unit)
        return PreparedTransaction(self, gid, xid, end, now, expected)

    def keepalive(self, reply_requested: bool = False) -> None:
        """Write a keepalive with the LSN up to which everything was sent."""
        self.script.append(SendKeepalive(self.lsn, reply_requested))

    def only(self, connections: Literal["", "first", "later"]) -> None:
        """Send the messages from here on to the first connection only, to the later ones, or again to all."""
        self._only = connections

    def halves(self, change: Change) -> tuple[SendBytes, SendBytes]:
        """Return the frame of a change, outside of streams, as two steps that send it in two parts."""
        frame = build_frame(XLogData(self.lsn, self.lsn, self.now, self._build(change.message)))
        data = build_connection(CopyData(frame))
        return SendBytes(data[: len(data) // 2]), SendBytes(data[len(data) // 2 :])

    def add(self, *steps: Step) -> None:
        """Write steps as they are."""
        self.script += steps

    def send(
        self,
        message: m.PgoutputMessage | bytes,
        lsn: Lsn | None = None,
        unit: int | None = None,
        *,
        in_stream: bool = False,
    ) -> None:
        """Write one message, or bytes instead of it; by default with the LSN of the next record."""
        payload = message if isinstance(message, bytes) else self._build(message, in_stream)
        self.script.append(SendMessage(payload, self.lsn if lsn is None else lsn, unit, only=self._only))

    def refuse(self, *before: Change, damaged: m.PgoutputMessage | bytes) -> None:
        """Write a transaction with something that a client must refuse, after some changes.

        Args:
            before: Changes before it.
            damaged: What must be refused.
        """
        unit, start = self.unit(), Lsn(self._lsn + _RECORD * (len(before) + 1))
        self.send(m.Begin(start, self.now, self.xid()), unit=unit)
        self.changes(before, unit)
        self.refused = len(self.script)
        self.send(damaged, self.record(), unit)
        self.send(m.Commit(start, self._end(unit), self.now), self._ends[unit], unit)
        self.outcome = Outcome.REFUSED

    def unit(self) -> int:
        """Return the number of a new unit."""
        self._unit += 1
        return self._unit

    def xid(self) -> int:
        """Return the next xid."""
        self._xid += 1
        return self._xid

    def record(self) -> Lsn:
        """Write a record; return its LSN."""
        self._lsn += _RECORD
        return Lsn(self._lsn - _RECORD)

    def end_unit(self, unit: int) -> tuple[Lsn, Lsn]:
        """Write the record that ends a unit; return the LSNs of its start and of its end."""
        start = self.lsn
        return start, self._end(unit)

    def play(self) -> Play:
        """End the script with a row that says so; return what was written."""
        if self.outcome is Outcome.REFUSED:
            expected = list(self._transactions)
            self.commit(self._last())
            self._transactions = expected
        else:
            self.commit(self._last())
        return Play(
            tuple(self.script),
            tuple(self._transactions),
            dict(self._ends),
            dict(self._descriptions),
            tuple(self._tables),
            self.outcome,
            self.refused,
            self.once,
            self.memory,
            self.stores,
            self.reads,
        )

    def _last(self) -> Change:
        return self.table(_LAST, {"id": "int4"}, key=["id"]).insert({"id": 1})

    def _end(self, unit: int) -> Lsn:
        self.record()
        self._ends[unit] = self.lsn
        return self.lsn

    def _build(self, message: m.PgoutputMessage, in_stream: bool = False) -> bytes:
        sent: Any = message
        rows = {name: row for name in ("new", "old") if (row := getattr(message, name, None)) is not None}
        plain = {name: tuple(map(_untyped, row)) for name, row in rows.items()}
        return build(replace(sent, **plain), in_stream=in_stream, **self._layout)

    def _applied(self, change: ExpectedChange) -> ExpectedChange:
        """Return a change with the row before it, of which the model is brought up to date."""
        rows = self._rows.setdefault(change.table, [])
        if change.operation == "truncate":
            rows.clear()
        if change.operation == "insert" and change.new is not None:
            rows.append(dict(change.new))
        if change.operation not in ("update", "delete"):
            return change
        before = self._found(rows, change)
        if before is None:
            return change
        rows.remove(before)
        if change.new is not None:
            rows.append({**before, **change.new})
        return replace(change, before=before)

    def _found(self, rows: Sequence[dict[str, Value]], change: ExpectedChange) -> dict[str, Value] | None:
        """Return the row that is changed: by what was sent of it, else by the key, which an update leaves as it is."""
        said = change.old or self._key(change)
        return next((row for row in rows if all(row.get(name) == value for name, value in said.items())), None)

    def _key(self, change: ExpectedChange) -> dict[str, Value]:
        relation = next(each for each in reversed(self._tables) if _full_name(each) == change.table)
        keys = {each.name for each in relation.columns if each.flags & RelationColumnFlags.KEY}
        return {name: value for name, value in (change.new or {}).items() if name in keys}


@dataclass(eq=False)
class OpenStream:
    """A transaction that is streamed before it ends."""

    writer: CaseWriter
    xid: int
    unit: int = field(init=False)
    """The unit, which ends with its Stream Commit, Stream Abort or Stream Prepare."""
    _changes: list[tuple[int, ExpectedChange]] = field(default_factory=list)
    _described: set[str] = field(default_factory=set)
    _segments: int = 0

    def __post_init__(self) -> None:
        self.unit = self.writer.unit()

    def segment(self, *items: Item, sub: int | None = None) -> "OpenStream":
        """Write a segment with changes of the transaction, or of a subtransaction of it; return the stream."""
        self.start()
        self.changes(*items, sub=sub)
        self.stop()
        return self

    def start(self) -> None:
        """Write a Stream Start."""
        first = StreamStartFirstSegment.LATER_SEGMENT if self._segments else StreamStartFirstSegment.FIRST_SEGMENT
        self._segments += 1
        self.writer.send(m.StreamStart(self.xid, int(first)), Lsn(0), self.unit)

    def stop(self) -> None:
        """Write a Stream Stop."""
        self.writer.send(m.StreamStop(), Lsn(0), self.unit)

    def origin(self, name: str) -> None:
        """Write the Origin, which follows the first Stream Start."""
        self.writer.send(m.Origin(Lsn(0), name), Lsn(0), self.unit)

    def changes(self, *items: Item, sub: int | None = None) -> None:
        """Write changes into the open segment, after the descriptions that the stream does not have yet."""
        writer, xid = self.writer, self.xid if sub is None else sub
        for item in items:
            if not isinstance(item, Change):
                writer.add(item)
                continue
            self._describe(item.table, xid)
            sent: Any = item.message
            self._changes += ((xid, change) for change in writer.meaning(item, len(writer.script)))
            writer.send(replace(sent, xid=xid), writer.record(), self.unit, in_stream=True)

    def message(self, prefix: str, content: bytes) -> None:
        """Write a transactional logical message into the open segment."""
        self._changes.append((self.xid, self.writer.message_meaning(prefix, content)))
        self.writer.message(prefix, content, self.unit, self.xid)

    def abort(self, *subs: int, is_said: bool = True) -> None:
        """Write the Stream Abort of subtransactions, the inner ones first; without any, of the transaction.

        Args:
            subs: The xids of the subtransactions.
            is_said: Whether the abort's LSN and time are known, if the layout has them: of a transaction that was lost
                in a crash they are 0.
        """
        for sub in subs or (self.xid,):
            said = (self.writer.record(), self.writer.now) if is_said else (Lsn(0), Timestamp(0))
            if not subs:
                self.writer.end_unit(self.unit)
            parallel = self.writer._layout["streaming"] == "parallel"
            sent = m.StreamAbort(self.xid, sub, *said) if parallel else m.StreamAbort(self.xid, sub)
            self.writer.send(sent, unit=self.unit)
        self._changes = [each for each in self._changes if subs and each[0] not in subs]
        self._described.clear()  # PostgreSQL describes the tables again (cleanup_rel_sync_cache())

    def commit(self) -> None:
        """Write the Stream Commit."""
        start, end = self.writer.end_unit(self.unit)
        self.writer.send(m.StreamCommit(self.xid, start, end, self.writer.now), end, self.unit)
        self.writer.expect(self.unit, [change for _, change in self._changes])

    def prepare(self, gid: str) -> "PreparedTransaction":
        """Write the Stream Prepare."""
        now, (start, end) = self.writer.now, self.writer.end_unit(self.unit)
        self.writer.send(m.StreamPrepare(start, end, now, self.xid, gid), end, self.unit)
        return PreparedTransaction(self.writer, gid, self.xid, end, now, [change for _, change in self._changes])

    def _describe(self, table: FakeTable, xid: int) -> None:
        name = self.writer._described.get(table.oid)
        if name is None or name in self._described:
            return
        self._described.add(name)
        types = [table.types[kind] for kind in table.columns.values() if kind in table.types]
        described: tuple[m.Type | m.Relation, ...] = (*types, table.relation)
        for each in described:
            self.writer.send(replace(each, xid=xid), Lsn(0), self.unit, in_stream=True)


@dataclass(eq=False)
class PreparedTransaction:
    """A transaction that is prepared, and has no outcome yet."""

    writer: CaseWriter
    gid: str
    xid: int
    end: Lsn
    """The LSN of the end of its PREPARE."""
    time: Timestamp
    """When it was prepared."""
    changes: list[ExpectedChange]

    def commit(self) -> None:
        """Write the Commit Prepared."""
        unit = self.writer.unit()
        start, end = self.writer.end_unit(unit)
        self.writer.send(m.CommitPrepared(start, end, self.writer.now, self.xid, self.gid), end, unit)
        self.writer.expect(unit, self.changes)

    def roll_back(self) -> None:
        """Write the Rollback Prepared."""
        unit = self.writer.unit()
        _, end = self.writer.end_unit(unit)
        sent = m.RollbackPrepared(self.end, end, self.time, self.writer.now, self.xid, self.gid)
        self.writer.send(sent, end, unit)


def _full_name(relation: m.Relation) -> str:
    return f"{relation.namespace or 'pg_catalog'}.{relation.name}"


def _row(relation: m.Relation, values: m.TupleData, is_key: bool = False) -> dict[str, Value]:
    """Return what a tuple says, by column: of a key only the columns of the key, of others all that were sent."""
    pairs = zip(relation.columns, values, strict=True)
    return {
        column.name: _value(value)
        for column, value in pairs
        if value is not m.UNCHANGED and (column.flags & RelationColumnFlags.KEY or not is_key)
    }


def _unsent(relation: m.Relation, values: m.TupleData) -> tuple[str, ...]:
    return tuple(column.name for column, value in zip(relation.columns, values, strict=False) if value is m.UNCHANGED)


def _untyped(value: Any) -> Any:
    return m.Binary(value) if isinstance(value, TypedBinary) else value


def _value(value: Any) -> Value:
    if isinstance(value, TypedBinary):
        return SentBinary(value.text, value.hex())
    return None if value is None else value.decode("utf-8", "surrogateescape")
