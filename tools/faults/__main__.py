"""python -m tools.faults: break a capture in every way that happens, and compare its log with what is true."""

import argparse
import itertools
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pgoutput_construct.demo.embedded_server import VERSIONS
from pgoutput_construct.errors import PgoutputError
from tools.faults import (
    altered,
    histories,
    lost_histories,
    obstacles,
    replicated,
    snapshot,
    starvation,
    upkeep,
    upkeep_tables,
)
from tools.faults.attack import SERVER_SETTINGS, Round, RoundReport
from tools.faults.counts import Counts, Faults
from tools.faults.modes import MODES, Mode
from tools.faults.report import line, progress, verdict_line
from tools.servers import RELEASES, open_server

__all__ = ["main"]

EXAMPLES = """\
examples:
  python -m tools.faults capture                            100 kills over eleven modes on each server; about 20 minutes
  python -m tools.faults capture --kills 5 --stops 0 --cuts 1 --stalls 0 --versions 18 --modes v4-parallel
  python -m tools.faults log                                a log is compacted and pruned, and that is killed
  python -m tools.faults tables                             50,000 segments compacted and pruned, tables compared
  python -m tools.faults snapshot --rows 1000000            tables are copied while they change, and that is killed
  python -m tools.faults altered --rounds 100               columns are altered, and the log knows which is which
  python -m tools.faults spark --kills 50                   tables are replicated, and whatever does it is killed
  python -m tools.faults histories --count 200              random histories, whose tables are compared exactly
  python -m tools.faults lost-histories --rounds 3          servers come back with another past, at positions that fit
  python -m tools.faults undecodable --slots 100            slots that the server cannot decode are replaced
  python -m tools.faults timeouts                           the role has every timeout, and nothing ends of it
  python -m tools.faults starved --loops 4                  a first capture amid processes that want the processors

exit status: 0 the log says the truth, 1 it does not or cannot be read, or a capture gave up, 2 wrong arguments,
             130 interrupted
"""


_OTHERS = {
    "log": upkeep.main,
    "tables": upkeep_tables.main,
    "snapshot": snapshot.main,
    "altered": altered.main,
    "spark": replicated.main,
    "histories": histories.main,
    "lost-histories": lost_histories.main,
    "undecodable": obstacles.undecodable,
    "timeouts": obstacles.timeouts,
    "starved": starvation.main,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for name, command in _OTHERS.items():
        if given[:1] == [name]:
            return command(given[1:])
    options = _parser().parse_args(given)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server is left behind
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
    """Return the modes that were asked for, as far as a server knows them; say which it does not know."""
    asked = [mode for mode in MODES if options.modes is None or mode.name in options.modes]
    known = [mode for mode in (mode.known_to(version) for mode in asked) if mode is not None]
    if unknown := {mode.name for mode in asked} - {mode.name for mode in known}:
        left_out = ", ".join(mode.name for mode in asked if mode.name in unknown)
        print(f"PostgreSQL {version} does not know the modes {left_out}: left out there", flush=True)
    return known


def _rounds(options: argparse.Namespace, modes: Mapping[int, Sequence[Mode]], directory: Path) -> Iterator[RoundReport]:
    faults = Faults(options.kills, options.stops, options.cuts, options.stalls, options.tidies, options.seconds)
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
        help="kill the capture, stop the server, cut and silence the network while writers write",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands.add_parser("log", help="compact and prune a log while it is written and read, and kill that")
    commands.add_parser("snapshot", help="copy tables while writers change and alter them, and kill the capture")
    commands.add_parser("tables", help="compact and prune a log while it is written and read, and compare its tables")
    commands.add_parser("altered", help="alter columns while a capture runs, or is away")
    commands.add_parser("histories", help="random histories of tables of every kind, compared with the server exactly")
    commands.add_parser(
        "lost-histories", help="put volumes back, promote twins, reset statistics: another past is noticed"
    )
    commands.add_parser("starved", help="start a capture for the first time amid processes that want the processors")
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
        help="PostgreSQL's, each attacked in each mode that it knows",
    )
    names = [mode.name for mode in MODES]
    add("--modes", nargs="+", choices=names, metavar="NAME", help=f"only these: {', '.join(names)}")
    add("--seconds", type=float, default=10.0, metavar="S", help="how long writers write in each round at least")
    add(
        "--seed",
        type=int,
        default=random.randrange(10**6),
        metavar="N",
        help="of what is drawn; timing is not repeated",
    )
    add("--directory", type=Path, metavar="FOLDER", help="where files go; those of a failure are kept")
    add("--keep", action="store_true", help="keep the files of good rounds, too")
    return parser


def _add_faults(parser: argparse.ArgumentParser) -> None:
    faults = {
        "kills": (100, "captures killed with signal 9"),
        "stops": (10, "immediate stops of the server"),
        "cuts": (20, "connections cut"),
        "stalls": (5, "connections that fall silent"),
        "tidies": (60, "compactions and prunes, of which some are killed"),
    }
    for name, (count, meaning) in faults.items():
        text = f"{meaning}, in all rounds together (default {count})"
        parser.add_argument(f"--{name}", type=int, default=count, metavar="N", help=text)


def _versions(text: str) -> tuple[int, ...]:
    versions = tuple(map(int, text.split(",")))
    if unknown := set(versions) - set(RELEASES):
        raise argparse.ArgumentTypeError(f"no such servers: {unknown}; choose from {', '.join(map(str, RELEASES))}")
    return versions


if __name__ == "__main__":
    sys.exit(main())
