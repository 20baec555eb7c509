"""Runs one case: plays it to a client, watches what that does, and judges."""

import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, Final

from pgoutput_construct.conformance._play.case_publisher import PASSWORD, SLOT, USER, CaseFeed, CasePublisher
from pgoutput_construct.conformance._play.case_stage import CaseStage
from pgoutput_construct.conformance.conformance_case import ConformanceCase, Outcome, Play
from pgoutput_construct.conformance.conformance_client import ClientTask, ConformanceClient, RunningClient
from pgoutput_construct.conformance.meaning import ExpectedChange, ReportedChange, difference, parse_report
from pgoutput_construct.conformance.steps import StaySilent
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.server import ThreadedPublisher

__all__ = ["CaseResult", "Verdict", "run_case"]

_POLL_SECONDS: Final = 0.004
_MOST_STREAMS: Final = 60
"""A client that connects more often within one case does so for ever."""
_REFUSING_STREAMS: Final = 2
"""Connections that a client ends by itself, each at the same damage, until that counts as a refusal."""
_RESTART_SECONDS: Final = 0.05
_GRACE_SECONDS: Final = 0.25
"""How long a client has ended before that counts: by then the publisher knows why."""
_MOST_CONNECTIONS: Final = 100
"""A client that connects more often hangs, too, although something happens all the time."""
_CRASHED: Final = re.compile(
    r"^panic: |^goroutine \d+ \[running\]|panicked at|Segmentation fault|OutOfMemoryError|^MemoryError|Aborted",
    re.MULTILINE,
)
"""What runtimes write when a program does not end by itself."""


class Verdict(StrEnum):
    """What a case says about a client."""

    PASSES = "passes"
    FAILS = "fails"
    REFUSES = "refuses"
    """It says clearly that it does not accept what it must."""
    HANGS = "hangs"
    CRASHES = "crashes"
    NOT_APPLICABLE = "not applicable"
    """It does not ask for the options that the case is about."""


