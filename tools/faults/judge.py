"""Compares a log with the witness: nothing lost, nothing repeated, nothing visible that was rolled back."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pgoutput_construct.stream.transaction_reader import COMMITTED, EndedTransaction
from pgoutput_construct.wire import Lsn
from tools.faults.changes import Change
from tools.faults.contents import Contents, Transaction
from tools.faults.witness import Witness

__all__ = ["Verdict", "judge", "judge_captures", "judge_index"]

_SHOWN = 20
_Known = tuple[Any, ...]
"""The facts about a transaction in footers and payloads: xid, LSNs, time, spans, and aborted subtransactions."""


@dataclass
class Verdict:
    """The differences between a log and the witness, in changes; and captures that ended by themselves."""

    lost: int = 0
    """Committed, but not in the log."""
    repeated: int = 0
    """More often in the log than committed."""
    visible: int = 0
    """Rolled back, but in the log as if committed."""
    altered: int = 0
    """In the log with other values, or without columns or old rows."""
    misordered: int = 0
    """Transactions with their changes in another order, and commits in another order or at another time."""
    misindexed: int = 0
    """Transactions whose footers differ from the payloads."""
    ended: int = 0
    """Captures that ended by themselves: no fault may end a capture that is not killed."""
    problems: list[str] = field(default_factory=list)
    """Descriptions of the first problems of each kind."""

    @property
    def good(self) -> bool:
        """Whether the log equals the witness, and no capture gave up."""
        return self == Verdict(problems=self.problems)

    def add(self, kind: str, place: str, count: int = 1) -> None:
        """Count ``count`` of a ``kind`` (the name of a counter) at a place."""
        if count:
            setattr(self, kind, getattr(self, kind) + count)
            if len(self.problems) < _SHOWN:
                self.problems.append(f"{kind} {count}: {place}")


def judge_captures(ended: Iterable[str], verdict: Verdict) -> None:
    """Count the captures that ended by themselves; ``ended`` describes each one."""
    for ending in ended:
        verdict.add("ended", ending)


def judge(contents: Contents, witness: Witness) -> Verdict:
    """Compare the contents of a log with the witness."""
    verdict = Verdict()
    seen: set[int] = set()
    for transaction in contents.transactions:
        if transaction.xid in seen:
            verdict.add("repeated", _place(transaction), len(transaction.changes))
        elif transaction.xid not in witness.transactions:
            verdict.add("visible", _place(transaction), len(transaction.changes))
        else:
            _compare(transaction, witness, verdict)
        seen.add(transaction.xid)
    for xid in witness.transactions.keys() - seen:
        verdict.add("lost", f"all of xid {xid}", len(witness.transactions[xid]))
    _check_order(contents, verdict)
    _check_notes(contents, witness, verdict)
    return verdict


def judge_index(indexed: Iterable[Mapping[str, Any]], contents: Contents, verdict: Verdict) -> None:
    """Compare the committed transactions of the footers (rows of ``SegmentIndex.transactions``) with the payloads'."""
    there = {row["seq"]: _from_footer(row) for row in indexed if row["outcome"] == COMMITTED}
    here = {ended.seq: _from_payloads(ended) for ended in contents.ended if ended.outcome == COMMITTED}
    for seq in sorted({seq for seq, _ in there.items() ^ here.items()}):
        verdict.add("misindexed", f"seq {seq}: the footer says {there.get(seq)}, the payloads {here.get(seq)}")


def _from_footer(row: Mapping[str, Any]) -> _Known:
    spans = tuple((span["first"], span["last"]) for span in row["spans"])
    return row["xid"], row["commit_lsn"], row["end_lsn"], row["commit_time"], spans, tuple(sorted(row["aborted"]))


def _from_payloads(ended: EndedTransaction) -> _Known:
    transaction, numbers = ended.transaction, (ended.commit_lsn, ended.end_lsn, ended.time)
    return transaction.xid, *numbers, tuple(transaction.spans), tuple(sorted(transaction.aborted))


def _place(transaction: Transaction) -> str:
    return f"xid {transaction.xid}, commit {Lsn(transaction.commit_lsn)}"


def _compare(transaction: Transaction, witness: Witness, verdict: Verdict) -> None:
    true = witness.transactions[transaction.xid]
    place = _place(transaction)
    if transaction.commit_time != witness.commit_times[transaction.xid]:
        verdict.add("misordered", f"{place}: another time of its commit")
    if _identities(transaction.changes) != _identities(true):
        _count_differences(transaction.changes, true, place, verdict)
        return
    for mine, other in zip(transaction.changes, true, strict=True):
        if problems := mine.differences(other):
            verdict.add("altered", f"{place}: {mine.identity}: {', '.join(problems)}")


def _identities(changes: Iterable[Change]) -> list[tuple[str | None, ...]]:
    return [change.identity for change in changes]


def _count_differences(mine: Iterable[Change], true: Iterable[Change], place: str, verdict: Verdict) -> None:
    here, there = Counter(_identities(mine)), Counter(_identities(true))
    if here == there:
        verdict.add("misordered", f"{place}: its changes")
    for identity, count in (there - here).items():
        verdict.add("lost", f"{place}: {identity}", count)
    for identity, count in (here - there).items():
        verdict.add("repeated" if identity in there else "visible", f"{place}: {identity}", count)


def _check_order(contents: Contents, verdict: Verdict) -> None:
    """Check the order of commits: that of the WAL, and that of the ticket for transactions that waited for it."""
    for before, after in pairwise(contents.commits):
        if before >= after:
            verdict.add("misordered", f"the commit at {Lsn(after)} comes after that at {Lsn(before)}")
    latest: dict[str | None, int] = {}
    for transaction in contents.transactions:
        for ticket, number in _tickets(transaction):
            if number <= latest.get(ticket, 0):
                verdict.add("misordered", f"{_place(transaction)}: ticket {ticket} is {number} after {latest[ticket]}")
            latest[ticket] = number


def _tickets(transaction: Transaction) -> Iterator[tuple[str | None, int]]:
    for change in transaction.changes:
        if change.relation == "ticket" and change.new is not None:
            yield change.new["id"], int(change.new["mark"] or 0)


def _check_notes(contents: Contents, witness: Witness, verdict: Verdict) -> None:
    """Check that each non-transactional message occurs once; those of uncommitted transactions may or may not occur."""
    for note in (witness.notes - contents.notes).elements():
        verdict.add("lost", f"the message {note} outside of transactions")
    for note, count in contents.notes.items():
        verdict.add("repeated", f"the message {note} outside of transactions", count - 1)
