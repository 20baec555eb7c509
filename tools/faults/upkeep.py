"""python -m tools.faults log: compacts and prunes a log while it is written and read, and kills that."""

import argparse
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._segment.segment_reader import read_segment
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.changelog.verify import verify
from pgoutput_construct.demo.processes import kill, start
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.transaction_reader import COMMITTED
from pgoutput_construct.wire import Insert, parse
from tools.faults.upkeep_child import KEPT, end_of, number_before

__all__ = ["UpkeepReport", "attack", "main"]

_LONGEST = 3600.0  # seconds for everything


@dataclass
class UpkeepReport:
    """What was done to a log, and what it has lost: nothing."""

    transactions: int
    """Written, and found."""
    seconds: float = 0.0
    kills_of_upkeep: int = 0
    kills_of_writer: int = 0
    reads: int = 0
    """How often the log was read as a whole meanwhile."""
    segments: int = 0
    """In the end."""
    pruned: int = 0
    """Transactions that were removed."""

    def __str__(self) -> str:
        return "\n".join(f"  {name:<20} {value:>12,.0f}" for name, value in vars(self).items())


def attack(log: Path, transactions: int, kills: int, seed: int) -> UpkeepReport:
    """Write transactions while upkeep and writer are killed; read, compare, verify.

    Raises ChangeLogError for anything that a reader finds missing, twice, or wrong.
    """
    chance, report, began = random.Random(seed), UpkeepReport(transactions), time.monotonic()
    writer, upkeep = _start("write", log, transactions, seed), None
    while (status := writer.poll()) is None or report.kills_of_upkeep < kills:
        if time.monotonic() - began > _LONGEST:
            raise ChangeLogError(f"{log}: not ready after {_LONGEST:.0f} seconds")
        if status:
            raise ChangeLogError(f"{log}: the writer ended with status {status}")
        if not any(log.glob("segment-*")):
            time.sleep(0.05)
            continue
        if upkeep is None:
            upkeep = _start("maintain", log, 10**6, chance.getrandbits(30))
            assert upkeep.stdout is not None
            upkeep.stdout.readline()
        time.sleep(chance.uniform(0.0, 2.0))
        if upkeep.poll() is not None:
            raise ChangeLogError(f"{log}: compaction or prune ended with status {upkeep.returncode}")
        if report.kills_of_upkeep < kills:
            report.kills_of_upkeep += kill(upkeep)
            upkeep = None
        is_due = not report.kills_of_writer or chance.random() < 0.3
        if writer.poll() is None and is_due and report.kills_of_writer < kills // 3:
            report.kills_of_writer += kill(writer)
            writer = _start("write", log, transactions, chance.getrandbits(30))
        report.reads += _check(log)
    if upkeep is not None:
        kill(upkeep)
    prune(log, end_of(transactions - 2 * KEPT), states=False)
    _check(log, transactions)
    compact(log, CompactionLimits(grace=0))
    _check(log, transactions)
    if problems := verify(log).problems:
        raise ChangeLogError(f"{log}: {'; '.join(problems)}")
    report.pruned = number_before(read_pruned(open_store(log)).lsn) + 1
    report.segments, report.seconds = len(ChangeLog(log).segments), time.monotonic() - began
    return report


def _start(what: str, log: Path, number: int, seed: int) -> "subprocess.Popen[bytes]":
    return start("-m", "tools.faults.upkeep_child", what, str(log), str(number), str(seed), stdout=subprocess.PIPE)


def _check(log: Path, end: int | None = None) -> int:
    """Read the log; every transaction from the first that is kept up to the last that is durable has its one row."""
    opened = ChangeLog(log)
    last = number_before(opened.complete_lsn)
    kept = number_before(read_pruned(open_store(log)).lsn) + 1  # later than what was opened: it may have more
    try:
        ended, inserted = opened.transactions(), _inserted(opened)
    except ChangeLogError as error:
        if "pruned" in str(error):  # since it was opened: both are read now
            return 0
        raise
    numbers = ended.filter(pc.equal(ended["outcome"], COMMITTED))["xid"].to_pylist()
    if numbers != list(range(numbers[0], last + 1)) or numbers[0] > kept or (end is not None and last != end - 1):
        raise ChangeLogError(
            f"{log}: transactions {numbers[0]} to {numbers[-1]} ({len(numbers)}), not {kept} to {last}"
        )
    spans = {row["xid"]: row["spans"] for row in ended.to_pylist()}
    for number in numbers:
        seqs = (seq for span in spans[number] for seq in range(span["first"], span["last"]))
        rows = [inserted[seq] for seq in seqs if seq in inserted]
        if rows != [number]:
            raise ChangeLogError(f"{log}: transaction {number} has the rows {rows}")
    return 1


def _inserted(log: ChangeLog) -> dict[int, int]:
    """Return what each row of the log inserts, by its seq."""
    found: dict[int, int] = {}
    for segment in log.segments:
        table = read_segment(segment)
        rows = table.filter(pc.equal(table["tag"], Insert.TAG[0]))
        for seq, payload in zip(rows["seq"].to_pylist(), rows["payload"].to_pylist(), strict=True):
            message = parse(payload, **segment.options.layout(), in_stream=False)
            assert isinstance(message, Insert) and isinstance(message.new[0], bytes)
            found[seq] = int(message.new[0])
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 1 when anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults log", description=__doc__)
    parser.add_argument("--transactions", type=int, default=500_000, metavar="N", help="a segment has some ten of them")
    parser.add_argument("--kills", type=int, default=100, metavar="N", help="of upkeep; a third as many of the writer")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), metavar="N", help="of what is drawn")
    parser.add_argument("--directory", type=Path, metavar="FOLDER", help="where the log goes; it must not exist")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        log = options.directory or Path(temporary) / "log"
        print(f"seed {options.seed}", flush=True)
        try:
            print(attack(log, options.transactions, options.kills, options.seed))
        except ChangeLogError as error:
            print(f"WRONG: {error}")
            return 1
    return 0
