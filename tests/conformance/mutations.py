"""Clients that are wrong in one way each, and the cases that show it: every case is proven able to fail."""

import json
import struct
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pgoutput_construct as pgo
from pgoutput_construct.wire import Lsn
from tests.conformance.model_client import Lost, ModelClient, Refused

__all__ = ["PROOFS"]


class SkipsWhatItCannotRead(ModelClient):
    """Ignores a message that it cannot read, or that cannot come now, and continues."""

    def damaged(self, error: pgo.PgoutputError) -> None:
        pass

    def payload(self, data: bytes, lsn: Lsn) -> None:
        try:
            super().payload(data, lsn)
        except (Refused, KeyError):
            self.in_stream = None if data[:1] in b"cA" else self.in_stream

    def frame(self, data: bytes) -> None:
        with suppress(Refused):
            super().frame(data)

    def check_length(self, length: int) -> None:
        if not 4 <= length < 1 << 30:
            self.received = self.received[5:] or b"N\0\0\0\4"
            raise Lost

    def start_lsn(self) -> Lsn:
        return Lsn(self.stored + 0x140) if self.stored else self.stored  # it skips what it cannot read


class TrustsLsns(ModelClient):
    """Does not compare the LSNs of a Begin and its end."""

    def begins(self, message: Any) -> None:
        self.begin, self.open = message, [] if self.open is None else self.open

    def commits(self, message: Any) -> None:
        changes, self.open = self.open or [], None
        self.committed(changes, message.commit_lsn, message.end_lsn)

    def prepares(self, message: Any) -> None:
        self.open, changes = None, self.open or []
        self.is_prepared(message.gid, changes, message.end_lsn)
        self.commits_prepared(message_of(message))


def message_of(message: Any) -> Any:
    """Return the Commit Prepared of a transaction that was prepared."""
    return pgo.CommitPrepared(message.prepare_lsn, message.end_lsn, message.prepare_time, message.xid, message.gid)


class ReportsEarly(ModelClient):
    """Reports changes when they come, not when they commit."""

    def change(self, message: Any) -> None:
        super().change(message)
        if isinstance(message, pgo.Relation):
            self.describe(message)
        for line in () if isinstance(message, pgo.Relation | pgo.Message) else self.lines([message]):
            self.report(line)

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        self.number += 1
        self.ended(end)


class CommitsAtPrepare(ModelClient):
    """Takes a PREPARE for a commit."""

    def is_prepared(self, gid: str, changes: list[Any], end: Lsn) -> None:
        self.committed(changes, end, end)


class IgnoresInserts(ModelClient):
    """Reports no inserts."""

    def row(self, relation: Any, operation: str, new: Any, old: Any) -> dict[str, Any]:
        made = super().row(relation, operation, new, old)
        return {**made, "operation": "update"} if operation == "insert" else made


class TakesUpdatesForInserts(ModelClient):
    """Reports an update as an insert."""

    def row(self, relation: Any, operation: str, new: Any, old: Any) -> dict[str, Any]:
        made = super().row(relation, operation, new, old)
        return {**made, "operation": "insert"} if operation == "update" else made


class LeavesOutDeletes(ModelClient):
    """Reports no old row."""

    def old_row(self, relation: Any, values: Any, is_key: bool) -> dict[str, Any]:
        return {}


class SortsChanges(ModelClient):
    """Reports the changes of a transaction sorted by operation."""

    def lines(self, changes: list[Any]) -> Any:
        yield from sorted(super().lines(changes), key=lambda line: line["operation"])


class SortsTransactions(ModelClient):
    """Reports transactions in the order of their xids, as far as it can."""

    def __init__(self, *arguments: Any) -> None:
        self.held: list[Any] = []
        super().__init__(*arguments)

    def stream_commits(self, message: Any) -> None:
        self.begin = message
        super().stream_commits(message)

    def commits_prepared(self, message: Any) -> None:
        self.begin = message
        super().commits_prepared(message)

    def report_later(self) -> None:
        for _, lines in sorted(self.held, key=lambda each: each[0]):
            for line in lines:
                self.report(line)
        self.held = []

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        self.number += 1
        lines = [*self.lines([message for _, message in changes])]
        self.held.append((getattr(self.begin, "xid", 0), lines))
        if any("done" in line["table"] for line in lines):
            self.report_later()
        self.ended(end)


class OneTableAtATime(ModelClient):
    """Takes every change for one of the table that was described last."""

    def row_change(self, relation: Any, message: Any) -> dict[str, Any]:
        return super().row_change([*self.relations.values()][-1], message)


class NamesWithoutSchema(ModelClient):
    """Knows tables by their names alone."""

    def describe(self, message: Any) -> None:
        known = next((each for each in self.relations.values() if each.name == message.name), message)
        self.relations[message.relation_oid] = known


class RefusesEmptyTransactions(ModelClient):
    """Refuses a transaction without changes."""

    def commits(self, message: Any) -> None:
        if not self.open:
            raise Refused("a transaction without changes")
        super().commits(message)

    def is_prepared(self, gid: str, changes: list[Any], end: Lsn) -> None:
        if not changes:
            raise Refused("a prepared transaction without changes")
        super().is_prepared(gid, changes, end)

    def stops(self, message: Any) -> None:
        if self.in_stream not in self.streams or not self.streams[self.in_stream]:
            raise Refused("a segment without changes")
        super().stops(message)


class RefusesTypes(ModelClient):
    """Does not know Type messages."""

    def type(self, message: Any) -> None:
        raise Refused("an unknown message")


class RefusesOrigins(ModelClient):
    """Does not know Origin messages."""

    def origin(self, message: Any) -> None:
        raise Refused("an unknown message")


class RefusesUnusedRelations(ModelClient):
    """Takes a Relation for what must be followed by a change of its table."""

    last: Any = None

    def dispatch(self, message: Any) -> None:
        if self.last is not None and getattr(message, "relation_oid", None) != self.last:
            raise Refused("a Relation without a change after it")
        self.last = message.relation_oid if isinstance(message, pgo.Relation) else None
        super().dispatch(message)