@dataclass(frozen=True)
class CaseResult:
    """The result of one case."""

    case: ConformanceCase
    verdict: Verdict
    problem: str = ""
    """What is wrong, or why the case does not apply."""
    expected: ExpectedChange | None = None
    """What was expected where it went wrong, if that was a change."""
    reported: str = ""
    """The line that the client wrote there."""
    errors: str = ""
    """What the client said of errors."""
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether the client passes, or the case does not apply."""
        return self.verdict in (Verdict.PASSES, Verdict.NOT_APPLICABLE)


def run_case(case: ConformanceCase, client: ConformanceClient, timeout: float = 10.0) -> CaseResult:
    """Play a case to a client, and judge.

    Args:
        case: The case.
        client: The client, which is started for it, and again if it ends when a connection is lost.
        timeout: Seconds without progress after which the client hangs; it does, too, if it connects a hundred times.

    Raises:
        PgoutputError: The client cannot be started.
    """
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as directory,
        _CaseRun(case, client, timeout, Path(directory)) as run,
    ):
        result = run.result()
    return replace(result, seconds=time.monotonic() - began)


class _CaseRun:
    """One run of one case."""

    def __init__(self, case: ConformanceCase, client: ConformanceClient, timeout: float, directory: Path) -> None:
        self._case, self._client, self._timeout, self._directory = case, client, timeout, directory
        self._stage = CaseStage(case, self.count_reported)
        self._matcher = _Matcher(case.play, self._stage.sent)
        self._lock = RLock()
        self._lines = 0
        self._malformed = ""
        self._stack = ExitStack()
        self._running: RunningClient | None = None
        self._memory = 0
        """The memory that the client needed for the first transaction, in bytes."""
        self._silence = sum(step.seconds for step in case.play.script if isinstance(step, StaySilent))

    def __enter__(self) -> "_CaseRun":
        stage, server = self._stage, self._case.server
        timeout = server.wal_sender_timeout
        settings = Settings(method=server.method, user=USER, password=PASSWORD, wal_sender_timeout=timeout)
        made = partial(CasePublisher, stage)
        publisher = self._stack.enter_context(ThreadedPublisher(CaseFeed(stage), settings, None, made))
        self._task = self._task_for(publisher.publisher.port)
        return self

    def __exit__(self, *_: object) -> None:
        if self._running is not None:
            self._running.stop()
        self._stack.close()

    def _task_for(self, port: int) -> ClientTask:
        return ClientTask(
            case=self._case.name,
            host="127.0.0.1",
            port=port,
            user=USER,
            password=PASSWORD,
            database="postgres",
            slot=SLOT,
            publication=self._case.server.publication,
            options=self._case.options,
            end_lsn=self._case.play.end,
            timeout=2.0,
            directory=self._directory,
            tables=self._case.play.tables,
        )

    def count_reported(self) -> int:
        """Return how many transactions the client has reported completely, after reading what it has written."""
        with self._lock:
            for line in self._running.read() if self._running is not None else ():
                self._lines += 1
                try:
                    self._matcher.take(parse_report(line))
                except PgoutputError as error:
                    self._malformed = self._malformed or str(error)
            return self._matcher.complete

    def result(self) -> CaseResult:
        """Run the client until there is a verdict."""
        self._start()
        progress, at = self._progress(), time.monotonic()
        while True:
            if self._case.play.reads or self._stage.is_played:
                self.count_reported()
            if self._case.play.memory is not None:
                self._measure()
            if (found := self._verdict()) is not None:
                return found
            if self._stage.connections > _MOST_CONNECTIONS:
                return self._judged(Verdict.HANGS, f"it connected more than {_MOST_CONNECTIONS} times")
            if (now := self._progress()) != progress:
                progress, at = now, time.monotonic()
            elif time.monotonic() - at > self._timeout + self._silence:
                return self._hanging()
            time.sleep(_POLL_SECONDS)

    def _start(self) -> None:
        self._ended_at = 0.0
        self._started, self._before = time.monotonic(), self._stage.refused_on_purpose
        with self._lock:  # it may confirm what it has reported before it is known here
            self._running = self._client.start(self._task)

    def _measure(self) -> None:
        """Look at the client's memory, which cannot be done any more when it has ended."""
        assert self._running is not None
        peak = self._running.peak or 0
        if self._matcher.complete <= 1:
            self._memory = max(self._memory, peak)

    def _progress(self) -> tuple[int, int, int, int]:
        streams = self._stage.streams
        return self._lines, self._stage.connections, len(streams), streams[-1].sent if streams else 0

    def _verdict(self) -> CaseResult | None:
        """Return the verdict as soon as there is one."""
        if self._stage.inapplicable:
            return self._judged(Verdict.NOT_APPLICABLE, self._stage.inapplicable)
        if (mismatch := self._matcher.mismatch) is not None and not self._malformed:
            line = mismatch.reported.line if mismatch.reported else ""
            return self._judged(Verdict.FAILS, mismatch.problem, mismatch.expected, line)
        if problem := self._problem():
            return self._judged(Verdict.FAILS, problem)
        outcome = self._case.play.outcome
        if outcome is not Outcome.COMMITTED and (found := self._refusal()) is not None:
            return found
        if outcome is not Outcome.REFUSED and self._matcher.has_all and self._stage.is_played:
            return self._passing()
        return self._ended()

    def _problem(self) -> str:
        """Return what the client has done wrong, apart from what it reports; empty for nothing so far."""
        if self._malformed:
            return f"its output is malformed: {self._malformed}"
        if len(self._stage.streams) > _MOST_STREAMS:
            return f"it connected {len(self._stage.streams)} times, without an end"
        return next(iter(self._stage.problems), "")

    def _passing(self) -> CaseResult:
        assert self._running is not None
        most, peak = self._case.play.memory, self._running.peak
        if most is not None and peak is not None and peak > self._memory + most:
            used = f"{peak - self._memory >> 20:,} MiB of memory more than before; {most >> 20:,} MiB suffice"
            return self._judged(Verdict.FAILS, f"it used {used}")
        return self._judged(Verdict.PASSES)

    def _refusal(self) -> CaseResult | None:
        """Return the verdict of a client that refuses what it must refuse; None while it has not done so."""
        assert self._running is not None
        left = sum(stream.left for stream in self._stage.streams) + self._stage.refused_on_purpose
        status = self._running.status
        if status is None and left < _REFUSING_STREAMS:
            return None
        self.count_reported()
        if not self._matcher.has_all or status == 0 or self._is_crash(status):
            return None if status is None else self._ended()
        return self._passing()

    def _ended(self) -> CaseResult | None:
        """Return the verdict of a client that has ended before it should; restart one whose connection was lost."""
        assert self._running is not None
        if (status := self._running.status) is None:
            return None
        self.count_reported()
        if self._matcher.mismatch is not None:
            return None  # the next look at it has the verdict
        if status == 0 and self._matcher.has_all and self._case.play.outcome is not Outcome.REFUSED:
            return self._passing()
        if self._was_cut() and not self._is_crash(status):
            self._restart()
            return None
        self._ended_at = self._ended_at or time.monotonic()
        if time.monotonic() - self._ended_at < _GRACE_SECONDS:
            return None  # the script may be about to end the connection that the client has left
        return self._judged(*self._end_of(status), self._matcher.missing())

    def _end_of(self, status: int) -> tuple[Verdict, str]:
        """Return what it means that a client has ended by itself."""
        assert self._running is not None
        said = _status(status)
        if self._is_crash(status):
            return Verdict.CRASHES, f"it crashed ({said})"
        if self._case.play.outcome is Outcome.REFUSED:
            missing = "it had not reported the transactions before what is invalid"
            return Verdict.FAILS, "it ended as if nothing were wrong (exit status 0)" if status == 0 else missing
        if status and self._running.errors.strip():
            return Verdict.REFUSES, f"it refused what it must accept ({said})"
        return Verdict.FAILS, f"it ended before it had reported everything ({said})"

    def _was_cut(self) -> bool:
        """Return whether a client's connection was lost, or refused, on purpose since it was started."""
        streams, refusals = len(self._stage.streams), self._stage.refused_on_purpose
        was_cut = self._stage.last_drop > self._started or refusals > self._before
        if self._case.play.outcome is Outcome.REFUSED:
            return False
        return was_cut and streams + refusals <= _MOST_STREAMS

    def _restart(self) -> None:
        assert self._running is not None
        self._running.stop()
        self._matcher.restarted()
        time.sleep(_RESTART_SECONDS)
        self._start()

    def _is_crash(self, status: int | None) -> bool:
        assert self._running is not None
        return status is not None and (status < 0 or (status != 0 and bool(_CRASHED.search(self._running.errors))))

    def _hanging(self) -> CaseResult:
        if not self._stage.connections:
            return self._judged(Verdict.HANGS, f"it did not connect within {self._timeout:g} seconds")
        if not self._stage.streams:
            return self._judged(Verdict.HANGS, f"it did not start replication within {self._timeout:g} seconds")
        if self._case.play.outcome is Outcome.REFUSED:
            return self._judged(
                Verdict.HANGS, f"it neither refused what is invalid nor ended within {self._timeout:g} seconds"
            )
        return self._judged(Verdict.HANGS, f"nothing came of it for {self._timeout:g} seconds", self._matcher.missing())

    def _judged(
        self, verdict: Verdict, problem: str = "", expected: ExpectedChange | None = None, reported: str = ""
    ) -> CaseResult:
        errors = self._running.errors if self._running is not None and verdict is not Verdict.PASSES else ""
        refusals = "\n".join(f"server: {text}" for text in dict.fromkeys(self._stage.refusals))
        said = "\n".join(filter(None, (errors.strip(), refusals)))
        return CaseResult(self._case, verdict, problem, expected, reported, said)


