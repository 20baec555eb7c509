"""Clients that are wrong about what belongs together: streams, subtransactions, prepared transactions."""

from typing import Any

import pgoutput_construct as pgo
from pgoutput_construct.wire import Lsn
from tests.conformance.model_client import ModelClient, Refused


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


class RefusesOrigins(ModelClient):
    """Does not know Origin messages."""

    def origin(self, message: Any) -> None:
        raise Refused("an unknown message")


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


class NullForUnchanged(ModelClient):
    """Takes a value that was not sent for NULL."""

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        return dict.fromkeys(map(self.name, relation.columns)) | super().new_row(relation, values)


class IgnoresTruncates(ModelClient):
    """Reports no truncates."""

    def lines(self, changes: list[Any]) -> Any:
        yield from super().lines([each for each in changes if not isinstance(each, pgo.Truncate)])


class IgnoresMessages(ModelClient):
    """Reports no logical messages."""

    def logical_message(self, message: Any) -> None:
        pass


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


class RefusesRelationsAgain(ModelClient):
    """Takes each table to be described once."""

    def change(self, message: Any) -> None:
        if isinstance(message, pgo.Relation) and message.relation_oid in self.relations:
            raise Refused("a table that is described already")
        super().change(message)


class NeverEndsPrepared(ModelClient):
    """Does not know Commit Prepared."""

    def commits_prepared(self, message: Any) -> None:
        self.prepared.pop(message.gid, None)


class ReadsShortAborts(ModelClient):
    """Reads Stream Aborts always without LSN and time, and takes these for what comes next."""

    def parse(self, data: bytes) -> Any:
        if data[:1] == b"A" and len(data) > 9:
            raise Refused(f"{len(data) - 9} bytes after a Stream Abort")
        return super().parse(data)
