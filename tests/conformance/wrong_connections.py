"""Clients that are wrong on the connection: handshake, feedback, reconnection, links, and damage to what arrives."""

import struct
from contextlib import suppress
from typing import Any

import pgoutput_construct as pgo
from pgoutput_construct.wire import Lsn
from tests.conformance.model_client import Lost, ModelClient, Refused


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
        self.commits_prepared(_message_of(message))


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
    """Keeps a part of a message when the connection is lost, and waits for what it then takes for a length."""

    def reset(self) -> None:
        kept = getattr(self, "received", b"")
        super().reset()
        self.received = kept

    def check_length(self, length: int) -> None:
        pass

    def silent(self) -> bytes:
        while not self.is_stopped.is_set():
            with suppress(TimeoutError):
                return self.socket.recv(1 << 20)
        return b""


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


def _message_of(message: Any) -> Any:
    """Return the Commit Prepared of a transaction that was prepared."""
    return pgo.CommitPrepared(message.prepare_lsn, message.end_lsn, message.prepare_time, message.xid, message.gid)
