"""Injects faults: each one disrupts a running capture, its server, or the network between them."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.stream.transaction_reader import ABORTED
from tools.faults.capture_process import CaptureProcess
from tools.faults.counts import Counts
from tools.faults.errors import FaultsError
from tools.faults.maintenance import Tidying
from tools.faults.proxy import Proxy
from tools.faults.writers import Connect

__all__ = ["SLOW", "Breaking"]

SLOW = ("stall", "tidy")
"""The slow faults."""

_LOOK_SECONDS = 0.05
_BEGIN_SECONDS = 300.0
_CONNECT_SECONDS = 60.0
_SEGMENT_SECONDS = 15.0
# The capture waits 60 seconds for the result of a statement, and three status intervals for anything on the stream.
_SILENCE_SECONDS = 75.0
_GHOSTS = "INSERT INTO item SELECT nextval('marks'), nextval('marks'), 'rolled back', g FROM generate_series(1, 2000) g"
"""What is above logical_decoding_work_mem."""
_RUNNING = """SELECT FROM pg_stat_activity
              WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()"""


@dataclass
class Breaking:
    """Injects one fault after the other around one capture; a capture that ends is restarted."""

    server: EmbeddedServer
    connect: Connect
    process: CaptureProcess
    proxy: Proxy
    tidying: Tidying
    log: Path
    """The log's directory."""
    chance: random.Random
    counts: Counts

    def begin(self) -> None:
        """Wait for the first segment: the first capture on a machine compiles its kernels."""
        if not self._wait(lambda: bool(self._newest()), _BEGIN_SECONDS):
            raise FaultsError(f"the capture wrote no segment in {_BEGIN_SECONDS:.0f} s: {self.process.errors}")

    def inflict(self, fault: str) -> None:
        """Inject a fault of ``Faults.events`` at a random time."""
        self.process.ensure()
        self._wait_randomly()
        faults = {"kill": self._kill, "stop": self._stop, "cut": self._cut, "stall": self._stall, "tidy": self._tidy}
        faults["rollback"] = self._roll_back
        faults[fault]()

    def run_until(self, until: float) -> None:
        """Let the capture run until ``until`` (time.monotonic())."""
        self._wait(lambda: time.monotonic() >= until, max(0.0, until - time.monotonic()))

    def _wait_randomly(self) -> None:
        """Wait for a random time: often until shortly after a segment, sometimes while the capture starts."""
        if self.chance.random() < 0.7:
            newest = self._newest()
            self._wait(lambda: self._newest() != newest, _SEGMENT_SECONDS)
            time.sleep(self.chance.random() * 0.4)
        else:
            time.sleep(self.chance.random() * 2)

    def _newest(self) -> str:
        return max((path.name for path in self.log.glob("segment-*")), default="")

    def _kill(self) -> None:
        self.process.ensure()
        self.counts.kills += self.process.kill()
        time.sleep(self.chance.random() * 0.3)

    def _stop(self) -> None:
        self.server.stop("immediate")
        self.counts.stops += 1
        time.sleep(self.chance.random())
        self.server.start()

    def _roll_back(self) -> None:
        """Roll back a transaction that was streamed, and kill the capture and its server where the log ends with it.

        The server sets its slot back to where a checkpoint saved it, so that the next capture compares the log's end.
        """
        with self.connect() as connection:
            self._wait(lambda: not connection.execute(_RUNNING).fetchall(), _CONNECT_SECONDS)
            connection.execute(f"BEGIN; {_GHOSTS}".encode())
            ((xid,),) = connection.execute("SELECT pg_current_xact_id()::xid::text::bigint").fetchall()
            self._wait(lambda: xid in self._open(), _CONNECT_SECONDS if self._streams() else 0.0)
            connection.execute("ROLLBACK")
        self._wait(lambda: xid not in self._open(), _CONNECT_SECONDS)
        killed = self.process.kill()
        self.counts.kills += killed
        self.counts.rollbacks += killed and self._ends_with(xid)
        self._stop()

    def _streams(self) -> bool:
        return ChangeLog(self.log).options.streaming != "off"

    def _open(self) -> list[int]:
        xids: list[int] = ChangeLog(self.log).open_transactions()["xid"].to_pylist()
        return xids

    def _ends_with(self, xid: int) -> bool:
        last = ChangeLog(self.log).transactions().to_pylist()[-1:]
        return any(row["xid"] == xid and row["outcome"] == ABORTED for row in last)

    def _cut(self) -> None:
        self._wait_connected()
        self.counts.cuts += bool(self.proxy.cut())

    def _stall(self) -> None:
        """Stall a connection until the capture gives it up; otherwise it is cut after some time."""
        self._wait_connected()
        if self.chance.random() < 0.3:
            self.proxy.stall_next()
            self.proxy.cut()
        else:
            self.proxy.stall()
        self.counts.stalls += 1
        pid = self.process.pid
        self.counts.noticed += self._wait(lambda: not self.proxy.silent, _SILENCE_SECONDS) and self._is(pid)
        self.proxy.cut()

    def _is(self, pid: int | None) -> bool:
        """Return whether the capture is still the same process."""
        return self.process.runs and self.process.pid == pid

    def _tidy(self) -> None:
        """Compact or prune while the capture runs, or is killed at the same time."""
        if self._wait(lambda: bool(self._newest()), _CONNECT_SECONDS):
            self.tidying.step(self._during_maintenance)

    def _during_maintenance(self) -> None:
        if self.chance.random() < 0.3:
            killed = self.process.kill()
            self.counts.kills += killed
            self.counts.kills_beside += killed
        self.process.ensure()

    def _wait_connected(self) -> None:
        if not self._wait(lambda: bool(self.proxy.connected), _CONNECT_SECONDS):
            raise FaultsError(f"the capture did not connect in {_CONNECT_SECONDS:.0f} s: {self.process.errors}")

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait for a condition, restarting the capture if it ends; return whether it became true in time."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.process.ensure()
            time.sleep(_LOOK_SECONDS)
        return True
