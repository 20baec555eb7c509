"""python -m tools.benchmark: measures every engine on recorded messages, and reports whether the goals are met."""

import argparse
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.benchmark import capture, lineage, live_client, log, peers, snapshot
from tools.benchmark.alternatives.main import main as alternatives_main
from tools.benchmark.batch import Batch
from tools.benchmark.captures import captures
from tools.benchmark.cases import CASES, HEADLINE
from tools.benchmark.engines import GROUPS, choose, engines
from tools.benchmark.errors import BenchmarkError, Unavailable
from tools.benchmark.harness import CODECS, HARNESSES, allocated
from tools.benchmark.measure import measure, pin
from tools.benchmark.memory import measure_memory
from tools.benchmark.progress import Progress
from tools.benchmark.report import Report, machine, plot
from tools.benchmark.scaling import MESSAGE_COUNTS, scale
from tools.benchmark.spark.freshness import main as freshness_main
from tools.benchmark.spark.lake import main as lake_main
from tools.benchmark.spark.main import main as spark_main
from tools.benchmark.spark.tables import main as tables_main
from tools.benchmark.spark.tasks import main as tasks_main

ROOT = Path(__file__).parents[2]

EXAMPLES = """\
examples:
  python -m tools.benchmark                                  everything except scaling; a few minutes
  python -m tools.benchmark --scaling --json r.json --plot r.svg
  python -m tools.benchmark --case ten --engine codec --engine peers --repeat 15
  python -m tools.benchmark --messages 2000 --repeat 1       a quick check that it runs

other benchmarks, each with its own --help:
  python -m tools.benchmark log --segments 100000 --transactions 1000000
                                                             the time to open a change log
  python -m tools.benchmark capture --busy 2                 capture compared with pg_recvlogical, and its status
  python -m tools.benchmark client --changes 300000          the live client compared with psycopg2 and a parser by hand
  python -m tools.benchmark lineage --descriptions 100000    lineage of columns, with many descriptions and alterations
  python -m tools.benchmark snapshot --rows 10000000         a snapshot compared with COPY to files
  python -m tools.benchmark spark --changes 2000000          reading in Spark compared with Spark's own copy and max_by
  python -m tools.benchmark lake --rows 100000 10000000      batches in tables that grow, and what they write
  python -m tools.benchmark tables --tables 500              a batch with many small tables, and with one
  python -m tools.benchmark tasks --rows 10000000            memory of a Spark task, by rows and changes
  python -m tools.benchmark freshness --into delta           latency from COMMIT to a row of a table, under load
  python -m tools.benchmark alternatives --changes 500000    Debezium, ingestr and dlt on the same slot contents
  python -m tools.benchmark peers                            build the peers, which tests use, too

Peers are built if go, cargo or node is on the PATH (the first time takes minutes: they are downloaded), in
PGOUTPUT_ENVIRONMENTS or the user's cache.
Ctrl-C ends the run and reports the measurements so far.
exit status: 0 done, 1 a goal is missed (only with --strict), 2 it could not run, 130 interrupted
"""