class SignedNumbers(ModelClient):
    """Reads OIDs and xids as signed numbers."""

    def dispatch(self, message: Any) -> None:
        for name in ("relation_oid", "xid"):
            if (number := getattr(message, name, None)) is not None and number >= 1 << 31:
                raise Refused(f"{name} {number - (1 << 32)}")
        super().dispatch(message)


class XidsAreUnique(ModelClient):
    """Ignores a transaction whose xid it has seen."""

    def __init__(self, *arguments: Any) -> None:
        self.seen: set[int] = set()
        super().__init__(*arguments)

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        xid = self.ending if self.ending is not None else self.begin.xid
        if xid not in self.seen:
            super().committed(changes, commit_lsn, end)
        self.seen.add(xid)

    ending: int | None = None

    def stream_commits(self, message: Any) -> None:
        self.ending = message.xid
        super().stream_commits(message)
        self.ending = None


class DatesOfPython(ModelClient):
    """Converts commit times to datetime."""

    def begins(self, message: Any) -> None:
        super().begins(message)
        datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=message.commit_time)


class FoldsNames(ModelClient):
    """Takes names in lower case, without blanks."""

    def table(self, relation: Any) -> str:
        return super().table(relation).lower()

    def name(self, column: Any) -> str:
        return super().name(column).lower()


class SkipsEmptyRows(ModelClient):
    """Skips rows without columns."""

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        kept = [each for each in changes if not isinstance(each[1], pgo.Insert) or each[1].new]
        super().committed(kept, commit_lsn, end)


class Latin1(ModelClient):
    """Reads text as Latin-1, without blanks at the ends."""

    def text(self, value: bytes, column: Any) -> Any:
        return value.decode("latin-1").strip()

    def value(self, value: Any, column: Any) -> Any:
        if isinstance(value, pgo.Binary) and column.type_oid == 25:
            return self.text(bytes(value), column)
        return super().value(value, column)


class PythonValues(ModelClient):
    """Converts values by their types, hastily: bool("f"), float(numeric), small integers, str(None)."""

    def text(self, value: bytes, column: Any) -> Any:
        text = value.decode()
        convert: dict[int, Any] = {16: bool, 20: lambda t: int(float(t)), 1700: lambda t: json.loads(str(float(t)))}
        convert |= {700: lambda t: str(float(t)), 701: lambda t: str(Decimal(t).normalize())}
        convert |= dict.fromkeys((114, 3802), lambda t: json.dumps(json.loads(t)))
        convert |= {21: abs, 23: int} | {17: lambda t: t.lstrip("\\x"), 1042: str.rstrip, 869: lambda t: f"{t}/32"}
        convert |= dict.fromkeys((1082, 1083, 1114, 1184, 1186, 1266), lambda t: t.replace(" BC", ""))
        convert |= dict.fromkeys((1007, 1009), lambda t: t.split(","))
        return convert.get(column.type_oid, str)(text)


class TextTypesOnly(ModelClient):
    """Reads values of types that are not built in as NULL."""

    def value(self, value: Any, column: Any) -> Any:
        return None if column.type_oid >= 16384 else super().value(value, column)


class BinaryAsText(ModelClient):
    """Reads values in binary format as text."""

    def value(self, value: Any, column: Any) -> Any:
        return bytes(value).decode("latin-1") + "?" if isinstance(value, pgo.Binary) else super().value(value, column)


class AllBinary(ModelClient):
    """Takes all values for binary where it has asked for it."""

    def value(self, value: Any, column: Any) -> Any:
        if isinstance(value, bytes) and not isinstance(value, pgo.Binary) and self.options["binary"]:
            return {"binary": value.hex()}
        return super().value(value, column)


class NullForUnchanged(ModelClient):
    """Takes a value that was not sent for NULL."""

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        return dict.fromkeys(map(self.name, relation.columns)) | super().new_row(relation, values)


class EmptyForNull(ModelClient):
    """Takes NULL for the empty text."""

    def value(self, value: Any, column: Any) -> Any:
        return "" if value is None else super().value(value, column)


class ShiftsAfterUnchanged(ModelClient):
    """Leaves out a value that was not sent, and takes the next ones for those of the columns before them."""

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        sent = [value for value in values if value is not pgo.UNCHANGED]
        pairs = zip(relation.columns, sent, strict=False)
        return {self.name(column): self.value(value, column) for column, value in pairs}


class LosesOldKeys(ModelClient):
    """Keeps of an update its new row alone, and of a delete the whole tuple."""

    def row(self, relation: Any, operation: str, new: Any, old: Any) -> dict[str, Any]:
        return super().row(relation, operation, new, None if operation == "update" else old)


class NullsOfOldKeys(ModelClient):
    """Takes the NULLs beside an old key for values."""

    def old_row(self, relation: Any, values: Any, is_key: bool) -> dict[str, Any]:
        return super().old_row(relation, values, False) | (
            {self.name(c): None for c in relation.columns if not c.flags & 1} if is_key else {}
        )


class KeyIsTheFirstColumn(ModelClient):
    """Takes the first column for the key."""

    def old_row(self, relation: Any, values: Any, is_key: bool) -> dict[str, Any]:
        return (
            super().old_row(relation, values, is_key)
            if not is_key
            else {self.name(relation.columns[0]): self.value(values[0], relation.columns[0])}
        )


class LosesNullsOfOldRows(ModelClient):
    """Leaves NULLs out of old rows."""

    def old_row(self, relation: Any, values: Any, is_key: bool) -> dict[str, Any]:
        return {name: value for name, value in super().old_row(relation, values, is_key).items() if value is not None}


class EqualRowsAreOne(ModelClient):
    """Skips a change that equals the one before."""

    def lines(self, changes: list[Any]) -> Any:
        before: Any = None
        for line in super().lines(changes):
            if line != before:
                yield line
            before = line


