"""Input as chunks of bytes: a file or standard input of any size, and a live pipe without delay."""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire.reference import LARGEST

__all__ = ["ByteSource", "open_source", "standard_input", "standard_output"]

CHUNK = 1 << 20
LONGEST_LINE = 3 * LARGEST  # the hexadecimal digits of the largest message, and some room


class ByteSource:
    """The bytes of one input, read once from front to end."""

    def __init__(self, file: Any, name: str, before_wait: Callable[[], object] | None = None) -> None:
        """``file`` is a binary file; ``before_wait`` is called before each read that may wait for a writer."""
        self.name = name
        self._file = file
        self._peeked = b""
        self._ended = False
        self._size = _size(file)
        self._consumed = 0
        self._before_wait = before_wait if self._size is None else None

    def chunk(self) -> bytes:
        """Return some more bytes, as soon as there are any; none at the end."""
        if self._peeked:
            peeked, self._peeked = self._peeked, b""
            return peeked
        return self._read()

    def peek(self, enough: Callable[[bytes], bool] = bool) -> bytes:
        """Return the first bytes, as soon as they are enough, or all; the next chunk has them again."""
        while not enough(self._peeked) and (more := self._read()):
            self._peeked += more
        return self._peeked

    def lines(self) -> Iterator[bytes]:
        """Iterate over the lines, without their newlines; raise PgoutputError for one longer than any message."""
        parts: list[bytes] = []
        while chunk := self.chunk():
            first, *others = chunk.split(b"\n")
            parts.append(first)
            if others:
                yield b"".join(parts)
                yield from others[:-1]
                parts = others[-1:]
            elif sum(map(len, parts)) > LONGEST_LINE:
                raise PgoutputError(f"{self.name}: a line is longer than any message: this is not lines of text")
        if any(parts):
            yield b"".join(parts)

    def done(self) -> float | None:
        """Return which part of the input has been read, None where its size is not known."""
        return self._consumed / self._size if self._size else None

    def _read(self) -> bytes:
        if self._ended:
            return b""  # a terminal would ask for a second end
        if self._before_wait is not None:
            self._before_wait()
        data: bytes = self._file.read1(CHUNK)
        self._ended = not data
        self._consumed += len(data)
        return data


def standard_input() -> BinaryIO:
    """Return standard input as bytes; raise PgoutputError where there is none (``<&-`` in a shell)."""
    if sys.stdin is None:
        raise PgoutputError("standard input is closed: name a file, or send the input through a pipe")
    return sys.stdin.buffer


def standard_output() -> BinaryIO:
    """Return standard output as bytes; raise PgoutputError where there is none (``>&-`` in a shell)."""
    if sys.stdout is None:
        raise PgoutputError("standard output is closed: send it to a file or a pipe")
    return sys.stdout.buffer


@contextmanager
def open_source(path: str, before_wait: Callable[[], object] | None = None) -> Iterator[ByteSource]:
    """Open a file, or standard input for ``-``."""
    if path == "-":
        yield ByteSource(standard_input(), "standard input", before_wait)
        return
    with Path(path).open("rb") as file:
        yield ByteSource(file, path, before_wait)


def _size(file: Any) -> int | None:
    try:
        status = os.fstat(file.fileno())
    except (OSError, AttributeError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
