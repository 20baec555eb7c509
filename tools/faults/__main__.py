"""python -m tools.faults: injects faults into captures and their surroundings, and checks the results."""

import argparse
import itertools
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from pgoutput_construct.demo.embedded_server import VERSIONS
from pgoutput_construct.errors import PgoutputError
from tools.faults import (
    alterations,
    flipped_settings,
    histories,
    lost_histories,
    obstacles,
    replicated,
    snapshot,
    starvation,
    undone,
    upkeep,
    upkeep_tables,
)
from tools.faults.attack import SERVER_SETTINGS, Round, RoundReport
from tools.faults.counts import Counts, Faults
from tools.faults.modes import MODES, Mode
from tools.servers import RELEASES, open_server

__all__ = ["main"]

EXAMPLES = """\
examples:
  python -m tools.faults capture                            100 kills over eleven modes on each server; about 20 minutes
  python -m tools.faults capture --kills 5 --stops 0 --cuts 1 --stalls 0 --versions 18 --modes v4-parallel
  python -m tools.faults capture --versions 15 --modes v1 v2 v3-on-two-phase --kills 0 --rollbacks 100
  python -m tools.faults log                                a log is compacted and pruned, which is killed
  python -m tools.faults tables                             compacts and prunes 50,000 segments, compares tables
  python -m tools.faults snapshot --rows 1000000            copies tables while they change; kills the capture
  python -m tools.faults altered --rounds 100               alters columns, checks which column is which
  python -m tools.faults spark --kills 50                   replicates tables; kills capture, Spark and server
  python -m tools.faults spark --kills 20 --mask --soft-delete      masks columns, and keeps deleted rows
  python -m tools.faults histories --count 200              random histories, tables compared exactly
  python -m tools.faults undo --count 500                   takes transactions back, tables compared exactly
  python -m tools.faults lost-histories --rounds 3          servers come back with another history at fitting LSNs
  python -m tools.faults undecodable --slots 100            slots that the server cannot decode
  python -m tools.faults timeouts                           the role has every timeout; nothing may fail
  python -m tools.faults starved --loops 4                  a first capture among processes that use all CPUs
  python -m tools.faults settings                           each setting of Spark's that can be flipped; 40 minutes

exit status: 0 all is right, 1 a log is wrong or cannot be read, or a capture gave up, 2 wrong arguments,
             130 interrupted
"""