class RefusesNoIdentity(ModelClient):
    """Wants each table to have a replica identity of its key."""

    def describe(self, message: Any) -> None:
        if message.replica_identity not in ("d", "f"):
            raise Refused("an unknown replica identity")
        super().describe(message)


class FirstDescriptionStays(ModelClient):
    """Keeps the first description of each table."""

    def describe(self, message: Any) -> None:
        self.relations.setdefault(message.relation_oid, message)

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        pairs = zip(relation.columns, values, strict=False)
        return {self.name(column): self.value(value, column) for column, value in pairs if value is not pgo.UNCHANGED}


class LastDescriptionCounts(ModelClient):
    """Reads all changes of a transaction by the descriptions at its end."""

    def lines(self, changes: list[Any]) -> Any:
        for message in changes:
            if isinstance(message, pgo.Relation):
                self.describe(message)
        yield from super().lines([each for each in changes if not isinstance(each, pgo.Relation)])

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        pairs = zip(relation.columns, values, strict=False)
        return {self.name(column): self.value(value, column) for column, value in pairs if value is not pgo.UNCHANGED}


class OldColumnsStay(ModelClient):
    """Adds the columns of earlier descriptions to those of later ones."""

    def describe(self, message: Any) -> None:
        known = self.relations.get(message.relation_oid)
        if known == message:
            return
        kept = () if known is None or known.name != message.name else known.columns
        self.columns = {**getattr(self, "columns", {}), message.relation_oid: kept}
        super().describe(message)

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        before = {self.name(each): None for each in self.columns.get(relation.relation_oid, ())}
        return {**before, **super().new_row(relation, values)}


class ForgetsOtherTables(ModelClient):
    """Forgets all tables when one is described again."""

    def describe(self, message: Any) -> None:
        if message.relation_oid in self.relations:
            self.relations.clear()
        super().describe(message)


class RefusesModifiers(ModelClient):
    """Wants type modifiers to be lengths."""

    def describe(self, message: Any) -> None:
        if any(column.type_modifier > 1000 for column in message.columns):
            raise Refused("a length of more than 1000")
        super().describe(message)


class IgnoresTruncates(ModelClient):
    """Reports no truncates."""

    def lines(self, changes: list[Any]) -> Any:
        yield from super().lines([each for each in changes if not isinstance(each, pgo.Truncate)])


class TruncatesFirst(ModelClient):
    """Reports the first table of a truncate alone, and truncates before all other changes."""

    def lines(self, changes: list[Any]) -> Any:
        lines = [*super().lines(changes)]
        truncates = [line for line in lines if line["operation"] == "truncate"]
        yield from truncates[:1]
        yield from (line for line in lines if line["operation"] != "truncate")


class RefusesTruncateOptions(ModelClient):
    """Knows truncates without options."""

    def change(self, message: Any) -> None:
        if isinstance(message, pgo.Truncate) and message.options:
            raise Refused("unknown options of a truncate")
        super().change(message)


class IgnoresMessages(ModelClient):
    """Reports no logical messages."""

    def logical_message(self, message: Any) -> None:
        pass


class MessagesAreTransactional(ModelClient):
    """Takes each message to belong to the transaction that comes next, and takes contents for C strings."""

    def logical_message(self, message: Any) -> None:
        self.waiting = [*getattr(self, "waiting", ()), message]

    def lines(self, changes: list[Any]) -> Any:
        waiting, self.waiting = getattr(self, "waiting", []), []
        yield from super().lines([*waiting, *changes])

    def content(self, content: bytes) -> str:
        return content.split(b"\0")[0].decode("latin-1")


class MixesStreams(ModelClient):
    """Keeps the changes of all streams together."""

    def starts(self, message: Any) -> None:
        super().starts(message)
        self.shared = getattr(self, "shared", [])
        self.streams[message.xid] = self.shared

    def stream_commits(self, message: Any) -> None:
        super().stream_commits(message)
        self.shared = []


class FirstSegmentOnly(ModelClient):
    """Takes each Stream Start for the first one of its transaction."""

    def starts(self, message: Any) -> None:
        super().starts(message)
        self.streams[message.xid] = []


class StreamsEndWithTheOpenOne(ModelClient):
    """Commits the transaction that was streamed last."""

    last = 0

    def starts(self, message: Any) -> None:
        super().starts(message)
        self.last = message.xid

    def stream_commits(self, message: Any) -> None:
        self.committed(self.streams.pop(self.last, []), message.commit_lsn, message.end_lsn)


class EndsAtCommitsOnly(ModelClient):
    """Does not know the ends of streamed transactions."""

    def stream_commits(self, message: Any) -> None:
        self.streams.pop(message.xid, None)


class SubtransactionsApart(ModelClient):
    """Reports a subtransaction as a transaction of its own."""

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        lines = []
        for xid, message in changes:
            lines += [{**line, "transaction": f"{self.number} {xid}"} for line in self.lines([message])]
        self.number += 1
        for line in lines:
            self.report(line)
        self.ended(end)


class UsesTheTopXid(ModelClient):
    """Takes the xid of a stream for that of its changes, and so keeps what is rolled back with a subtransaction."""

    def xid_of(self, message: Any) -> int:
        return self.in_stream or 0


class IgnoresAborts(ModelClient):
    """Keeps what is rolled back, and commits it with the next transaction."""

    def stream_aborts(self, message: Any) -> None:
        self.outside("Stream Abort")
        if message.xid == message.subxid:
            self.waiting = [*getattr(self, "waiting", ()), *self.streams.pop(message.xid, [])]

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        waiting, self.waiting = getattr(self, "waiting", []), []
        super().committed([*waiting, *changes], commit_lsn, end)


class AbortsEverything(ModelClient):
    """Takes each Stream Abort for that of the whole transaction."""

    def stream_aborts(self, message: Any) -> None:
        self.streams[message.xid] = []


