"""python -m tools.benchmark log: the time to open a change log of very many segments, and to plan a read."""

import argparse
import json
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

import pgoutput_construct as pgo
from pgoutput_construct.changelog._index.index_builder import IndexBuilder
from pgoutput_construct.changelog._index.indexes import ManifestKeeper
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._segment.footer import Position
from pgoutput_construct.changelog._segment.segment_schema import segment_table
from pgoutput_construct.changelog._segment.segment_writer import write_segment
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.demo.processes import printed
from pgoutput_construct.spark._log_view.committed_rows import log_plan
from pgoutput_construct.spark._log_view.log_tables import committed_runs, find_tables, find_usages
from pgoutput_construct.wire.options import STATE_PARAMETERS

__all__ = ["fill_log", "main", "write_segments"]

GOAL: Final = 5.0
"""Seconds in which a log of 100,000 segments and a million transactions is to open."""

_OPTIONS: Final = LogOptions(
    slot="s", publications=("p",), server_version=180000, system_identifier="1", database="d", timeline=1
)
_OID: Final = 16384


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status: 1 when the goal is missed."""
    options = _parser().parse_args(arguments)
    if options.open:
        print(json.dumps(_measure(options.directory)))
        return 0
    found = _measured(fill_log(options.directory, options.segments, options.transactions))
    print(f"{options.segments:,} segments, {options.transactions:,} transactions")
    for name, value in found.items():
        print(f"  {name:<30} {value:>10,.2f}")
    return 0 if found["open, seconds"] <= GOAL else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark log", description=__doc__)
    parser.add_argument("--segments", type=int, default=10_000, metavar="N", help="segments (default 10000)")
    parser.add_argument("--transactions", type=int, default=100_000, metavar="N", help="in all (default 100000)")
    root = Path(__file__).parents[2] / "build" / "benchmark"
    parser.add_argument("--directory", type=Path, default=root, metavar="FOLDER", help=f"for logs (default {root})")
    parser.add_argument("--open", action="store_true", help=argparse.SUPPRESS)
    return parser


def fill_log(root: Path, segments: int, transactions: int) -> Path:
    """Write a log and its manifests as a capture does, but for fsync, unless it is there; return where it is."""
    per_segment = max(1, transactions // segments)
    directory = root / f"log-{segments}-{per_segment}"
    _fill(directory, segments, per_segment)
    return directory


def _fill(directory: Path, segments: int, per_segment: int) -> None:
    found = len(list_log(LocalStore(directory)))
    if found and found != segments:
        raise SystemExit(f"{directory}: begun, and not finished: remove it")
    if not found:
        write_segments(directory, _payloads(segments, per_segment), _OPTIONS, segments)


def write_segments(directory: Path, payloads: Iterable[Sequence[bytes]], options: LogOptions, segments: int) -> None:
    """Write a log as a capture does, but for fsync, of so many segments, given the payloads of each: none streamed."""
    store = LocalStore(directory, durable=False)
    store.prepare()
    builder, keeper, first_seq = IndexBuilder(), ManifestKeeper(store, list_log(store)), 0
    for number, mine in enumerate(payloads):
        count = len(mine)
        states = {name: np.zeros(count, np.bool_) for name in STATE_PARAMETERS}
        numbers = np.arange(count) + first_seq
        block = Block.from_payloads(mine, numbers, numbers, options.layout(), states, np.full(count, OUTSIDE))
        builder.add(block)
        index = builder.finish(first_seq + count)
        table, position = segment_table([block], first_seq), Position(pgo.Lsn(first_seq + count))
        keeper.add(write_segment(store, table, options, position, index), index)
        first_seq += count
        if sys.stderr.isatty() and number % 100 == 0:
            print(f"\rwriting segment {number:,} of {segments:,}", end="", file=sys.stderr)


def _payloads(segments: int, per_segment: int) -> Iterator[list[bytes]]:
    """Yield the payloads of each segment: transactions of one row each; the first segment describes the table."""
    column = pgo.RelationColumn(0, "id", 20, -1)
    relation = pgo.build(pgo.Relation(None, _OID, "public", "t", "d", (column,)))
    for segment in range(segments):
        payloads = [] if segment else [relation]
        for number in range(segment * per_segment, (segment + 1) * per_segment):
            lsn, time_, row = pgo.Lsn((number + 1) << 8), pgo.Timestamp(number), (b"%d" % number,)
            messages = pgo.Begin(lsn, time_, number), pgo.Insert(None, _OID, row), pgo.Commit(lsn, lsn, time_)
            payloads += [pgo.build(message) for message in messages]
        # The Relation comes inside the first transaction.
        yield payloads if segment else [payloads[1], payloads[0], *payloads[2:]]


def _measured(directory: Path) -> dict[str, float]:
    """Measure in a process of its own."""
    output = printed("-m", "tools.benchmark", "log", "--open", "--directory", str(directory))
    found: dict[str, float] = json.loads(output)
    return found


def _measure(directory: Path) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    log = ChangeLog(directory)
    transactions = int(log.index.table["ended"].to_numpy().sum())
    opened, opened_cpu = time.perf_counter() - began, time.process_time() - cpu
    began = time.perf_counter()
    plan = log_plan(log)
    tables = find_tables(plan.history, find_usages(committed_runs(log.index, plan), plan))
    planned = time.perf_counter() - began
    assert tables["public.t"].rows == transactions
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"open, seconds": opened, "open, CPU seconds": opened_cpu, "plan, seconds": planned, "peak, MiB": peak}
