"""python -m tools.faults tables: compacts and prunes a log during capture and reads; its tables must stay the same."""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from pgoutput_construct.changelog import ChangeLog, LogWriter, Position
from pgoutput_construct.changelog._notes.confirmation_note import read_note, write_note
from pgoutput_construct.changelog._segment.events import LogEvent
from pgoutput_construct.changelog._segment.segment_schema import parts_of
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.store import MissingFileError
from pgoutput_construct.changelog.registry import register
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.demo.processes import running
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres import capture
from pgoutput_construct.stream.transaction_reader import COMMITTED
from pgoutput_construct.wire import Lsn
from tools.faults.bank import PUBLICATION, SLOT, Bank, Moment
from tools.faults.errors import FaultsError
from tools.faults.rebuilder import Base, Rebuilder

__all__ = ["TablesReport", "attack", "main"]

_READER: Final = "warehouse"
_SECONDS: Final = 600.0
_LONG: Final = 8
"""Transactions that are open for long in the log at first, one after the other."""
_LIMITS: Final = {"rows": 40, "seconds": 0.05}
"""When the capture cuts: often."""

Say = Callable[[str], None]


@dataclass
class TablesReport:
    """What was done."""

    segments: int = 0
    """In the log at first."""
    removed_from_copy: int = 0
    """Of these, by a prune of a copy of the log."""
    compacted_to: int = 0
    """What they became by the compaction."""
    removed: int = 0
    """Segments that the prune removed then."""
    captured: int = 0
    """Rows that the capture has added meanwhile."""
    comparisons: int = 0
    """How often all tables were rebuilt, and found equal to the server's."""
    meanwhile: int = 0
    """Of these, begun while a compaction or prune was at work."""
    refused: int = 0
    """Reads that failed, as they must, since they needed what was pruned."""
    rows: int = 0
    """Of the tables in the end."""

    def __str__(self) -> str:
        return "\n".join(f"  {name:<20} {value:>12,}" for name, value in vars(self).items())


