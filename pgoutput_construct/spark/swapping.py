"""A directory written next to another one, and put in its place at once."""

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

__all__ = ["replacing"]

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
"""Both as Linux has them (linux/fcntl.h, linux/fs.h)."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield where to write a directory, which takes the place of ``path`` when the block ends; else it is removed.

    Who looks at ``path`` meanwhile sees what was there, and then what was written: on Linux both are exchanged in one
    step, elsewhere nothing is there for a moment.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_name(f"_{uuid4().hex}")  # Spark sees no such names
    try:
        yield written
        if path.exists():
            _exchange(written, path)
        else:
            written.rename(path)
    finally:
        shutil.rmtree(written, ignore_errors=True)


def _exchange(one: Path, other: Path) -> None:
    if not _exchanged(one, other):
        aside = other.with_name(f"_{uuid4().hex}")
        other.rename(aside)
        one.rename(other)
        aside.rename(one)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two names at once; return whether the system, and the file system, can do that."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    done: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return done == 0