class AbortsWhatFollows(ModelClient):
    """Discards with a subtransaction all others of the same segment and after it."""

    def stream_aborts(self, message: Any) -> None:
        kept = self.streams.get(message.xid, [])
        xids = [xid for xid, _ in kept]
        if message.subxid in xids:
            self.streams[message.xid] = kept[: max(xids.index(message.subxid) - 1, 0)]
        elif message.xid == message.subxid:
            self.streams.pop(message.xid, None)


class AbortsAllStreams(ModelClient):
    """Discards all streams when one is rolled back."""

    def stream_aborts(self, message: Any) -> None:
        self.streams.clear()


class RefusesUnknownAborts(ModelClient):
    """Refuses the abort of what it does not know, and one without an LSN."""

    def stream_aborts(self, message: Any) -> None:
        xids = {xid for xid, _ in self.streams.get(message.xid, ())}
        if message.subxid not in xids | {message.xid} or message.abort_lsn == 0:
            raise Refused("an abort of something unknown")
        super().stream_aborts(message)


class RefusesCommitsOfNothing(ModelClient):
    """Refuses the commit of a streamed transaction of which nothing is left."""

    def stream_commits(self, message: Any) -> None:
        if not self.streams.get(message.xid):
            raise Refused("a transaction without changes")
        super().stream_commits(message)


class ReadsLongAborts(ModelClient):
    """Reads Stream Aborts always with LSN and time."""

    def parse(self, data: bytes) -> Any:
        if data[:1] == b"A" and len(data) < 25:
            raise pgo.DecodeError("StreamAbort", 9, "StreamAbort", "16 bytes are missing")
        return super().parse(data)


class StreamsDescribeNothing(ModelClient):
    """Uses descriptions of streams within these alone."""

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        before = dict(self.relations)
        super().committed(changes, commit_lsn, end)
        self.relations = before if changes and changes[0][0] is not None else self.relations


class StreamsDescribeAtOnce(ModelClient):
    """Uses descriptions of streams from their arrival on."""

    def change(self, message: Any) -> None:
        super().change(message)
        if isinstance(message, pgo.Relation):
            self.describe(message)

    def lines(self, changes: list[Any]) -> Any:
        yield from super().lines([each for each in changes if not isinstance(each, pgo.Relation)])

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        pairs = zip(relation.columns, values, strict=False)
        return {self.name(column): self.value(value, column) for column, value in pairs if value is not pgo.UNCHANGED}


class DescribesPerSubtransaction(ModelClient):
    """Uses what a subtransaction describes within it alone."""

    def lines_of(self, changes: list[Any]) -> Any:
        own: dict[int | None, set[int]] = {}
        for xid, message in changes:
            if isinstance(message, pgo.Relation):
                own.setdefault(xid, set()).add(message.relation_oid)
            elif getattr(message, "relation_oid", None) not in own.get(xid, ()) and xid is not None:
                raise Refused("a table that the subtransaction has not described")
            yield from self.lines([message])

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        self.number += 1
        for line in [*self.lines_of(changes)]:
            self.report(line)
        self.ended(end)


class RefusesDescriptionsInStreams(ModelClient):
    """Takes a known table not to be described in a stream."""

    def change(self, message: Any) -> None:
        if isinstance(message, pgo.Relation) and message.relation_oid in self.relations and message.xid:
            raise Refused("a table that is described already")
        super().change(message)


class NoKeepalivesInStreams(ModelClient):
    """Takes a keepalive within a segment for the end of that."""

    def keepalive(self, wal_end: Lsn, is_asked: bool) -> None:
        super().keepalive(wal_end, is_asked)
        self.in_stream = None


class FewStreams(ModelClient):
    """Keeps at most 16 transactions at a time, and 100 segments of one."""

    def starts(self, message: Any) -> None:
        super().starts(message)
        self.count = getattr(self, "count", 0) + 1
        if len(self.streams) > 16 or self.count > 100:
            raise Refused("too much is streamed")


class OnePrepared(ModelClient):
    """Keeps one prepared transaction, whatever its gid."""

    def is_prepared(self, gid: str, changes: list[Any], end: Lsn) -> None:
        self.prepared.clear()
        super().is_prepared("the one", changes, end)

    def commits_prepared(self, message: Any) -> None:
        self.committed(self.prepared.pop("the one", []), message.commit_lsn, message.end_lsn)


class RollsBackNothing(ModelClient):
    """Takes a Rollback Prepared for a Commit Prepared."""

    def rolls_back_prepared(self, message: Any) -> None:
        self.committed(self.prepared.pop(message.gid, []), message.rollback_end_lsn, message.rollback_end_lsn)


class RefusesUnknownGids(ModelClient):
    """Refuses the end of a prepared transaction that it does not know, and gids that are not plain, or were used."""

    def __init__(self, *arguments: Any) -> None:
        self.used: set[str] = set()
        super().__init__(*arguments)

    def is_prepared(self, gid: str, changes: list[Any], end: Lsn) -> None:
        if gid in self.used or not gid.replace(" ", "").isalnum() or len(gid) > 63:
            raise Refused("an invalid gid")
        self.used.add(gid)
        super().is_prepared(gid, changes, end)

    def rolls_back_prepared(self, message: Any) -> None:
        if message.gid not in self.prepared:
            raise Refused("an unknown gid")
        super().rolls_back_prepared(message)


class ForgetsPrepared(ModelClient):
    """Keeps what is prepared in memory only as long as the connection lasts."""

    def reset(self) -> None:
        super().reset()
        self.prepared = {}


class CommitsOnLoss(ModelClient):
    """Reports what is prepared when the connection is lost."""

    def reset(self) -> None:
        for changes in self.prepared.values():
            self.number += 1
            for line in self.lines([message for _, message in changes]):
                self.report(line)
        self.prepared = {}
        super().reset()


class IgnoresStreamedPrepares(ModelClient):
    """Does not know Stream Prepare."""

    def stream_prepares(self, message: Any) -> None:
        self.streams.pop(message.xid, None)