_OTHERS = {
    "log": upkeep.main,
    "tables": upkeep_tables.main,
    "snapshot": snapshot.main,
    "altered": alterations.main,
    "spark": replicated.main,
    "histories": histories.main,
    "undo": undone.main,
    "lost-histories": lost_histories.main,
    "undecodable": obstacles.undecodable,
    "timeouts": obstacles.timeouts,
    "starved": starvation.main,
    "settings": flipped_settings.main,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for name, command in _OTHERS.items():
        if given[:1] == [name]:
            return command(given[1:])
    options = _parser().parse_args(given)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that servers are stopped
    directory = Path(tempfile.mkdtemp(prefix="faults-", dir=options.directory))
    print(f"seed {options.seed}, files in {directory}", flush=True)
    total, good, begun = Counts(), True, time.monotonic()
    modes = {version: _modes(options, version) for version in options.versions}
    of = sum(map(len, modes.values()))
    try:
        for number, report in enumerate(_rounds(options, modes, directory), 1):
            print(line(report, progress(number, of, time.monotonic() - begun)), flush=True)
            total, good = total + report.counts, good and report.verdict.good
            if report.verdict.good and not options.keep:
                shutil.rmtree(directory / report.name)
    except PgoutputError as error:
        print(f"faults: {type(error).__name__}: {error}", file=sys.stderr)
        good = False
    except KeyboardInterrupt:
        print(verdict_line(total, good, options.seed, directory) + " (interrupted)")
        return 130
    print(verdict_line(total, good, options.seed, directory))
    if good and not options.keep:
        shutil.rmtree(directory)
    return 0 if good else 1


def _modes(options: argparse.Namespace, version: int) -> list[Mode]:
    """Return the requested modes that a server supports; print those that it does not support."""
    requested = [mode for mode in MODES if options.modes is None or mode.name in options.modes]
    known = [mode for mode in (mode.known_to(version) for mode in requested) if mode is not None]
    if unknown := {mode.name for mode in requested} - {mode.name for mode in known}:
        skipped = ", ".join(mode.name for mode in requested if mode.name in unknown)
        print(f"PostgreSQL {version} does not support the modes {skipped}: skipped", flush=True)
    return known


def _rounds(options: argparse.Namespace, modes: Mapping[int, Sequence[Mode]], directory: Path) -> Iterator[RoundReport]:
    faults = Faults(**{each.name: getattr(options, each.name) for each in fields(Faults)})
    chance, places = random.Random(options.seed), itertools.count()
    parts = sum(map(len, modes.values()))
    for version, known in modes.items():
        with open_server(version, SERVER_SETTINGS) as server:
            for mode in known:
                share = faults.share(next(places), parts)
                name = f"{version}-{mode.name}"
                yield Round(server, mode, share, directory / name, chance.getrandbits(32)).run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    commands = parser.add_subparsers(required=True)
    capture = commands.add_parser(
        "capture",
        help="kill the capture, stop the server, cut and stall connections while writers write",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands.add_parser("log", help="compact and prune a log while it is written and read, and kill the processes")
    commands.add_parser("snapshot", help="copy tables while writers change and alter them, and kill the capture")
    commands.add_parser("tables", help="compact and prune a log while it is written and read, and compare its tables")
    commands.add_parser("altered", help="alter columns while a capture runs or is stopped")
    commands.add_parser("histories", help="random histories of tables of every kind, compared exactly with the server")
    commands.add_parser("undo", help="take random transactions back, and compare the tables with those before")
    commands.add_parser(
        "lost-histories", help="restore volumes, promote two standbys, reset statistics: a lost history must be noticed"
    )
    commands.add_parser("starved", help="start a first capture among processes that use all CPUs")
    commands.add_parser("settings", help="flip each setting of Spark's, and replicate a small log into each format")
    commands.add_parser("spark", help="kill capture, Spark and server while tables are replicated")
    commands.add_parser("undecodable", help="capture from slots that the server cannot decode")
    commands.add_parser("timeouts", help="capture, verify and tail as a role that has every timeout")
    _add_faults(capture)
    add = capture.add_argument
    add(
        "--versions",
        type=_versions,
        default=VERSIONS,
        metavar="15,16,18,19",
        help="versions of PostgreSQL, each in every mode that it supports",
    )
    names = [mode.name for mode in MODES]
    add("--modes", nargs="+", choices=names, metavar="NAME", help=f"only these: {', '.join(names)}")
    add("--seconds", type=float, default=10.0, metavar="S", help="minimum seconds of writing in each round")
    add(
        "--seed",
        type=int,
        default=random.randrange(10**6),
        metavar="N",
        help="random seed; the timing is not repeatable",
    )
    add("--directory", type=Path, metavar="FOLDER", help="directory of the files; those of a failed round are retained")
    add("--keep", action="store_true", help="retain the files of good rounds, too")
    return parser


def _add_faults(parser: argparse.ArgumentParser) -> None:
    faults = {
        "kills": (100, "captures killed with signal 9"),
        "stops": (10, "immediate stops of the server"),
        "cuts": (20, "connections cut"),
        "stalls": (5, "connections that stall"),
        "tidies": (60, "compactions and prunes, some of them killed"),
        "rollbacks": (20, "captures and servers killed after a streamed transaction was rolled back"),
    }
    for name, (count, meaning) in faults.items():
        text = f"{meaning}, in all rounds together (default {count})"
        parser.add_argument(f"--{name}", type=int, default=count, metavar="N", help=text)


def _versions(text: str) -> tuple[int, ...]:
    versions = tuple(map(int, text.split(",")))
    if unknown := set(versions) - set(RELEASES):
        raise argparse.ArgumentTypeError(f"no such servers: {unknown}; choose from {', '.join(map(str, RELEASES))}")
    return versions


def line(report: RoundReport, progress: str) -> str:
    """Return one line about a round, with the progress of the run; more lines for problems."""
    verdict = report.verdict
    found = f"lost {verdict.lost}, repeated {verdict.repeated}, rolled back but visible {verdict.visible}"
    if not verdict.good:
        found += f", altered {verdict.altered}, out of order {verdict.misordered}, misindexed {verdict.misindexed}"
    return "\n    ".join([f"[{progress}] {report.name}: {_counts(report.counts)}: {found}", *verdict.problems])


def progress(rounds: int, of: int, seconds: float) -> str:
    """Return the progress of a run, such as ``5 of 22, 3 min, about 11 min to go``."""
    left = seconds / rounds * (of - rounds)
    return f"{rounds} of {of}, {seconds / 60:.0f} min" + (f", about {left / 60:.0f} min to go" if left else "")


def verdict_line(total: Counts, good: bool, seed: int, directory: Path) -> str:
    """Return one line about the whole run."""
    found = "lost 0, repeated 0, rolled back but visible 0" if good else f"FAILED, seed {seed}, files in {directory}"
    return f"all: {_counts(total)}: {found}"


def _counts(counts: Counts) -> str:
    return (
        f"kills {counts.kills} (during a compaction or prune {counts.kills_beside}, "
        f"with a rolled-back stream at the log's end {counts.rollbacks}), "
        f"immediate stops {counts.stops}, cuts {counts.cuts}, "
        f"silences {counts.stalls} (noticed {counts.noticed}), captures that ended {counts.ended}, "
        f"slots that the server could not decode {counts.undecodable}, "
        f"compactions {counts.compactions} and prunes {counts.prunes} (killed {counts.tidies_killed}); "
        f"transactions {counts.transactions:,}, changes {counts.changes:,}, rolled back {counts.rolled_back:,}, "
        f"segments {counts.segments:,}, messages {counts.entries:,}"
    )


if __name__ == "__main__":
    sys.exit(main())
