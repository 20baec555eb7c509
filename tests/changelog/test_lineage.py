"""The lineage of a log that grows is that of its plain definition; what is certain is not looked up again."""

import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct.changelog._facts.catalog_readings import CatalogColumn, TableFactsReader, TableReading
from pgoutput_construct.changelog._facts.lineage import Lineage, LineageTracker, lineage_of
from pgoutput_construct.changelog._facts.numbering import ReadingWindow
from pgoutput_construct.changelog._facts.successive_texts import RelationReader
from pgoutput_construct.changelog._facts.visibility import Visibility
from pgoutput_construct.changelog._index.row_counts import COPIED
from pgoutput_construct.changelog._segment.events import (
    BEGUN_ANEW,
    COPIED_TABLE,
    PUBLICATION_FACTS,
    TABLE_FACTS,
    EventRow,
    LogEvent,
)
from pgoutput_construct.changelog._segment.segment_index import COLUMNS, SegmentIndex, struct_array
from pgoutput_construct.columnar.descriptions import copy_scope
from pgoutput_construct.stream.transaction_reader import COMMITTED, ROLLED_BACK
from tests.changelog.plain_lineage import Found, plain_lineage, plain_numbers

INT4, TEXT, VARCHAR = 23, 25, 1043


@dataclass
class Model:
    """A table as its server has it."""

    oid: int
    columns: list[dict[str, Any]] = field(default_factory=list)
    files: dict[int, int] = field(default_factory=dict)
    types: list[dict[str, Any]] = field(default_factory=list)
    gone: bool = False
    sent: list[tuple[int, tuple[Any, ...]]] = field(default_factory=list)
    """The seqs of its descriptions, and what each has."""

    @property
    def shape(self) -> tuple[Any, ...]:
        """What a Relation has of it."""
        live = (column for column in self.columns if column.get("published"))
        return tuple((column["name"], column["type"]) for column in live)


