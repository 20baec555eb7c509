"""python -m tools.benchmark: measure every engine on recorded messages, and say whether the goals are reached."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.benchmark import capture, lineage, log, peers, snapshot
from tools.benchmark.batch import Batch
from tools.benchmark.captures import captures
from tools.benchmark.cases import CASES, HEADLINE
from tools.benchmark.engines import GROUPS, choose, engines
from tools.benchmark.errors import BenchmarkError, Unavailable
from tools.benchmark.measure import measure, pin
from tools.benchmark.memory import measure_memory
from tools.benchmark.plot import plot
from tools.benchmark.progress import Progress
from tools.benchmark.report import Report, machine
from tools.benchmark.scaling import MESSAGE_COUNTS, scale
from tools.benchmark.spark.freshness import main as freshness_main
from tools.benchmark.spark.main import main as spark_main
from tools.benchmark.spark.tables import main as tables_main
from tools.benchmark.spark.tasks import main as tasks_main

ROOT = Path(__file__).parents[2]

EXAMPLES = """\
examples:
  python -m tools.benchmark                                  everything but scaling; some minutes
  python -m tools.benchmark --scaling --json r.json --plot r.svg
  python -m tools.benchmark --case ten --engine codec --engine peers --repeat 15
  python -m tools.benchmark --messages 2000 --repeat 1       does it run?
  python -m tools.benchmark log --segments 100000 --transactions 1000000    a change log: how fast it opens
  python -m tools.benchmark capture --busy 2                 a slot into a log, against pg_recvlogical; and its statuses
  python -m tools.benchmark lineage --descriptions 100000    which column is which, of many descriptions and alterations
  python -m tools.benchmark snapshot --rows 10000000         tables into a log, against COPY to files
  python -m tools.benchmark spark --changes 2000000          the log in Spark, against Spark's own copy and max_by
  python -m tools.benchmark freshness --into delta           from COMMIT to a row of a table, while it is written
  python -m tools.benchmark peers                            build the peers, which tests compare with, too
  python -m tools.benchmark tables --tables 500              a batch of many small tables, and one of one
  python -m tools.benchmark tasks --rows 10000000            memory of a task, for a table of as many rows and changes

Peers are built where go, cargo or node is on the PATH (the first time: from their registries, some minutes), in
PGOUTPUT_ENVIRONMENTS or the user's cache.
Ctrl-C ends the run; what was measured up to then is reported.
exit status: 0 done, 1 a goal is missed (only with --strict), 2 it could not run, 130 interrupted
"""

_COMMANDS: Final[Mapping[str, Callable[[Sequence[str]], int]]] = {
    "capture": capture.main,
    "lineage": lineage.main,
    "log": log.main,
    "peers": peers.main,
    "freshness": freshness_main,
    "snapshot": snapshot.main,
    "spark": spark_main,
    "tables": tables_main,
    "tasks": tasks_main,
}
"""Benchmarks of their own, by their names on the command line."""


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
            parser.error(f"there is no folder {path.parent}")  # now, not after the measurements
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
    add("--scaling", action="store_true", help="also the cost by the number of messages and of columns")
    add("--no-cases", action="store_true", help="leave the cases out")
    add("--no-memory", action="store_true", help="leave the peak memory of a 256 MB batch out")
    add("--json", type=Path, metavar="FILE", help="write every measurement")
    add("--plot", type=Path, metavar="FILE.svg", help="draw the cases")
    add("--fresh", action="store_true", help="record the messages again")
    add(
        "--directory",
        type=Path,
        default=ROOT / "build" / "benchmark",
        metavar="FOLDER",
        help="where recordings are kept (default build/benchmark)",
    )
    add("--strict", action="store_true", help="exit with 1 when a goal is missed")
    add("--quiet", action="store_true", help="say nothing while measuring")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _run(options: argparse.Namespace, report: Report, progress: Progress) -> None:
    wanted = {HEADLINE.name} if options.no_cases else set(options.case or (case.name for case in CASES))
    chosen = [case for case in CASES if case.name in wanted]
    asked = [] if options.no_cases else choose(engines(), options.engine or ())
    batches = captures(chosen, options.messages, options.directory, options.fresh, progress)
    for engine in asked:
        if engine.prepare:
            progress.step(f"{engine.name}: building it, unless it is built")
            engine.prepare()
    report.threads = pin()  # what came before may use every CPU
    for batch in batches if asked else ():
        report.batches.append(batch)
        measure(batch, asked, options.repeat, report.results, progress)
    headline = next((batch for batch in batches if batch.case == HEADLINE), None)
    if headline and not options.no_memory:
        _run_memory(report, headline, progress)
    if headline and options.scaling:
        limit = MESSAGE_COUNTS[-1] if options.messages >= 100_000 else MESSAGE_COUNTS[0]
        for point in scale(headline, limit, options.repeat, progress):
            report.points.append(point)


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