class RefusesUnasked(ModelClient):
    """Refuses messages of options that it did not ask for."""

    def dispatch(self, message: Any) -> None:
        if isinstance(message, pgo.BeginPrepare) and not self.options["two_phase"]:
            raise Refused("a prepared transaction")
        super().dispatch(message)


class NeverReplies(ModelClient):
    """Sends no status when a keepalive asks for one."""

    def keepalive(self, wal_end: Lsn, is_asked: bool) -> None:
        self.told = max(self.told, wal_end)


class NeverConfirms(ModelClient):
    """Confirms nothing."""

    def confirm(self, lsn: Lsn) -> None:
        super().confirm(Lsn(0))


class ConfirmsCommits(ModelClient):
    """Confirms the LSN of a commit record, not of its end."""

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        super().committed(changes, commit_lsn, end)
        self.at = commit_lsn

    def flush_lsn(self) -> Lsn:
        return getattr(self, "at", Lsn(0))


class ConfirmsStoredOnly(ModelClient):
    """Never confirms the LSN of a keepalive."""

    def flush_lsn(self) -> Lsn:
        return self.stored


class FailsInStorms(ModelClient):
    """Takes a few keepalives in a row."""

    count = 0

    def keepalive(self, wal_end: Lsn, is_asked: bool) -> None:
        self.count += 1
        if self.count > 100:
            raise Refused("too many keepalives")
        super().keepalive(wal_end, is_asked)


class WaitsForItsConsumer(ModelClient):
    """Does nothing else while its consumer is slow."""

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        super().committed(changes, commit_lsn, end)
        self.is_stopped.wait(len(changes) / 100 if len(changes) > 500 else 0)


class EndsWhenLost(ModelClient):
    """Waits for ever when the connection is lost."""

    def reset(self) -> None:
        if hasattr(self, "relations"):
            self.is_stopped.wait()
        super().reset()


class EndsQuietly(ModelClient):
    """Ends without a word for what it does not accept."""

    def run(self) -> None:
        try:
            super().run()
        except Refused:
            return


class KeepsTheTransaction(ModelClient):
    """Keeps what has come of a transaction when the connection is lost, also of streams."""

    def reset(self) -> None:
        kept = getattr(self, "open", None), dict(getattr(self, "streams", {}))
        super().reset()
        self.kept, self.streams = kept[0] or [], kept[1]

    def begins(self, message: Any) -> None:
        super().begins(message)
        self.open, self.kept = self.kept, []

    def starts(self, message: Any) -> None:
        kept = self.streams.get(message.xid)
        super().starts(message)
        self.streams[message.xid] = kept if kept is not None else self.streams[message.xid]


class KeepsStreams(KeepsTheTransaction):
    """Keeps what has come of streamed transactions, and commits it with the next one."""

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        for xid in [*self.streams]:
            if any("done" not in getattr(self.relations.get(m.relation_oid), "name", "") for _, m in changes):
                changes = [*self.streams.pop(xid), *changes]
        super().committed(changes, commit_lsn, end)


class KeepsBytes(ModelClient):
    """Keeps a part of a message when the connection is lost."""

    def reset(self) -> None:
        kept = getattr(self, "received", b"")
        super().reset()
        self.received = kept


class KeepsDescriptions(ModelClient):
    """Keeps descriptions of tables when the connection is lost, and ignores those of known OIDs."""

    def reset(self) -> None:
        kept = getattr(self, "relations", {})
        super().reset()
        self.relations = kept

    def describe(self, message: Any) -> None:
        self.relations.setdefault(message.relation_oid, message)


class Repeats(ModelClient):
    """Reports again what comes again."""

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        self.stored = Lsn(0)
        super().committed(changes, commit_lsn, end)

    def start_lsn(self) -> Lsn:
        return Lsn(0)


class SkipsAfterACrash(ModelClient):
    """Takes what comes again after a crash for the end, and skips as many transactions as it has."""

    def connect(self) -> None:
        self.skips = self.number
        super().connect()

    def start_lsn(self) -> Lsn:
        return Lsn(0)

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        if self.skips:
            self.skips -= 1
            return
        self.stored = Lsn(0)
        super().committed(changes, commit_lsn, end)


class GivesUp(ModelClient):
    """Waits for ever after an error of the server."""

    def is_transient(self, sqlstate: str) -> bool:
        self.is_stopped.wait()
        return False


class WaitsForEver(ModelClient):
    """Never takes a connection for lost that is silent."""

    def silent(self) -> bytes:
        self.is_stopped.wait()
        return b""


class Impatient(ModelClient):
    """Ends when nothing has come for half a second."""

    def connect(self) -> None:
        super().connect()
        self.socket.settimeout(0.3)

    def silent(self) -> bytes:
        raise Refused("nothing came for half a second")


class ReadsSegments(ModelClient):
    """Takes what has come together for whole messages."""

    def fill(self) -> None:
        had = bool(self.received)
        super().fill()
        if had and len(self.received) < 64:
            raise Refused("a message that is too short")


class KnowsNoPasswords(ModelClient):
    """Does not know how to log in."""

    def authenticate(self, kind: int, data: bytes, scram: Any) -> Any:
        if kind:
            raise Refused(f"unknown authentication {kind}")


class KnowsNoTrust(ModelClient):
    """Wants to be asked for a password."""

    def authenticate(self, kind: int, data: bytes, scram: Any) -> Any:
        if kind == 0 and scram is None:
            raise Refused("no password was asked for")
        return super().authenticate(kind, data, scram) or True


class KnowsNoNotices(ModelClient):
    """Refuses what comes asynchronously."""

    def asynchronous(self, tag: bytes) -> None:
        raise Refused(f"an unexpected message {tag!r}")


class KnowsFieldsOfNotices(ModelClient):
    """Refuses notices with fields that it does not know."""

    def message(self) -> tuple[bytes, bytes]:
        tag, body = super().message()
        if tag == b"N" and any(part[:1] not in b"SVCMDHPpqWstcdnFLR" for part in body.split(b"\0") if part):
            raise Refused("a notice with an unknown field")
        return tag, body


