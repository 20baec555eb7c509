"""python -m tools.benchmark lineage: which column is which, in a log of very many descriptions and alterations.

Two logs are made in memory: tables that are sent again over each connection, and one table that is altered again and
again until it has used up its attribute numbers. What is measured is a start, and one more description and reading.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import pgoutput_construct as pgo
from pgoutput_construct.changelog._facts.lineage import LineageTracker
from pgoutput_construct.changelog._index.row_counts import PLAIN
from pgoutput_construct.changelog._segment.events import TABLE_FACTS, LogEvent
from pgoutput_construct.changelog._segment.segment_index import SegmentIndex, struct_array
from pgoutput_construct.stream.transaction_reader import COMMITTED

__all__ = ["main"]

GOAL: Final = 1.0
"""Seconds of CPU that a start may take for each of the two logs of the usual size."""
_OID: Final = 20000
_TEXT: Final = 25


class _Log:
    """A log that is made in memory."""

    def __init__(self) -> None:
        self.seq = 0
        self._lists: dict[str, list[dict[str, Any]]] = {}
        self._first = 0
        self._begin()

    def read(self, oid: int, columns: Sequence[dict[str, Any]]) -> None:
        """Append what the catalog says of a table."""
        facts = {"oid": oid, "schema": "public", "name": f"t{oid}", "filenodes": [[oid, 1]], "columns": columns}
        event = LogEvent(TABLE_FACTS, details=facts | {"since": self.seq, "unchanged": -1, "snapshot": [3, 9, []]})
        row = {"seq": self.seq, "name": TABLE_FACTS, "lsn": self.seq, "time": 0, "payload": event.payload()}
        self._lists["events"].append(row)
        self.seq += 1

    def describe(self, oid: int, names: Sequence[str]) -> None:
        """Append a transaction of one row, with what describes it."""
        begin, seq = self.seq, self.seq + 1
        columns = tuple(pgo.RelationColumn(0, name, _TEXT, -1) for name in names)
        payload = pgo.build(pgo.Relation(None, oid, "public", f"t{oid}", "d", columns))
        scope = {"stream_xid": None, "oid": oid}
        self._lists["descriptions"].append({"seq": seq, **scope, "payload": payload, "keywords": json.dumps({})})
        numbers = {"span": PLAIN, "xid": 0, "oid": oid, "description": seq, "tag": pgo.Insert.TAG[0], "count": 1}
        self._lists["rows"].append(numbers | {"first_seq": seq + 1, "last_seq": seq + 1})
        ended: dict[str, Any] = {
            "seq": seq + 2,
            "xid": begin % 2**32,
            "gid": None,
            "streamed": False,
            "outcome": COMMITTED,
        }
        ended |= {"commit_lsn": seq + 2, "end_lsn": seq + 3, "commit_time": 0, "aborted": []}
        self._lists["transactions"].append(ended | {"spans": [{"first": begin, "last": seq + 2}]})
        self.seq += 4

    def cut(self) -> SegmentIndex:
        """Return the index of what was appended since the last segment."""
        lists = {name: struct_array(name, rows) for name, rows in self._lists.items()}
        index = SegmentIndex.from_lists(self._first, self.seq - 1, self.seq, **lists)
        self._begin()
        return index

    def _begin(self) -> None:
        self._first = self.seq
        self._lists = {name: [] for name in ("events", "descriptions", "rows", "transactions")}


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 1 when the goal is missed."""
    options = _parser().parse_args(arguments)
    connections = options.descriptions // options.tables
    print(f"{connections * options.tables:,} descriptions of {options.tables:,} tables", flush=True)
    spent = _measure(lambda log: _fill_connections(log, options.tables, connections), _again)
    live = options.columns if options.live else 0
    what = (
        f"all of {live:,} columns at once"
        if live
        else f"of which a few exist at a time, of {options.columns:,} numbers"
    )
    print(f"{options.alterations:,} alterations of one table, {what}", flush=True)
    altered = _measure(lambda log: _fill_alterations(log, options.alterations, options.columns, options.live), _again)
    return 0 if max(spent, altered) <= GOAL else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.benchmark lineage",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--descriptions", type=int, default=100_000, metavar="N", help="of the first log (default 100000)")
    add("--tables", type=int, default=1000, metavar="N", help="of the first log (default 1000)")
    add("--alterations", type=int, default=10_000, metavar="N", help="of the table of the second log (default 10000)")
    add("--columns", type=int, default=1600, metavar="N", help="attribute numbers of that table (default 1600)")
    add("--live", action="store_true", help="all of these columns exist, and are renamed; else most are dropped")
    return parser


def _measure(fill: Callable[[_Log], None], again: Callable[[_Log], None]) -> float:
    """Print the seconds of CPU that a start takes, and what comes then; return the former."""
    log, tracker = _Log(), LineageTracker()
    fill(log)
    first = log.cut()
    began = time.process_time()
    tracker.follow(first)
    start, lookups = time.process_time() - began, tracker.lookups
    again(log)
    grown = SegmentIndex.concat([first, log.cut()])
    began = time.process_time()
    tracker.follow(grown)
    print(f"  {'start, CPU seconds':<30} {start:>10,.2f}   {lookups:,} descriptions looked up")
    print(
        f"  {'one more, CPU seconds':<30} {time.process_time() - began:>10,.2f}   {tracker.lookups - lookups:,}",
        flush=True,
    )
    return start


def _fill_connections(log: _Log, tables: int, connections: int) -> None:
    for table in range(tables):
        log.read(_OID + table, [_column(number, name) for number, name in enumerate("abc", 1)])
    for _ in range(connections):
        for table in range(tables):
            log.describe(_OID + table, "abc")


def _fill_alterations(log: _Log, alterations: int, numbers: int, live: bool) -> None:
    chance = random.Random(1)
    columns = [_column(number, f"c{number}") for number in range(1, 1 + (numbers if live else 3))]
    log.read(_OID, columns)
    for step in range(alterations):
        exist = [place for place, column in enumerate(columns) if "dropped" not in column]
        # So many are added that the numbers last to the end.
        if len(columns) < numbers and chance.random() < numbers / alterations:
            columns.append(_column(len(columns) + 1, f"added{step}", step))
        elif not live and len(exist) > 4 and chance.random() < numbers / alterations:
            place = chance.choice(exist)
            columns[place] = {"number": place + 1, "xmin": step, "dropped": True}
        else:
            place = chance.choice(exist)
            columns[place] = _column(place + 1, f"renamed{step}", step)
        log.describe(_OID, [column["name"] for column in columns if "dropped" not in column])
        log.read(_OID, columns)


def _again(log: _Log) -> None:
    log.describe(_OID, "abc")
    log.read(_OID, [_column(number, name) for number, name in enumerate("abd", 1)])


def _column(number: int, name: str, xmin: int = 3) -> dict[str, Any]:
    return {"number": number, "name": name, "type": _TEXT, "modifier": -1, "xmin": xmin, "published": True}
