"""Whether a directory is still the one that was locked: it may be moved away, or its volume unmounted."""

import os
from pathlib import Path

from pgoutput_construct.errors import ChangeLogError

__all__ = ["check_place"]


def check_place(lock: Path, descriptor: int) -> None:
    """Raise ChangeLogError unless the file ``lock`` is the one behind ``descriptor``, by device and inode.

    What is written by path into another directory is not in the log; confirmed, it would be lost.
    """
    try:
        here = lock.stat()
    except OSError:
        here = None
    held = os.fstat(descriptor)
    if here is None or (here.st_dev, here.st_ino) != (held.st_dev, held.st_ino):
        raise ChangeLogError(
            f"{lock.parent}: the directory of the change log was exchanged, emptied or unmounted while the capture "
            "ran; nothing was confirmed since: bring it back, and start the capture again"
        )
