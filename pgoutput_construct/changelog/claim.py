"""The claim of one capture to write into a log: by a lock, and where locks keep nobody out, by looking at its end.

An object store is claimed before the first write and not earlier: the slot has one reader, and who has come as far as
to write has the slot. What another capture wrote until then, and an upload of it that ends later, shows at the end.
"""

import time
from typing import Final

from pgoutput_construct.changelog.footer import Segment
from pgoutput_construct.changelog.names import chosen
from pgoutput_construct.changelog.store import LogLock, LogStore
from pgoutput_construct.errors import ChangeLogError

__all__ = ["Claim", "overtaken"]

_LOCK: Final = "capture"
_SETTLING: Final = 600.0
"""Seconds after a claim in which an upload of the one who had the log before may still end."""


class Claim:
    """Whether a capture may write into a log: a directory is claimed at once, an object store by ``take``.

    ``last`` is, here and there, the newest segment of which the capture knows; None where it knows of none.
    """

    def __init__(self, store: LogStore) -> None:
        """Claim a directory; raises ChangeLogError when another capture has it."""
        self._store = store
        self._lock: LogLock | None = store.lock(_LOCK) if store.keeps_out else None
        self._settled_at = 0.0

    @property
    def is_taken(self) -> bool:
        """Whether there is something that another one can take away."""
        return self._lock is not None

    def take(self, last: Segment | None) -> None:
        """Have the log, from now on; raises ChangeLogError when another one has it, or has written into it."""
        if self._lock is None:
            self._check_end(last)  # who has come too late takes nothing from the other one
            self._lock = self._store.lock(_LOCK)
            self._settled_at = time.monotonic() + _SETTLING
        self.check()
        if time.monotonic() < self._settled_at:
            self._check_end(last)

    def check(self) -> None:
        """Raise ChangeLogError when the log was taken away."""
        if self._lock is not None:
            self._lock.check()

    def is_overtaken(self, last: Segment | None) -> bool:
        """Tell whether another one has written, or an upload of it has ended, after the segment ``last``."""
        files = self._store.files()
        known = (last.name, last.size) if last else None
        return any((newest.name, files[newest.name]) != known for newest in chosen(files)[0][-1:])

    def release(self) -> None:
        """Let others have the log."""
        if self._lock is not None:
            self._lock.release()

    def _check_end(self, last: Segment | None) -> None:
        if self.is_overtaken(last):
            raise overtaken(self._store, last.last_seq + 1 if last else 0)


def overtaken(store: LogStore, seq: int) -> ChangeLogError:
    """Say that a log goes on where a capture wanted to write ``seq``, and what to do."""
    return ChangeLogError(
        f"{store}: the log does not end before seq {seq}, as it did when this capture read it: another capture writes "
        "into it, or an upload that had failed has ended; let one capture run, which goes on where the log ends"
    )