class RandomLog:
    """A log of which all is drawn: tables that are altered, read, written, copied, published and dropped."""

    def __init__(self, seed: int, steps: int, width: int = 3) -> None:
        self.chance = random.Random(seed)
        self.seq, self.lsn, self.xid, self.chunk = 0, 100, 700, 0
        self.tables = [Model(20000 + number) for number in range(self.chance.choice([1, 2, 4]))]
        self.indexes: list[SegmentIndex] = []
        self._first: int = 0
        self._earlier: dict[int, dict[str, Any]] = {}
        self._lists: dict[str, list[dict[str, Any]]] = {name: [] for name in COLUMNS}
        for table in self.tables:
            table.files = {table.oid: 1}
            for _ in range(self.chance.randint(1, width)):
                self._add(table)
        kinds = [self._alter, self._alter, self._write, self._write, self._read, self._read, self._send, self._cut]
        kinds += [self._publish, self._copy]
        rare = [self._begin_anew, self._drop]
        for _ in range(steps):
            self.chance.choice(rare if self.chance.random() < 0.06 else kinds)(self.chance.choice(self.tables))
        self._event("options", {})
        self._cut(self.tables[0])

    def _next(self) -> int:
        self.seq, self.lsn = self.seq + 1, self.lsn + self.chance.randint(0, 3)
        return self.seq - 1

    def _event(self, name: str, details: dict[str, Any]) -> None:
        payload = LogEvent(name, details=details).payload()
        self._lists["events"].append(
            {"seq": self._next(), "name": name, "lsn": self.lsn, "time": 0, "payload": payload}
        )

    def _snapshot(self) -> list[Any]:
        xmax = self.xid + self.chance.randint(-2, 1)
        return [xmax - 3, xmax, [xid for xid in range(xmax - 3, xmax) if self.chance.random() < 0.2]]

    def _add(self, table: Model) -> None:
        name = self.chance.choice([*"abcd", f"new{self.seq}"])
        if name in {column.get("name") for column in table.columns}:
            name = f"fresh{self.seq}_{len(table.columns)}"
        column = {
            "number": len(table.columns) + 1,
            "name": name,
            "type": self.chance.choice([INT4, TEXT]),
            "modifier": -1,
        }
        column |= {"xmin": self.xid, "published": self.chance.random() < 0.9}
        if self.chance.random() < 0.1:
            column |= {"generated": "s", "published": False}
        if self.chance.random() < 0.4:
            column["missing"] = self.chance.choice(["x", '"}, {"number": 1'])
        table.columns.append(column)

    def _alter(self, table: Model) -> None:
        self.xid += 1
        live = [place for place, column in enumerate(table.columns) if not column.get("dropped")]
        what = self.chance.choice(["add", "drop", "rename", "retype", "rewrite", "list", "ungenerated", "types"])
        if what == "add" or not live:
            self._add(table)
            return
        place = self.chance.choice(live)
        column = dict(table.columns[place], xmin=self.xid)
        if what == "drop" and len(live) > 1:
            column = {"number": place + 1, "xmin": self.xid, "dropped": True}
        elif what == "rename":
            column["name"] = self.chance.choice(
                [f"r{self.seq}", "a" if all(c.get("name") != "a" for c in table.columns) else "z"]
            )
        elif what == "retype":
            column["type"] = self.chance.choice([INT4, TEXT, VARCHAR])
        elif what == "ungenerated" and column.pop("generated", None):
            column["published"] = True
        elif what == "types":
            self._alter_types(table, [column["number"] for column in table.columns])
        elif what == "list":
            column["published"] = not column["published"]
        table.columns[place] = column
        if what in ("rewrite", "retype") and self.chance.random() < 0.5:
            table.files = {oid: node + (self.chance.random() < 0.8) for oid, node in table.files.items()}
        if self.chance.random() < 0.1:
            leaves = [table.oid + 100 + leaf for leaf in range(self.chance.randint(1, 3))]
            table.files = {leaf: self.chance.choice([0, 1, 1, leaf]) for leaf in leaves}

    def _alter_types(self, table: Model, numbers: list[int]) -> None:
        labels = [[oid, self.chance.choice("abc")] for oid in range(5, self.chance.randint(6, 8))]
        attributes = [[number, INT4] for number in range(1, self.chance.randint(2, 4))]
        table.types = [
            {"type": oid, "columns": self.chance.sample(numbers, self.chance.randint(1, len(numbers))), **parts}
            for oid, parts in ((90, {"labels": labels}), (91, {"attributes": attributes}))
            if self.chance.random() < 0.9
        ]

    def _read(self, table: Model) -> None:
        for column in table.columns:
            column.pop("recent", None)
            if self.chance.random() < 0.1:
                column["recent"] = True
        facts: dict[str, Any] = {"oid": table.oid, "schema": "public", "name": f"t{table.oid}"}
        if table.gone:
            facts["gone"] = True
        else:
            facts |= {"replica_identity": "d", "created": 3, "filenodes": [[*pair] for pair in table.files.items()]}
            leaves = [oid for oid in table.files if self.chance.random() < 0.3]
            writers = [[oid, self.chance.choice([self.xid, 699])] for oid in table.files if oid != table.oid]
            facts |= {"attached": leaves, "truncated": leaves, "rewritten": writers, "columns": table.columns}
            facts |= {"types": table.types} if table.types else {}
        since = self.chance.choice([-1, self.seq, self.seq, max(0, self.seq - 3)])
        self._event(
            TABLE_FACTS,
            facts
            | {
                "since": since,
                "unchanged": self.chance.choice([-1, self.seq - 2, self.seq]),
                "snapshot": self._snapshot(),
            },
        )

    def _drop(self, table: Model) -> None:
        table.gone = not table.gone

    def _publish(self, table: Model) -> None:
        snapshot = self._snapshot()
        for name in self.chance.sample(["p", "q"], self.chance.randint(1, 2)):
            tables = [
                {"oid": each.oid, "schema": "public", "name": f"t{each.oid}", "member": self.chance.choice([None, 1])}
                for each in self.tables
                if self.chance.random() < 0.8
            ]
            operations = ["insert", "update", "delete"][: self.chance.choice([2, 3, 3, 3])]
            self._event(
                PUBLICATION_FACTS,
                {
                    "publication": name,
                    "operations": operations,
                    "tables": tables,
                    "since": self.seq,
                    "unchanged": -1,
                    "snapshot": snapshot,
                },
            )

    def _begin_anew(self, table: Model) -> None:
        void = self.chance.choice([None, self.lsn - self.chance.randint(0, 20)])
        self._event(BEGUN_ANEW, {"reason": "lost", "void_after": void, "snapshot": self._snapshot()})

    def _describe(self, table: Model, scope: int | None = None) -> int:
        columns = tuple(pgo.RelationColumn(0, name, kind, -1) for name, kind in table.shape)
        payload = pgo.build(pgo.Relation(None, table.oid, "public", "t", "d", columns))
        row = {"seq": self._next(), "stream_xid": scope, "oid": table.oid, "payload": payload, "keywords": "{}"}
        self._lists["descriptions"].append(row)
        self._earlier[row["seq"]] = row
        return int(row["seq"])

    def _send(self, table: Model) -> None:
        table.sent.append((self._describe(table), table.shape))

    def _write(self, table: Model) -> None:
        """Write rows, mostly with the latest description, in a transaction that committed, or not."""
        first = self._next()
        if not table.sent or table.sent[-1][1] != table.shape or self.chance.random() < 0.2:
            self._send(table)
        seq, _ = table.sent[-1] if self.chance.random() < 0.9 else self.chance.choice(table.sent)
        row, self.xid = self._next(), self.xid + 1
        self._row(table, -1, seq, row, 0)
        self._end(first, COMMITTED if self.chance.random() < 0.9 else ROLLED_BACK)

    def _copy(self, table: Model) -> None:
        """Copy a table in chunks; a copy may remain incomplete."""
        first = self.chunk
        for _ in range(self.chance.randint(0, 2)):
            seq = self._describe(table, copy_scope(self.chunk))
            self._row(table, COPIED, seq, self._next(), self.chunk)
            self.chunk += 1
        if self.chance.random() < 0.7:
            xmin, xmax, xip = self._snapshot()
            facts = {"oid": table.oid, "schema": "public", "table": "t", "chunks": [first, self.chunk - 1], "rows": 1}
            contains = Visibility.at(pgo.Lsn(self.lsn)).details()
            self._event(COPIED_TABLE, facts | {"xmin": xmin, "xmax": xmax, "xip": xip} | contains)

    def sent(self, table: Model) -> None:
        """Send a table, and a row of it."""
        begin, seq, row = self._next(), self._describe(table), self._next()
        self._row(table, -1, seq, row, 0)
        self._end(begin, COMMITTED)

    def _end(self, first: int, outcome: str) -> None:
        last = self._next()
        numbers = {"seq": last, "xid": self.xid, "commit_lsn": self.lsn, "end_lsn": self.lsn + 1, "commit_time": 0}
        own = {"gid": None, "streamed": False, "outcome": outcome, "spans": [{"first": first, "last": last}]}
        self._lists["transactions"].append(numbers | own | {"aborted": []})

    def _row(self, table: Model, span: int, description: int, seq: int, xid: int) -> None:
        row = {"span": span, "xid": xid, "oid": table.oid, "description": description, "tag": pgo.Insert.TAG[0]}
        self._lists["rows"].append(row | {"count": 1, "first_seq": seq, "last_seq": seq})

    def _cut(self, table: Model) -> None:
        if self.seq == self._first:
            return
        used = sorted({row["description"] for row in self._lists["rows"] if row["description"] < self._first})
        self._lists["inherited"] = [self._earlier[seq] for seq in used]
        lists = {name: struct_array(name, rows) for name, rows in self._lists.items()}
        self.indexes.append(SegmentIndex.from_lists(self._first, self.seq - 1, self.lsn, **lists))
        self._first, self._lists = self.seq, {name: [] for name in COLUMNS}


