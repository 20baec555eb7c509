"""python -m tools.subscription_tests: PostgreSQL's own subscription tests, through a capture and a publisher."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from pgoutput_construct.demo.server import VERSIONS, EmbeddedServer
from tools.subscription_tests.broker import Broker
from tools.subscription_tests.differences import ends_early, inapplicable, intended

__all__ = ["main", "missing"]

_TESTS: Final = Path("src/test/subscription/t")
_MODULES: Final = Path("src/test/perl")
_LINE: Final = re.compile(
    r"(?P<failed>not )?ok (?P<number>\d+)(?: - (?P<name>[^#]*))?(?P<skip>\s*# (?:skip|SKIP)\b.*)?"
)


@dataclass
class Result:
    """What one file of tests said."""

    file: str
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: int = 0
    differs: list[str] = field(default_factory=list)
    """Tests that fail by design, each with the reason."""
    ended: str = ""
    """Why it ended before its end; "" where it did not."""
    inapplicable: str = ""
    """Why it was run without anything in between; empty if it was not, or if that was requested."""
    seconds: float = 0.0
    kills: int = 0

    @property
    def good(self) -> bool:
        """Whether nothing failed, and it came to its end."""
        return not self.failed and not self.ended


def missing() -> str:
    """Say what has to be installed before tests can run; "" where nothing has to be."""
    if not shutil.which("perl"):
        return "the tests need perl on the PATH"
    if subprocess.run(["perl", "-MIPC::Run", "-e", "1"], check=False, capture_output=True).returncode:
        return "the tests need the Perl module IPC::Run (Debian: libipc-run-perl)"
    return ""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--version", default=18, show_default=True, help="The release that SOURCE is of, and its servers.")
@click.option("--file", "files", multiple=True, help="A file, such as 013_partition; can be repeated. [default: all]")
@click.option(
    "--bin",
    "programs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where initdb, postgres and psql are. [default: the embedded server's, else /usr/lib/postgresql/VERSION/bin]",
)
@click.option("--kill-every", type=float, metavar="SECONDS", help="Kill a capture or a publisher about so often.")
@click.option("--plain", is_flag=True, help="Nothing in between: what the tests say of PostgreSQL alone.")
@click.option(
    "--timeout", default=180, show_default=True, metavar="SECONDS", help="How long a test waits for anything."
)
@click.option("--user", help="The user that runs servers and tests if this is root. [default: postgres, else nobody]")
@click.option("--directory", type=click.Path(file_okay=False, path_type=Path), help="Where the files are made.")
@click.option("--keep", is_flag=True, help="Retain the files of tests that passed, too.")
def main(
    source: Path,
    version: int,
    files: Sequence[str],
    programs: Path | None,
    kill_every: float | None,
    plain: bool,
    timeout: int,
    user: str | None,
    directory: Path | None,
    keep: bool,
) -> None:
    """Run PostgreSQL's src/test/subscription/t/*.pl of SOURCE, with ours between publisher and subscriber.

    For each CREATE SUBSCRIPTION of a test a `pgoutput capture` of its publications and a `pgoutput serve` of that log
    are started, and the subscription connects to the latter. The tests are not edited: a Perl module is loaded before
    them, which looks at the statements that they run. Tables are copied by the capture (--snapshot) and come as
    inserts: the subscription is created WITH (copy_data = false).

    \b
    Examples:
      python -m tools.subscription_tests postgresql-18.6
      python -m tools.subscription_tests postgresql-15.18 --version 15 --file 013_partition --kill-every 5

    \b
    Exit status:
      0  every test passed, or differs by design: those are named, with the reason
      1  some failed: their files are retained, and named
      2  the command line is wrong, or something is not installed
    """
    if problem := missing():
        raise click.UsageError(problem)
    found = _chosen(source, files)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server is left running
    base = Path(tempfile.mkdtemp(prefix="subscription-tests-", dir=directory))
    base.chmod(0o755)
    console, good = Console(highlight=False, width=None if sys.stdout.isatty() else 160), True
    results = list[Result]()
    with ExitStack() as stack:
        programs = (programs or _programs(version, stack)).resolve()
        run = Run(source.resolve(), version, programs, base, _user(user), timeout, plain, kill_every)
        for file in found:
            result = run.file(file)
            results.append(result)
            good &= result.good
            console.print(_line(result, run.directory(file)), markup=False, soft_wrap=True)
            if result.good and not keep:
                shutil.rmtree(run.directory(file))
    console.print(_table(results))
    if good and not keep:
        shutil.rmtree(base)
    sys.exit(0 if good else 1)


@dataclass
class Run:
    """How files of tests are run."""

    source: Path
    version: int
    programs: Path
    base: Path
    user: str
    timeout: int
    plain: bool
    kill_every: float | None

    def directory(self, file: Path) -> Path:
        """Return where everything of a file of tests is."""
        return self.base / file.stem

    def file(self, file: Path) -> Result:
        """Run a file of tests."""
        directory = self.directory(file)
        directory.mkdir()
        _give(directory, self.user)
        begun, output = time.monotonic(), directory / "output.tap"
        reason = "" if self.plain else inapplicable(file.stem, self.version)
        with ExitStack() as stack, output.open("wb") as written:
            command = ["perl", "-I", str(self.source / _MODULES)]
            environment = self._environment(directory)
            broker = None
            if not self.plain and not reason:
                broker = stack.enter_context(Broker(directory, self.user, self.timeout, self.kill_every))
                environment["PGOUTPUT_BROKER"] = str(broker.socket)
                command += ["-I", str(Path(__file__).parent), "-MBetween"]
            process = subprocess.Popen(
                [*command, str(file)],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                **_as(self.user),
            )
            try:
                code = process.wait()
            except BaseException:
                process.terminate()  # it stops its servers
                process.wait()
                raise
            kills = broker.kills if broker else 0
        result = read_output(file.stem, output.read_text("utf-8", "replace"), code, between=broker is not None)
        if broker is not None and result.ended and (why := ends_early(file.stem, self.version)):
            result.differs.append(f"{result.ended}: {why}")
            result.ended = ""
        result.seconds, result.kills, result.inapplicable = time.monotonic() - begun, kills, reason
        return result

    def _has_icu(self) -> bool:
        command = [str(self.programs / "pg_config"), "--configure"]
        shown = subprocess.run(command, check=False, capture_output=True, text=True).stdout
        return "--with-icu" in shown

    def _environment(self, directory: Path) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("LANG", "TZ", "TMPDIR") if name in os.environ}
        return {
            **inherited,
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "HOME": str(directory),
            "TESTDIR": str(directory),  # up to 15
            "TESTDATADIR": str(directory / "tmp_check"),
            "TESTLOGDIR": str(directory / "tmp_check" / "log"),
            "PG_REGRESS": "true",  # run with --config-auth, which does something on Windows alone
            "PG_TEST_TIMEOUT_DEFAULT": str(self.timeout),
            "with_icu": "yes" if self._has_icu() else "no",
        }


def read_output(file: str, text: str, code: int, *, between: bool = True) -> Result:
    """Return what TAP says.

    Args:
        file: The name of the file of tests.
        text: Its output.
        code: Its exit status.
        between: Whether a capture and a publisher were in between, so that some tests fail by design.
    """
    result, planned, last = Result(file), None, ""
    for line in text.splitlines():
        if match := _LINE.fullmatch(line.rstrip()):
            name = (match["name"] or "").strip()
            if match["skip"]:
                result.skipped += 1
            elif match["failed"] and between and (reason := intended(file, int(match["number"]), name)):
                result.differs.append(f"{name}: {reason}")
            elif match["failed"]:
                result.failed.append(name)
            else:
                result.passed += 1
        elif plan := re.fullmatch(r"1\.\.(\d+)(\s*# (?:skip|SKIP)\b.*)?", line.rstrip()):
            planned = int(plan[1])
            result.skipped += bool(plan[2])
        elif line.strip() and not line.startswith("# Looks like"):
            last = line.strip()
    if planned is None or (code and not result.failed and not result.differs):
        result.ended = f"exit status {code}: {last[:200]}"
    return result


def _chosen(source: Path, files: Sequence[str]) -> list[Path]:
    there = sorted((source / _TESTS).glob("*.pl"))
    if not there:
        raise click.BadParameter(f"{source} has no {_TESTS}/*.pl: name the sources of a release", param_hint="SOURCE")
    names = {path.stem: path.resolve() for path in there}
    chosen = [name for name in names if not files or any(name == file or name.startswith(f"{file}_") for file in files)]
    for file in files:
        if not any(name == file or name.startswith(f"{file}_") for name in names):
            raise click.BadParameter(f"no file {file}: there are {', '.join(names)}", param_hint="--file")
    return [names[name] for name in chosen]


def _programs(version: int, stack: ExitStack) -> Path:
    if version in VERSIONS:
        server = EmbeddedServer(version)
        stack.callback(server.close)
        return server.bin_path
    installed = Path(f"/usr/lib/postgresql/{version}/bin")
    if not (installed / "initdb").exists():
        raise click.UsageError(f"no server of PostgreSQL {version}: say where its programs are (--bin)")
    return installed


def _user(given: str | None) -> str:
    if os.geteuid():
        return pwd.getpwuid(os.geteuid()).pw_name
    known = {entry.pw_name for entry in pwd.getpwall()}
    return given or next(name for name in ("postgres", "nobody") if name in known)


def _give(directory: Path, user: str) -> None:
    directory.chmod(0o700)
    if not os.geteuid():
        entry = pwd.getpwnam(user)
        os.chown(directory, entry.pw_uid, entry.pw_gid)


def _as(user: str) -> dict[str, Any]:
    """Return the arguments of Popen for another user, where root runs this: no server runs as root."""
    return {} if os.geteuid() else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def _line(result: Result, directory: Path) -> str:
    said = f"{result.file}: {result.passed} passed, {len(result.failed)} failed"
    said += f", {len(result.differs)} differ by design" if result.differs else ""
    said += f", {result.skipped} skipped" if result.skipped else ""
    said += f", {result.kills} kills" if result.kills else ""
    said += f" ({result.seconds:.0f} s)"
    return "\n".join([said, *_problems(result), *([] if result.good else [f"  files: {directory}"])])


def _problems(result: Result) -> Iterator[str]:
    if result.inapplicable:
        yield f"  run with nothing in between: {result.inapplicable}"
    for name in result.failed:
        yield f"  not ok: {name}"
    for name in result.differs:
        yield f"  differs by design: {name}"
    if result.ended:
        yield f"  ended: {result.ended}"


def _table(results: Sequence[Result]) -> Table:
    table = Table("file", "passed", "failed", "differ", "skipped", "seconds", "")
    for each in results:
        counts = each.passed, len(each.failed), len(each.differs), each.skipped, round(each.seconds)
        table.add_row(each.file, *map(str, counts), _verdict(each))
    sums = (sum(counts) for counts in zip(*((r.passed, len(r.failed), len(r.differs)) for r in results), strict=True))
    table.add_row("", *map(str, sums))
    whole = sum(each.good and not each.differs and not each.inapplicable for each in results)
    table.caption = f"{whole} of {len(results)} files pass completely"
    return table


def _verdict(result: Result) -> str:
    if not result.good:
        return "ended early" if result.ended else ""
    return "does not apply" if result.inapplicable else "differs" if result.differs else "complete"


if __name__ == "__main__":
    main()
