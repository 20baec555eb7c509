"""What tests and benchmarks fetch: kept outside of the clone, for all clones of this user.

It lies in PGOUTPUT_ENVIRONMENTS, or in XDG_CACHE_HOME, by default ``~/.cache``. Each thing has a stamp, which is
written when it is whole; pip, Ivy, npm and apt compare the checksums of what they download.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["FOLDER", "FOR_SERVERS", "fetching"]

_CACHES: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
FOLDER: Final = Path(os.environ.get("PGOUTPUT_ENVIRONMENTS") or _CACHES / "pgoutput_construct")
"""Where it is."""

FOR_SERVERS: Final = FOLDER if os.geteuid() else Path("/var/cache/pgoutput_construct")
"""Where servers are: they do not run as root, and their user cannot enter root's home."""


@contextmanager
def fetching(name: str) -> Iterator[None]:
    """Fetch a thing in the block, once no other process, of any clone, is fetching it: that one may have all of it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