@dataclass
class _Attack:
    bank: Bank
    rebuilder: Rebuilder
    directory: Path
    say: Say
    report: TablesReport = field(default_factory=TablesReport)
    captures: "subprocess.Popen[bytes] | None" = None

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def run(self, segments: int, copy: bool) -> TablesReport:
        moment = self.fill(segments)
        opened = self.rebuilder.open(self.log)
        self.say("taking all changes, rebuilding the tables from them")
        base = self.rebuilder.take(opened, self.directory / "base")
        self.rebuilder.check(opened, moment)
        if copy:
            self.prune_a_copy(moment, base)
        with self.bank.writing(), self.capturing():
            self.compact(moment)
            self.prune(base)
        self.finish(base)
        self.report.comparisons = self.rebuilder.comparisons
        return self.report

    def fill(self, segments: int) -> Moment:
        """Make a log of some segments out of what a server sends; return what the tables hold at its end."""
        self.say("writing, and capturing what was written")
        for _ in range(_LONG):
            self.bank.work(max(2, segments // _LONG))
        moment, captured = self.bank.moment(), self.directory / "captured"
        given: dict[str, Any] = {"until_lsn": moment.lsn, "handle_signals": False, "new_log": True}
        capture(self.bank.dsn, SLOT, [PUBLICATION], captured, **given)
        self.say(f"cutting it into {segments:,} segments")
        self.report.segments = len(recut(ChangeLog(captured), self.log, segments).segments)
        return moment

    def prune_a_copy(self, moment: Moment, base: Base) -> None:
        """Prune half of the small segments; the reader who has read them continues from there."""
        self.say("pruning a copy of it")
        copy = self.directory / "copy"
        shutil.copytree(self.log, copy, copy_function=os.link)
        segments = ChangeLog(copy).segments
        half = len(segments) // 2
        read = Base(base.directory, segments[half - 1].position.complete_lsn, segments[half].first_seq)
        self.prune_for(copy, moment, read)
        self.report.removed_from_copy = len(segments) - len(ChangeLog(copy).segments)
        shutil.rmtree(copy)

    def compact(self, moment: Moment) -> None:
        """Compact; who opens the log before, meanwhile or after it has the same tables."""
        self.say("compacting it, while a capture and a reader run")
        before = self.rebuilder.open(self.log)
        self.upkeep(["compact", "--grace", "0.5"], self.log, lambda: self.check_again(self.log, moment, None))
        self.report.compacted_to = ChangeLog(self.log).segments.find(before.log.index.last_seq) + 1
        self.say("reading it as it is now, and as who had opened it before")
        self.rebuilder.check(self.rebuilder.open(self.log), moment)
        self.rebuilder.check(before, moment)

    def prune(self, base: Base) -> None:
        """Prune what a reader has read; it continues with what is left."""
        moment = self.bank.moment()
        self.wait_for(moment)
        self.say("pruning it, while a capture and a reader run")
        self.report.removed = self.prune_for(self.log, moment, base)

    def prune_for(self, log: Path, moment: Moment, base: Base) -> int:
        """Prune what a reader has taken; return how many segments went that the log had before."""
        register(log, _READER, base.next_seq, base.lsn)
        before = ChangeLog(log)
        given = ["prune", "--before", str(moment.lsn), "--without-states", "--yes"]
        self.upkeep(given, log, lambda: self.check_again(log, moment, base))
        after = self.rebuilder.open(log)
        self.rebuilder.check(after, moment, base)
        self.report.refused += self.rebuilder.count_refused(after, moment if log != self.log else None)
        self.report.refused += self.rebuilder.lacks(lambda: next(after.log.entries(0)))
        self.report.refused += self.rebuilder.lacks(lambda: next(before.entries(0)))
        return before.segments.find(after.log.segments[0].first_seq)

    def finish(self, base: Base) -> None:
        """Capture the rest, compact once more, verify; in the end the tables are as the server has them."""
        self.say("capturing the rest, compacting, verifying")
        moment = self.bank.moment()
        capture(self.bank.dsn, SLOT, [PUBLICATION], self.log, until_lsn=moment.lsn, handle_signals=False)
        self.upkeep(["compact", "--grace", "0"], self.log, lambda: None)
        opened = self.rebuilder.open(self.log)
        self.report.captured = opened.log.segments[-1].last_seq + 1 - base.next_seq
        self.report.rows = self.rebuilder.check(opened, moment, base)
        if problems := verify(self.log).problems:
            raise FaultsError(f"{self.log}: {'; '.join(problems)}")

    def check_again(self, log: Path, moment: Moment, base: Base | None) -> None:
        """Compare while upkeep is at work; what is pruned under a reader makes it open the log again."""
        try:
            self.rebuilder.check(self.rebuilder.open(log), moment, base)
            self.report.meanwhile += 1
        except MissingFileError:
            self.report.refused += 1

    def upkeep(self, given: Sequence[str], log: Path, meanwhile: Callable[[], None]) -> None:
        """Run ``pgoutput log`` as a process, and do something as often as it can be done meanwhile."""
        command = "-m", "pgoutput_construct.cli", "log", given[0], str(log), *given[1:]
        with running(*command, stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None:
                meanwhile()
            said, _ = process.communicate()
        self.say(f"{given[0]}: {said.strip()}")
        if process.returncode:
            raise FaultsError(f"{log}: {given[0]} ended with status {process.returncode}")

    def wait_for(self, moment: Moment) -> None:
        """Wait until the log has all that ended before a moment; raises FaultsError when the capture has ended."""
        end = time.monotonic() + _SECONDS
        while ChangeLog(self.log).complete_lsn < moment.lsn:
            if self.captures is not None and self.captures.poll() is not None:
                raise FaultsError(f"{self.log}: the capture ended with status {self.captures.returncode}")
            if time.monotonic() > end:
                raise FaultsError(f"{self.log}: the capture did not come to {moment.lsn} in {_SECONDS:.0f} s")
            time.sleep(0.2)

    @contextmanager
    def capturing(self) -> Iterator[None]:
        """Capture in a process of its own while the block runs; it must not end before."""
        names = {"dsn": self.bank.dsn, "slot": SLOT, "publications": [PUBLICATION], "directory": str(self.log)}
        given = json.dumps({**names, "limits": _LIMITS, "until_lsn": None})
        with running("-m", "tools.faults.child", given) as process:
            self.captures = process
            yield
            if process.poll() is not None:
                raise FaultsError(f"{self.log}: the capture ended with status {process.returncode}")
            process.terminate()
            process.wait(_SECONDS)


def attack(
    server: EmbeddedServer, rebuilder: Rebuilder, directory: Path, segments: int, say: Say, copy: bool = True
) -> TablesReport:
    """Compact and prune a log of some segments, and compare its tables with the server's all the while.

    With ``copy`` half of the small segments of a copy are pruned, too, before they are compacted.
    Raises PgoutputError for tables that differ, a process that ends, and a read of pruned changes without an error.
    """
    with Bank(server) as bank:
        return _Attack(bank, rebuilder, directory, say).run(segments, copy)


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 1 when a table differs."""
    from pgoutput_construct.spark import spark_session

    parser = argparse.ArgumentParser(prog="python -m tools.faults tables", description=__doc__)
    parser.add_argument("--segments", type=int, default=50_000, metavar="N", help="in the log at first")
    parser.add_argument("--directory", type=Path, metavar="FOLDER", help="where files go")
    options = parser.parse_args(arguments)
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.0f} s  {text}", flush=True)

    with (
        tempfile.TemporaryDirectory(dir=options.directory) as folder,
        EmbeddedServer(18) as server,
        spark_session("local[2]") as spark,
    ):
        try:
            report = attack(server, Rebuilder(spark), Path(folder), options.segments, say)
        except PgoutputError as error:
            print(f"WRONG: {error}")
            return 1
    print(report)
    return 0


def recut(log: ChangeLog, directory: Path, segments: int) -> ChangeLog:
    """Write a log again with about ``segments`` segments; a capture may continue it in the place of the first one."""
    store, rows = LocalStore(directory, durable=False), max(1, len(log) // segments)
    ended = log.transactions().filter(pc.equal(log.transactions()["outcome"], COMMITTED))
    seqs, lsns = ended["seq"].to_numpy(), [0, *ended["end_lsn"].to_pylist()]
    with LogWriter(store) as writer:
        for segment in log.segments:
            writer.use(segment.options)
            for part in parts_of(log.table(segment), segment.options.layout()):
                if isinstance(part, LogEvent):
                    writer.append_fact(part.name, part.lsn, **part.details)
                    continue
                for first in range(0, len(part), rows):
                    writer.append(part.take(slice(first, first + rows)))
                    complete = lsns[int(np.searchsorted(seqs, writer.next_seq))]
                    writer.publish(Position(Lsn(complete)))
        writer.publish(log.segments[-1].position)
    # Where nothing is left to publish no segment says how far the last one was confirmed.
    note, last = read_note(log.store), log.segments[-1]
    write_note(store, replace(note, confirmed_lsn=note.reached(last), next_seq=last.last_seq + 1))
    return ChangeLog(directory)
