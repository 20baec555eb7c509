"""Whatever is copied when, and whenever a client comes or comes back: its tables are those of the server in the end."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog._facts.visibility import Visibility
from pgoutput_construct.publisher._feed.cursor import Cursor
from pgoutput_construct.publisher.log_feed import LogFeed
from tests.publisher.logs import OPTIONS, WrittenLog, insert, relation, served

pytestmark = pytest.mark.slow

TABLES = (1, 2, 3)


@dataclass
class _Copy:
    """A table copy whose rows are read, and which is not yet complete."""

    table: int
    rows: list[str]
    lsn: int
    visibility: Visibility


@dataclass
class _Server:
    """A server whose changes, and copies of tables, come into a log."""

    log: WrittenLog
    chance: random.Random
    lsn: int = 1000
    xid: int = 700
    rows: list[tuple[int, str, int, int]] = field(default_factory=list)
    """Table, value, commit LSN and xid of each inserted row."""
    prepared: list[tuple[int, list[tuple[int, str]]]] = field(default_factory=list)
    """The xids and rows of transactions that are prepared."""
    copies: list[_Copy] = field(default_factory=list)
    described: set[int] = field(default_factory=set)
    copied: set[int] = field(default_factory=set)
    """The tables of which a copy is complete."""
    seen: set[int] = field(default_factory=set)
    """The xids that some snapshot saw: each later one does."""
    last_read: int = 0
    """The LSN of the last snapshot."""

    def step(self) -> None:
        """Do something, and make a segment of it now and then."""
        kinds = [self.commit, self.commit, self.commit, self.prepare, self.finish, self.read, self.complete]
        self.chance.choice(kinds)()
        if self.chance.random() < 0.6:
            self.log.publish(self.lsn)

    def end(self) -> None:
        """End what is under way."""
        while self.prepared:
            self.finish()
        while self.copies:
            self.complete()
        self.commit()
        self.log.publish(self.lsn)

    def changes(self) -> list[tuple[int, str]]:
        self.xid += 1
        tables = self.chance.choices(TABLES, k=self.chance.randint(1, 3))
        return [(table, f"{table}:{self.xid}.{number}") for number, table in enumerate(tables)]

    def messages(self, changes: Iterable[tuple[int, str]]) -> list[pgo.PgoutputMessage]:
        found = list[pgo.PgoutputMessage]()
        for table, value in changes:
            if table not in self.described:
                self.described.add(table)
                found.append(relation(table))
            found.append(insert(table, value))
        return found

    def commit(self) -> None:
        changes = self.changes()
        begin, self.lsn = self.lsn + self.chance.randint(40, 90), self.lsn + 200
        self.log.commit(self.xid, begin, self.lsn, *self.messages(changes))
        self.rows += [(table, value, begin, self.xid) for table, value in changes]

    def prepare(self) -> None:
        changes = self.changes()
        begin, self.lsn = self.lsn + 50, self.lsn + 200
        numbers = pgo.Lsn(begin), pgo.Lsn(self.lsn), pgo.Timestamp(0), self.xid, f"gid {self.xid}"
        self.log.put(pgo.BeginPrepare(*numbers), *self.messages(changes), pgo.Prepare(*numbers))
        self.prepared.append((self.xid, changes))

    def finish(self) -> None:
        if self.prepared:
            xid, changes = self.prepared.pop(self.chance.randrange(len(self.prepared)))
            begin, self.lsn = self.lsn + 50, self.lsn + 200
            end = pgo.Lsn(begin), pgo.Lsn(self.lsn), pgo.Timestamp(0), xid, f"gid {xid}"
            self.log.put(pgo.CommitPrepared(*end))
            self.rows += [(table, value, begin, xid) for table, value in changes]

    def read(self) -> None:
        """Read a table under a snapshot that does not see some of the last commits: they wait for a standby."""
        table, recent = self.chance.choice(TABLES), sorted({(lsn, xid) for _, _, lsn, xid in self.rows})[-4:]
        hidden = {xid for _, xid in recent if xid not in self.seen and self.chance.random() < 0.4}
        place = min((lsn for lsn, xid in recent if xid in hidden), default=self.lsn)
        contained = frozenset(xid for _, _, lsn, xid in self.rows if lsn >= place and xid not in hidden)
        visibility = Visibility(pgo.Lsn(place), contained, pgo.Lsn(self.lsn))
        rows = [f"{table}:before", *(value for of, value, _, xid in self.rows if of == table and xid not in hidden)]
        self.seen |= {xid for _, _, _, xid in self.rows} - hidden
        self.last_read = self.chance.randint(max(self.last_read, place), self.lsn)
        self.copies.append(_Copy(table, rows, self.last_read, visibility))

    def complete(self) -> None:
        """Write a copy into the log: any of one table is complete before a later one of it begins."""
        if self.copies:
            copy = self.copies.pop(0)
            self.log.copy(copy.table, self.xid, copy.rows, copy.lsn, visibility=copy.visibility)
            self.copied.add(copy.table)

    def expected(self, table: int) -> Counter[str]:
        before = [f"{table}:before"] if table in self.copied else []
        return Counter([*before, *(value for of, value, _, _ in self.rows if of == table)])


class _Client:
    """Who is served, and what its slot notes, as ``WalSender`` does."""

    def __init__(self, feed: LogFeed, two_phase_at: int | None, after: int = 0) -> None:
        self.feed, self.two_phase_at = feed, two_phase_at
        self.tables = {table: Counter[str]() for table in TABLES}
        self.confirmed, self.copied = after, -1
        self.connect()

    def connect(self) -> None:
        """Come, or come back."""
        copied = self.copied if self.confirmed else self.feed.order().copied_until
        self.cursor = Cursor(self.feed, OPTIONS, self.confirmed, copied, self.two_phase_at)

    def read(self, confirms: bool) -> None:
        """Apply all that there is, and confirm it, and the LSN of the keepalive that follows."""
        position = self.feed.position
        for each in served(self.cursor):
            if each.startswith("truncate"):
                self.tables[int(each[-1])].clear()
            elif not each.startswith("@"):
                self.tables[int(each[0])][each] += 1
        reached = max(self.cursor.position, position)
        self.cursor.told = max(self.cursor.told, reached)
        if confirms:
            self.confirmed = self.cursor.confirmed = max(self.confirmed, reached)
        if not self.cursor.has_late:
            self.copied = max(self.copied, self.cursor.copied)


@pytest.mark.parametrize(
    ("seed", "two_phase_at"),
    [
        (0, 0),
        (1, None),
        *(
            pytest.param(seed, at, marks=pytest.mark.long)
            for seed in range(6)
            for at in (None, 0)
            if (seed, at) not in ((0, 0), (1, None))
        ),
    ],
)
def test_tables_are_those_of_the_server(seed: int, two_phase_at: int | None, tmp_path: Path) -> None:
    """A client that follows, one that comes back now and then, and one that comes in the end have the same rows."""
    chance = random.Random(seed)
    server = _Server(WrittenLog(tmp_path), chance)
    server.commit()
    server.log.publish(server.lsn)
    feed = server.log.feed()
    follows, comes_back = _Client(feed, two_phase_at), _Client(feed, two_phase_at)
    for _ in range(25):
        server.step()
        feed.refresh()
        if chance.random() < 0.7:
            follows.read(confirms=chance.random() < 0.8)
        if chance.random() < 0.4:
            comes_back.read(confirms=True)
            comes_back.connect()
    server.end()
    feed.refresh()
    clients = [follows, comes_back, _Client(feed, two_phase_at), _Client(server.log.feed(), two_phase_at)]
    for client in clients:
        client.read(confirms=True)
        for table in TABLES:
            assert client.tables[table] == server.expected(table), (clients.index(client), table)
        assert max(client.tables[table].total() for table in TABLES) > 1