def found(lineage: Lineage) -> Found:
    """Return all that a lineage says."""
    return {**lineage.stale}, {**lineage._numbers}, {**lineage._missing}


@pytest.mark.slow
@settings(max_examples=max(settings().max_examples // 3, 10))  # each is looked at after every segment
@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from([3, 3, 80]), st.data())
def test_a_log_that_grows(seed: int, steps: int, width: int, data: st.DataObject) -> None:
    """At each length of a log, also of one that is pruned on the way, its lineage is that of the plain definition.

    Some of the tables have many columns, in several chunks, and one is altered between what is sent of the others.
    """
    indexes = RandomLog(seed, steps, width).indexes
    pruned_at = data.draw(st.integers(0, len(indexes) - 1), "segments that are pruned")
    tracker, begin = LineageTracker(), 0
    for end in range(1, len(indexes) + 1):
        begin = pruned_at if end > 2 * pruned_at else 0
        index = SegmentIndex.concat(indexes[begin:end])
        plain = plain_lineage(index)
        assert found(tracker.follow(index)) == plain
        assert found(lineage_of(index)) == plain
    assert found(tracker.follow(index)) == plain


@given(st.integers(0, 2**32), st.integers(1, 30), st.data())
def test_readings_share_equal_columns(seed: int, steps: int, data: st.DataObject) -> None:
    """Columns are as their JSON has them, whatever was read before; those that stay the same are one object."""
    log, reader = RandomLog(seed, steps, data.draw(st.sampled_from([3, 80]))), TableFactsReader()
    latest: dict[int, TableReading] = {}
    for row in (row for index in log.indexes for row in index.entries("events").to_pylist()):
        if row["name"] == TABLE_FACTS:
            details = json.loads(row["payload"])
            reading = reader.read(EventRow(**row | {"payload": memoryview(row["payload"])}))
            assert tuple(reading.columns) == tuple(CatalogColumn(**column) for column in details.get("columns", ()))
            before = latest.get(reading.oid, reading).columns
            same = [(old, new) for old, new in zip(before, reading.columns, strict=False) if old == new]
            assert all(old is new for old, new in same)
            latest[reading.oid] = reading


_NAMES = st.text("ab\u00e9", min_size=1, max_size=12)
_RELATION_COLUMNS = st.builds(
    pgo.RelationColumn, st.sampled_from([0, 1]), _NAMES, st.sampled_from([INT4, TEXT]), st.sampled_from([-1, 20])
)


@given(
    st.lists(_RELATION_COLUMNS, max_size=70),
    st.lists(
        st.tuples(
            st.integers(0, 70),
            st.integers(0, 3),
            st.lists(_RELATION_COLUMNS, max_size=3),
            st.sampled_from(["t", "new"]),
        ),
        max_size=8,
    ),
    st.booleans(),
    st.sampled_from(["public", "long" * 200]),
)
def test_successive_relations(
    columns: list[pgo.RelationColumn],
    edits: list[tuple[int, int, list[pgo.RelationColumn], str]],
    streamed: bool,
    namespace: str,
) -> None:
    """Relations are read as each by itself, whatever is renamed, retyped, dropped or added from one to the next.

    So they are where some are only counted; long ones are parsed when a column is accessed.
    """
    options: dict[str, Any] = {"proto_version": 2, "streaming": "on", "in_stream": streamed}
    reader, counter = (RelationReader(json.dumps(options)) for _ in range(2))
    for xid, (at, dropped, added, name) in enumerate([(0, 0, [], "t"), *edits]):
        columns = [*columns[:at], *added, *columns[at + dropped :]]
        relation = pgo.Relation(xid if streamed else None, 7, namespace, name, "d", tuple(columns))
        payload = pgo.build(relation, **options)
        read = reader.read(payload)
        assert read == relation.columns and reader.read(bytes(bytearray(payload))) is read
        later = counter.columns(payload)
        assert len(later) == len(columns) and counter.columns(bytes(bytearray(payload))) is later
        if xid % 2:
            assert tuple(later) == tuple(later[:]) == relation.columns


@given(st.integers(0, 40), st.integers(0, 40), st.binary(min_size=1, max_size=3))
def test_a_malformed_relation(at: int, until: int, damage: bytes) -> None:
    """What is no Relation is refused as it is by itself, also after one that was read; the next is read."""
    columns = tuple(pgo.RelationColumn(0, name, TEXT, -1) for name in (*"abcde", "f" * 600))
    whole = pgo.build(pgo.Relation(None, 7, "public", "t", "d", columns))
    damaged = whole[: 1 + at] + damage + whole[1 + at + until :]
    reader = RelationReader("{}")
    assert reader.read(whole) == columns
    for payload in (damaged, whole):
        try:
            alone = pgo.parse(payload)
        except pgo.DecodeError as error:
            with pytest.raises(pgo.DecodeError) as raised:
                reader.read(payload)
            assert str(raised.value) == str(error)
            with pytest.raises(pgo.DecodeError) as raised:
                tuple(RelationReader("{}").columns(payload))
            assert str(raised.value) == str(error)
        else:
            assert isinstance(alone, pgo.Relation) and reader.read(payload) == alone.columns


def test_columns_in_another_order() -> None:
    """What another program wrote, with the facts of a column in another order, is read as it stands."""
    columns = [{"name": name, "number": number, "type": INT4} for number, name in enumerate("abc", 1)]
    facts = {"oid": 1, "schema": "s", "name": "t", "columns": [{"number": 4, "name": "d"}, *columns, {"number": 5}]}
    event = LogEvent(TABLE_FACTS, details=facts | {"since": 0, "unchanged": 0, "snapshot": [1, 1, []]})
    reader = TableFactsReader()
    for _ in range(2):
        reading = reader.read(EventRow(0, TABLE_FACTS, 0, 0, memoryview(event.payload())))
        assert [column.number for column in reading.columns] == [4, 1, 2, 3, 5]


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 4), st.booleans())
def test_windows_of_readings(seed: int, steps: int, width: int, known: bool) -> None:
    """What is between readings is as the plain definition says, for any description."""
    log = RandomLog(seed, 5 * steps)
    reader, by_oid = TableFactsReader(), dict[int, list[TableReading]]()
    for row in (row for index in log.indexes for row in index.entries("events").to_pylist()):
        if row["name"] == TABLE_FACTS:
            reading = reader.read(EventRow(**row | {"payload": memoryview(row["payload"])}))
            by_oid.setdefault(reading.oid, []).append(reading)

    def precedes(xid: int) -> bool | None:
        return [True, False, None][xid % 3] if known else None

    sent = [pgo.parse(row["payload"]) for index in log.indexes for row in index.entries("descriptions").to_pylist()]
    for readings in by_oid.values():
        for first in range(len(readings)):
            window = ReadingWindow(readings[first : first + width])
            for relation in sent:
                assert isinstance(relation, pgo.Relation)
                meant = plain_numbers(relation.columns, readings[first : first + width], precedes)
                assert window.find(relation.columns, precedes) == meant