class PlainNames(ModelClient):
    """Does not quote the name of a publication."""

    def quoted(self, name: str) -> str:
        return name


class NewestOnly(ModelClient):
    """Asks for everything that PostgreSQL 18 has."""

    def command(self) -> str:
        return super().command().replace("proto_version '1'", "proto_version '4', streaming 'parallel', origin 'any'")

    def parse(self, data: bytes) -> Any:
        return pgo.parse(data, proto_version=4, streaming="parallel", in_stream=False)


class FailsOnAnyServer(NewestOnly):
    """Asks for an option that no server has."""

    def command(self) -> str:
        return super().command().replace("origin 'any'", "sequences 'true'")


class SmallMessages(ModelClient):
    """Takes messages of up to 64 kB, tables of up to 100 columns, 1000 changes of a transaction, 100 tables."""

    def check_length(self, length: int) -> None:
        super().check_length(length)
        if length > 1 << 16:
            raise Refused("a message that is too long")

    def describe(self, message: Any) -> None:
        super().describe(message)
        if len(message.columns) > 100 or len(self.relations) > 100:
            raise Refused("too many columns, or tables")

    def change(self, message: Any) -> None:
        super().change(message)
        if len(self.open or ()) > 1000 or any(len(each) > 400 for each in self.streams.values()):
            raise Refused("too many changes")


class FewTransactions(ModelClient):
    """Takes 500 transactions."""

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        super().committed(changes, commit_lsn, end)
        if self.number > 500:
            raise Refused("too many transactions")


class RefusesOtherFrames(ModelClient):
    """Refuses frames other than XLogData and keepalives."""

    def unknown_frame(self, data: bytes) -> None:
        raise Refused("an unknown frame")


class RefusesRelationsAgain(ModelClient):
    """Takes each table to be described once."""

    def change(self, message: Any) -> None:
        if isinstance(message, pgo.Relation) and message.relation_oid in self.relations:
            raise Refused("a table that is described already")
        super().change(message)


class RefusesUnchangedInInserts(ModelClient):
    """Wants all values of an inserted row."""

    def change(self, message: Any) -> None:
        if isinstance(message, pgo.Insert) and pgo.UNCHANGED in message.new:
            raise Refused("an insert without a value")
        super().change(message)


class KeepsTypes(ModelClient):
    """Keeps the first type of each column."""

    def __init__(self, *arguments: Any) -> None:
        self.types: dict[str, int] = {}
        super().__init__(*arguments)

    def text(self, value: bytes, column: Any) -> Any:
        return int(value) if self.types.setdefault(column.name, column.type_oid) == 23 else value.decode()


class KeepsIdentities(ModelClient):
    """Keeps the first key of each table, and reports of an old row its columns alone."""

    def __init__(self, *arguments: Any) -> None:
        self.keys: dict[str, set[str]] = {}
        super().__init__(*arguments)

    def old_row(self, relation: Any, values: Any, is_key: bool) -> dict[str, Any]:
        keys = self.keys.setdefault(relation.name, {self.name(c) for c in relation.columns if c.flags & 1})
        return {name: value for name, value in super().old_row(relation, values, is_key).items() if name in keys}


class NeverEndsPrepared(ModelClient):
    """Does not know Commit Prepared."""

    def commits_prepared(self, message: Any) -> None:
        self.prepared.pop(message.gid, None)


class ConfirmsReceived(ModelClient):
    """Confirms what it has received before it has stored it, which takes a while."""

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        self.confirm(end)
        self.is_stopped.wait(0.05)
        super().committed(changes, commit_lsn, end)


class ConfirmsKeepalives(ModelClient):
    """Confirms the LSN of each keepalive, and stores what has come when there is nothing else to do."""

    waiting: tuple[Any, ...] = ()

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        self.waiting = (*self.waiting, (changes, commit_lsn, end))
        if any(getattr(self.relations.get(m.relation_oid), "name", "") == "done" for _, m in changes):
            self.store()

    def keepalive(self, wal_end: Lsn, is_asked: bool) -> None:
        self.confirm(wal_end)
        self.is_stopped.wait(0.05)
        self.store()

    def store(self) -> None:
        waiting, self.waiting = self.waiting, ()
        for each in waiting:
            super().committed(*each)


class ConfirmsOpenOnes(ModelClient):
    """Confirms the end of a transaction when its Begin, or first segment, has come."""

    def begins(self, message: Any) -> None:
        super().begins(message)
        self.confirm(Lsn(getattr(message, "final_lsn", 0) + 0x40))
        self.is_stopped.wait(0.05)

    def starts(self, message: Any) -> None:
        super().starts(message)
        self.confirm(Lsn(1 << 40))
        self.is_stopped.wait(0.05)


class AsksForTooMuch(ModelClient):
    """Asks after a lost connection for what follows the last LSN that it was sent."""

    seen = Lsn(0)

    def frame(self, data: bytes) -> None:
        super().frame(data)
        if data[:1] == b"w":
            self.seen = max(self.seen, Lsn(struct.unpack_from(">Q", data, 1)[0] + 0x40))

    def start_lsn(self) -> Lsn:
        return Lsn(self.seen)

    def begins(self, message: Any) -> None:
        super().begins(message)
        self.seen = max(self.seen, Lsn(message.final_lsn + 0x40))


class ContinuesFromOrigins(ModelClient):
    """Takes the LSN of an Origin for one to continue from."""

    seen = Lsn(0)

    def origin(self, message: Any) -> None:
        self.seen = message.origin_lsn

    def start_lsn(self) -> Lsn:
        return max(self.seen, self.stored)


class ReadsShortAborts(ModelClient):
    """Reads Stream Aborts always without LSN and time, and takes these for what comes next."""

    def parse(self, data: bytes) -> Any:
        if data[:1] == b"A" and len(data) > 9:
            raise Refused(f"{len(data) - 9} bytes after a Stream Abort")
        return super().parse(data)


