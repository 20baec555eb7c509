"""Measuring freshness: how long a commit takes to be in the tables, by polling the log and the warehouse."""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow.compute as pc

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset, Warehouse
from pgoutput_construct.stream.transaction_reader import COMMITTED
from pgoutput_construct.wire.types import UNIX_TO_POSTGRES

__all__ = ["Event", "Freshness", "Lag", "Sample"]

_TICK: Final = 0.25
"""Seconds between two polls."""


@dataclass(frozen=True)
class Sample:
    """The number of transactions at one time."""

    seconds: float
    """Seconds since the beginning."""
    captured: int
    """Transactions in the log."""
    replicated: int
    """Transactions in all tables."""


@dataclass(frozen=True)
class Lag:
    """An update of a table."""

    seconds: float
    """Seconds since the beginning."""
    table: str
    lags: tuple[float, ...]
    """Seconds since the commit of each transaction that the update added."""


@dataclass(frozen=True)
class Event:
    """An event in the pipeline, such as a crash."""

    seconds: float
    """Seconds since the beginning."""
    text: str


@dataclass
class Freshness:
    """Polls a log and a warehouse; a context manager. The server must use this machine's clock."""

    log: Path
    warehouse: Path
    samples: list[Sample] = field(default_factory=list)
    lags: list[Lag] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)
    _done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="freshness", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    @property
    def tables(self) -> int:
        """The number of tables in the warehouse."""
        return len(self._known)

    def note(self, text: str) -> None:
        """Record an event."""
        self.events.append(Event(self._seconds(), text))

    def look(self) -> None:
        """Poll the log and the tables."""
        ended = ChangeLog(self.log).transactions()
        ended = ended.filter(pc.equal(ended["outcome"], COMMITTED))
        seqs, now = ended["seq"].to_numpy(), time.time()
        ages = now - (ended["commit_time"].to_numpy() + UNIX_TO_POSTGRES) / 1e6
        datasets = Warehouse(self.warehouse).datasets().values()
        for dataset in datasets:
            new = ages[(seqs > self._known.get(dataset.version.table, -1)) & (seqs <= dataset.version.seq)]
            self._take(dataset, tuple(new.tolist()))
        reached = min((dataset.version.seq for dataset in datasets), default=-1)
        self.samples.append(Sample(self._seconds(), len(seqs), int((seqs <= reached).sum())))

    def _take(self, dataset: Dataset, lags: tuple[float, ...]) -> None:
        table = dataset.version.table
        # The first version of a table has everything from before its copy, which is no lag.
        if lags and table in self._known:
            self.lags.append(Lag(self._seconds(), table, lags))
        self._known[table] = dataset.version.seq

    def _run(self) -> None:
        while not self._done.wait(_TICK):
            try:
                self.look()
            except PgoutputError:  # there is no log yet, or a file was removed while it was read
                continue

    def _seconds(self) -> float:
        return time.monotonic() - self._began