def connections(tables: int, count: int, altered: int = 0) -> list[SegmentIndex]:
    """Return the indexes of segments, one for each connection: all tables are sent, and some were altered before."""
    log = RandomLog(0, 0)
    log.indexes.clear()
    log.tables = [Model(20000 + number) for number in range(tables)]
    for connection in range(count):
        for number, table in enumerate(log.tables):
            if number < altered or not connection:
                column = {"number": connection + 1, "name": f"c{connection}", "type": INT4, "modifier": -1}
                table.columns.append({**column, "published": True})
                facts = {"oid": table.oid, "schema": "public", "name": "t", "columns": table.columns}
                log._event(TABLE_FACTS, facts | {"since": log.seq, "unchanged": -1, "snapshot": [3, 9, []]})
            log.sent(table)
        log._cut(table)
    return log.indexes


def test_certain_numbers_are_computed_once() -> None:
    """From scratch each description is looked up once; later, only those with new rows or of a table that was read."""
    count, tables, altered = 30, 20, 2
    indexes = connections(tables, count, altered)
    whole = LineageTracker()
    assert len(whole.follow(SegmentIndex.concat(indexes))._numbers) == count * tables == whole.lookups
    tracker = LineageTracker()
    for end in range(1, count + 1):
        tracker.follow(SegmentIndex.concat(indexes[:end]))
    # Altered tables: once before there is a later reading, and once with it.
    assert tracker.lookups <= count * (tables + altered)
