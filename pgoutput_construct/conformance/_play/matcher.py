"""Compares what a client reports with what a case expects, change by change."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pgoutput_construct.conformance.conformance_case import Play
from pgoutput_construct.conformance.meaning import ExpectedChange, ReportedChange, difference

__all__ = ["Matcher", "Mismatch"]


@dataclass(frozen=True)
class Mismatch:
    """The first report that is wrong."""

    problem: str
    expected: ExpectedChange | None
    reported: ReportedChange | None


class Matcher:
    """Takes a client's changes in the order of its lines.

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
        self.mismatch: Mismatch | None = None
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
        """Note that the client was started again: how it tells transactions apart may begin anew."""
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
        self.mismatch = Mismatch(problem, expected, reported)
        self._open = []