@dataclass(frozen=True)
class _Mismatch:
    """The first report that is wrong."""

    problem: str
    expected: ExpectedChange | None
    reported: ReportedChange | None


class _Matcher:
    """Compares a client's changes with what a case expects, in the order of its lines.

    A transaction that the server has sent again, since it was not confirmed, may be reported again, unless the case
    says otherwise; the ones after it may then be, too.
    """

    def __init__(self, play: Play, sent: Mapping[int, int]) -> None:
        """Expect the first transaction.

        Args:
            play: What is played.
            sent: How often each unit was sent completely.
        """
        self._play = play
        self._sent = sent
        self.complete = 0
        """The number of expected transactions that were reported completely."""
        self.mismatch: _Mismatch | None = None
        self._next = 0
        """The transaction that is expected next: one of those before ``complete`` if they are reported again."""
        self._open: list[ExpectedChange] = []
        """What is missing of the transaction that is reported."""
        self._counts: Counter[int] = Counter()
        self._last = -1
        """The transaction that was reported last."""
        self._transaction: Any = None

    @property
    def has_all(self) -> bool:
        """Whether all expected transactions were reported, and nothing else."""
        return self.mismatch is None and self.complete == len(self._play.transactions) and not self._open

    def restarted(self) -> None:
        """Note that the client was started again: its way to tell transactions apart may begin again."""
        self._transaction = None

    def take(self, change: ReportedChange) -> None:
        """Take the next change."""
        if self.mismatch is not None:
            return
        if self._open:
            self._continue(change)
        else:
            self._begin(change)
        self._transaction = change.transaction

    def missing(self) -> ExpectedChange | None:
        """Return the change that is expected next; None if all were reported."""
        if self._open:
            return self._open[0]
        transactions = self._play.transactions
        return transactions[self.complete].changes[0] if self.complete < len(transactions) else None

    def _continue(self, change: ReportedChange) -> None:
        expected = self._open[0]
        if change.transaction != self._transaction:
            self._fail("the rest of a transaction is missing, or is reported as another one", expected, change)
            return
        found = self._matching(change)
        if found is None:
            self._fail(difference(expected, change), expected, change)
            return
        self._open.remove(found)
        self._end()

    def _matching(self, change: ReportedChange) -> ExpectedChange | None:
        """Return the expected change that a reported one is: tables of one truncate have no order."""
        first = self._open[0]
        together = [first]
        if first.operation == "truncate":
            together = [each for each in self._open if each.operation == "truncate" and each.step == first.step]
        return next((each for each in together if not difference(each, change)), None)

    def _begin(self, change: ReportedChange) -> None:
        transactions = self._play.transactions
        for number in dict.fromkeys((self._next, self.complete, *range(self.complete))):
            if number >= len(transactions):
                continue
            self._open = list(transactions[number].changes)
            found = self._matching(change)
            if found is not None:
                self._open.remove(found)
                self._started(number, found, change)
                return
        self._open = []
        if self.complete < len(transactions):
            expected = transactions[self.complete].changes[0]
            self._fail(difference(expected, change), expected, change)
        else:
            self._fail("this was not committed, or must not be accepted", None, change)

    def _started(self, number: int, expected: ExpectedChange, change: ReportedChange) -> None:
        again = self._counts[number]
        self._counts[number] += 1
        if again and self._play.once:
            self._fail("the transaction was reported before", expected, change)
        elif again and again >= self._sent.get(self._play.transactions[number].unit, 0):
            self._fail("the transaction was reported before, and was not sent again", expected, change)
        elif number != self._last and change.transaction is not None and change.transaction == self._transaction:
            self._fail("it is reported as a change of the transaction before", expected, change)
        else:
            self._next = self._last = number
            self._end()

    def _end(self) -> None:
        if not self._open:
            self._next += 1
            self.complete = max(self.complete, self._next)

    def _fail(self, problem: str, expected: ExpectedChange | None, reported: ReportedChange) -> None:
        self.mismatch = _Mismatch(problem, expected, reported)
        self._open = []


def _status(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"