PROOFS: Final[Mapping[str, type[ModelClient]]] = {
    "handshake/trust": KnowsNoTrust,
    "handshake/password": KnowsNoPasswords,
    "handshake/scram": KnowsNoPasswords,
    "handshake/byte-by-byte": ReadsSegments,
    "handshake/greetings": KnowsFieldsOfNotices,
    "handshake/notice-in-stream": KnowsNoNotices,
    "handshake/setting-in-stream": KnowsNoNotices,
    "handshake/odd-publication": PlainNames,
    "handshake/refused": EndsQuietly,
    "handshake/login-refused": EndsQuietly,
    "handshake/server-14": NewestOnly,
    "handshake/server-15": NewestOnly,
    "handshake/server-16": FailsOnAnyServer,
    "handshake/server-17": FailsOnAnyServer,
    "v1/insert": IgnoresInserts,
    "v1/update": TakesUpdatesForInserts,
    "v1/delete": LeavesOutDeletes,
    "v1/changes-in-order": SortsChanges,
    "v1/transactions-in-order": SortsTransactions,
    "v1/several-tables": NamesWithoutSchema,
    "v1/held-until-commit": ReportsEarly,
    "v1/empty-transaction": RefusesEmptyTransactions,
    "v1/type-message": RefusesTypes,
    "v1/unused-relation": RefusesUnusedRelations,
    "v1/relation-again": RefusesRelationsAgain,
    "v1/unsigned-numbers": SignedNumbers,
    "v1/xid-again": XidsAreUnique,
    "v1/times": DatesOfPython,
    "v1/names": FoldsNames,
    "v1/no-columns": SkipsEmptyRows,
    "v1/texts": Latin1,
    "values/booleans": PythonValues,
    "values/integers": PythonValues,
    "values/numerics": PythonValues,
    "values/floats": PythonValues,
    "values/characters": Latin1,
    "values/bytes": PythonValues,
    "values/dates": PythonValues,
    "values/documents": PythonValues,
    "values/arrays": PythonValues,
    "values/others": PythonValues,
    "values/user-types": TextTypesOnly,
    "values/binary-numbers": BinaryAsText,
    "values/binary-texts": BinaryAsText,
    "values/binary-times": BinaryAsText,
    "values/binary-arrays": BinaryAsText,
    "values/binary-and-text": AllBinary,
    "values/binary-user-type": TextTypesOnly,
    "values/binary-old-rows": BinaryAsText,
    "rows/nulls": EmptyForNull,
    "rows/null-in-full-row": LosesNullsOfOldRows,
    "rows/unchanged": NullForUnchanged,
    "rows/unchanged-in-middle": ShiftsAfterUnchanged,
    "rows/unchanged-and-key-moves": LosesOldKeys,
    "rows/unchanged-in-full-row": LosesOldKeys,
    "rows/unchanged-in-key": LosesOldKeys,
    "rows/unchanged-in-insert": RefusesUnchangedInInserts,
    "rows/key-moves": LosesOldKeys,
    "rows/key-of-two-columns": KeyIsTheFirstColumn,
    "rows/old-key-only": NullsOfOldKeys,
    "rows/full-rows": LosesOldKeys,
    "rows/equal-rows": EqualRowsAreOne,
    "rows/identity-of-index": KeyIsTheFirstColumn,
    "rows/identity-nothing": RefusesNoIdentity,
    "rows/key-used-again": SortsChanges,
    "relations/column-added": FirstDescriptionStays,
    "relations/column-dropped": OldColumnsStay,
    "relations/column-renamed": FirstDescriptionStays,
    "relations/columns-swapped": FirstDescriptionStays,
    "relations/type-changed": KeepsTypes,
    "relations/within-a-transaction": LastDescriptionCounts,
    "relations/table-renamed": FirstDescriptionStays,
    "relations/table-created-again": NamesWithoutSchema,
    "relations/oid-used-again": FirstDescriptionStays,
    "relations/identity-changed": KeepsIdentities,
    "relations/altered-while-another-is-not": ForgetsOtherTables,
    "relations/type-modifiers": RefusesModifiers,
    "truncate/one-table": IgnoresTruncates,
    "truncate/several-tables": TruncatesFirst,
    "truncate/among-changes": TruncatesFirst,
    "truncate/restart-identity": RefusesTruncateOptions,
    "truncate/cascade": RefusesTruncateOptions,
    "origins/of-a-transaction": RefusesOrigins,
    "origins/names": RefusesOrigins,
    "origins/without-changes": RefusesOrigins,
    "origins/lsn": RefusesOrigins,
    "messages/transactional": MessagesAreTransactional,
    "messages/alone": IgnoresMessages,
    "messages/not-transactional": MessagesAreTransactional,
    "messages/contents": MessagesAreTransactional,
    "messages/flags": MessagesAreTransactional,
    "streams/one-segment": EndsAtCommitsOnly,
    "streams/several-segments": FirstSegmentOnly,
    "streams/held-until-commit": ReportsEarly,
    "streams/interleaved": MixesStreams,
    "streams/committed-in-other-order": StreamsEndWithTheOpenOne,
    "streams/others-between": SortsTransactions,
    "streams/empty-segments": RefusesEmptyTransactions,
    "streams/subtransaction-kept": SubtransactionsApart,
    "streams/relation-in-each": RefusesDescriptionsInStreams,
    "streams/relation-of-a-subtransaction": DescribesPerSubtransaction,
    "streams/relation-stays-known": StreamsDescribeNothing,
    "streams/altered-in-stream": StreamsDescribeAtOnce,
    "streams/all-kinds-of-changes": NullForUnchanged,
    "streams/origin": RefusesOrigins,
    "streams/keepalives": NoKeepalivesInStreams,
    "streams/many-segments": FewStreams,
    "streams/many-at-a-time": FewStreams,
    "streams/xid-again": XidsAreUnique,
    "streams/xid-unsigned": SignedNumbers,
    "streams/message": IgnoresMessages,
    "streams/aborted": IgnoresAborts,
    "streams/one-of-two-aborted": AbortsAllStreams,
    "streams/subtransaction-aborted": UsesTheTopXid,
    "streams/subtransaction-aborted-last": UsesTheTopXid,
    "streams/every-other-aborted": AbortsWhatFollows,
    "streams/nested-aborted": AbortsEverything,
    "streams/inner-aborted": AbortsEverything,
    "streams/everything-aborted": RefusesCommitsOfNothing,
    "streams/unseen-subtransaction-aborted": RefusesUnknownAborts,
    "streams/altered-and-aborted": RefusesRelationsAgain,
    "streams/of-two-streams": ReadsLongAborts,
    "parallel/aborted": ReadsShortAborts,
    "parallel/one-of-two-aborted": AbortsAllStreams,
    "parallel/subtransaction-aborted": UsesTheTopXid,
    "parallel/subtransaction-aborted-last": UsesTheTopXid,
    "parallel/every-other-aborted": AbortsWhatFollows,
    "parallel/nested-aborted": ReadsShortAborts,
    "parallel/inner-aborted": AbortsEverything,
    "parallel/everything-aborted": RefusesCommitsOfNothing,
    "parallel/unseen-subtransaction-aborted": RefusesUnknownAborts,
    "parallel/altered-and-aborted": RefusesRelationsAgain,
    "parallel/of-two-streams": ReadsShortAborts,
    "parallel/lost-in-a-crash": RefusesUnknownAborts,
    "parallel/committed": StreamsEndWithTheOpenOne,
    "two-phase/committed": NeverEndsPrepared,
    "two-phase/held-until-commit": CommitsAtPrepare,
    "two-phase/rolled-back": RollsBackNothing,
    "two-phase/others-between": SortsTransactions,
    "two-phase/several": OnePrepared,
    "two-phase/gids": RefusesUnknownGids,
    "two-phase/gid-again": RefusesUnknownGids,
    "two-phase/empty": RefusesEmptyTransactions,
    "two-phase/unknown-rolled-back": RefusesUnknownGids,
    "two-phase/cut-after-prepare": ForgetsPrepared,
    "two-phase/cut-after-confirmed-prepare": ForgetsPrepared,
    "two-phase/cut-before-rollback": CommitsOnLoss,
    "two-phase/origin": RefusesOrigins,
    "two-phase/all-kinds-of-changes": IgnoresTruncates,
    "two-phase/streamed": IgnoresStreamedPrepares,
    "two-phase/streamed-rolled-back": RollsBackNothing,
    "two-phase/streamed-with-aborts": UsesTheTopXid,
    "two-phase/not-asked-for": RefusesUnasked,
    "feedback/asked": NeverReplies,
    "feedback/asked-at-the-start": NeverReplies,
    "feedback/asked-in-a-transaction": NeverReplies,
    "feedback/asked-in-a-stream": NeverReplies,
    "feedback/storm": FailsInStorms,
    "feedback/confirms-what-is-stored": ConfirmsCommits,
    "feedback/confirms-nothing-else": ConfirmsReceived,
    "feedback/open-transaction": ConfirmsOpenOnes,
    "feedback/open-stream": ConfirmsOpenOnes,
    "feedback/streams-are-confirmed": NeverConfirms,
    "feedback/keepalive-ahead": ConfirmsKeepalives,
    "feedback/quiet-database": ConfirmsStoredOnly,
    "feedback/quiet-from-the-start": ConfirmsStoredOnly,
    "feedback/slow-consumer": WaitsForItsConsumer,
    "feedback/long-transaction": NeverReplies,
    "reconnects/before-anything": EndsWhenLost,
    "reconnects/between-transactions": EndsWhenLost,
    "reconnects/within-a-transaction": KeepsTheTransaction,
    "reconnects/before-the-commit": KeepsTheTransaction,
    "reconnects/inside-a-message": KeepsBytes,
    "reconnects/closed-in-order": EndsWhenLost,
    "reconnects/server-shuts-down": EndsWhenLost,
    "reconnects/server-reports-an-error": GivesUp,
    "reconnects/several-times": AsksForTooMuch,
    "reconnects/confirmed-is-not-sent-again": SkipsAfterACrash,
    "reconnects/asks-for-nothing-unread": AsksForTooMuch,
    "reconnects/descriptions-are-forgotten": KeepsDescriptions,
    "reconnects/once": Repeats,
    "reconnects/server-crashes": EndsWhenLost,
    "reconnects/within-a-segment": KeepsStreams,
    "reconnects/between-segments": KeepsStreams,
    "reconnects/before-a-stream-commit": KeepsStreams,
    "reconnects/streams-in-another-order": KeepsStreams,
    "reconnects/streamed-then-whole": KeepsStreams,
    "reconnects/server-starts-up": GivesUp,
    "reconnects/slot-is-active": GivesUp,
    "reconnects/origin-lsn": ContinuesFromOrigins,
    "links/in-pieces": ReadsSegments,
    "links/byte-by-byte": ReadsSegments,
    "links/silence": Impatient,
    "links/pause-within-a-message": Impatient,
    "links/half-open": WaitsForEver,
    "links/burst": FewTransactions,
    "sizes/large-value": SmallMessages,
    "sizes/large-rows": SmallMessages,
    "sizes/many-columns": SmallMessages,
    "sizes/long-transaction": SmallMessages,
    "sizes/long-stream": SmallMessages,
    "sizes/many-subtransactions": FewStreams,
    "sizes/ten-thousand-relations": SmallMessages,
    "sizes/large-message": SmallMessages,
    "damage/commit-of-another": TrustsLsns,
    "damage/begin-without-lsn": TrustsLsns,
    "damage/prepare-of-another": TrustsLsns,
    "damage/copy-data-without-length": EndsQuietly,
    "damage/copy-data-of-negative-length": EndsQuietly,
    "damage/*": SkipsWhatItCannotRead,
    "versions/other-frame": RefusesOtherFrames,
    "versions/*": SkipsWhatItCannotRead,
}
"""For each case, or each of a group, a client that is wrong in just this way, and fails it."""