_COMMANDS: Final[Mapping[str, Callable[[Sequence[str]], int]]] = {
    "alternatives": alternatives_main,
    "capture": capture.main,
    "client": live_client.main,
    "freshness": freshness_main,
    "lake": lake_main,
    "lineage": lineage.main,
    "log": log.main,
    "peers": peers.main,
    "snapshot": snapshot.main,
    "spark": spark_main,
    "tables": tables_main,
    "tasks": tasks_main,
}
"""Other benchmarks, by command name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] and given[0] in _COMMANDS:
        return _COMMANDS[given[0]](given[1:])
    options = _options(arguments)
    progress = Progress(options.quiet)
    known = engines()
    report = Report(machine(), "", titles={engine.name: engine.title for engine in known})
    status = 0
    try:
        _run(options, report, progress)
    except (BenchmarkError, Unavailable) as error:
        progress.clear()
        print(f"benchmark: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        status = 130
    progress.clear()
    _write(options, report)
    if status == 0 and options.strict and any(outcome.verdict == "missed" for outcome in report.outcomes):
        return 1
    return status


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    options.directory = options.directory.resolve()  # measured processes run elsewhere
    for path in (options.json, options.plot):
        if path is not None and not path.parent.is_dir():
            parser.error(f"folder {path.parent} does not exist")  # now, not after the measurements
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.benchmark",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    names = [engine.name for engine in engines()]
    shown = ", ".join([*names, *GROUPS])
    cases = [case.name for case in CASES]
    add(
        "--case",
        action="append",
        choices=cases,
        help=f"only this case; may be given again: {', '.join(cases)}",
        metavar="NAME",
    )
    add(
        "--engine",
        action="append",
        choices=[*names, *GROUPS],
        metavar="NAME",
        help=f"only this engine or group; may be given again: {shown}",
    )
    add("--messages", type=_count, default=300_000, metavar="N", help="messages a case (default 300000)")
    add("--repeat", type=_count, default=7, metavar="N", help="rounds; the medians are reported (default 7)")
    add("--scaling", action="store_true", help="also measure the cost by the number of messages and of columns")
    add("--no-cases", action="store_true", help="skip the cases")
    add("--no-memory", action="store_true", help="skip the peak memory of a 256 MB batch")
    add("--json", type=Path, metavar="FILE", help="write every measurement as JSON")
    add("--plot", type=Path, metavar="FILE.svg", help="plot the cases")
    add("--fresh", action="store_true", help="record the messages again")
    add(
        "--directory",
        type=Path,
        default=ROOT / "build" / "benchmark",
        metavar="FOLDER",
        help="where recordings are cached (default build/benchmark)",
    )
    add("--strict", action="store_true", help="exit with status 1 if a goal is missed")
    add("--quiet", action="store_true", help="show no progress")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _run(options: argparse.Namespace, report: Report, progress: Progress) -> None:
    selected = {HEADLINE.name} if options.no_cases else set(options.case or (case.name for case in CASES))
    chosen = [case for case in CASES if case.name in selected]
    requested = [] if options.no_cases else choose(engines(), options.engine or ())
    batches = captures(chosen, options.messages, options.directory, options.fresh, progress)
    for engine in requested:
        if engine.prepare:
            progress.step(f"{engine.name}: building it if necessary")
            engine.prepare()
    report.threads = pin()  # from here on; building may use every CPU
    for batch in batches if requested else ():
        report.batches.append(batch)
        measure(batch, requested, options.repeat, report.results, progress)
        _run_allocations(report, batch, {engine.name for engine in requested})
    headline = next((batch for batch in batches if batch.case == HEADLINE), None)
    if headline and not options.no_memory:
        _run_memory(report, headline, progress)
    if headline and options.scaling:
        limit = MESSAGE_COUNTS[-1] if options.messages >= 100_000 else MESSAGE_COUNTS[0]
        for point in scale(headline, limit, options.repeat, progress):
            report.points.append(point)


def _run_allocations(report: Report, batch: Batch, requested: Collection[str]) -> None:
    for harness in (*CODECS, *HARNESSES):
        if report.results.find(batch.case.name, harness.name) and harness.name in requested:
            report.allocated.append((batch.case.name, allocated(harness, batch)))


def _run_memory(report: Report, batch: Batch, progress: Progress) -> None:
    for name in ("index", "messages", "rows"):
        progress.step(f"memory: {name}")
        try:
            report.memory.append(measure_memory(name, batch))
        except Unavailable as reason:
            report.results.skipped.append(("memory", name, str(reason)))


def _write(options: argparse.Namespace, report: Report) -> None:
    print(report.text())
    if options.json:
        options.json.write_text(json.dumps(report.json(), indent=1) + "\n", "utf-8")
    if options.plot:
        options.plot.write_text(plot(report), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
