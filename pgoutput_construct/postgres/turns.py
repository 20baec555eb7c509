"""How long a thread may keep the interpreter while another one waits for it."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quick_turns"]

_SECONDS = 0.0005
"""The buffer of a local socket is full after about 1.5 ms. With Python's own 5 ms the thread that reads the stream
often waits longer than that for the one that writes a segment, and the server for both."""

_lock = threading.Lock()
_before: list[float] = []


@contextmanager
def quick_turns() -> Iterator[None]:
    """Have the threads of this process give way after half a millisecond, until the last such context ends."""
    with _lock:
        _before.append(_before[0] if _before else sys.getswitchinterval())
        sys.setswitchinterval(min(_before[0], _SECONDS))
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before:
                sys.setswitchinterval(before)
