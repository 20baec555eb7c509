"""The heap of Spark's JVM: its size by default, and the rows that are too large for it.

Spark takes 1 GB unless it is given another size, on any machine, and a task that needs more ends with an
OutOfMemoryError. Its readers and writers hold a value several times: as a page of a file, in a vector of a column that
grows by doubling, as a row, and as a page again. So rows are compared with the heap when they are decoded, which is
done in Python, before the JVM sees them: a row that is too large is the error of its table.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from pgoutput_construct.spark._deferred_session import is_closed

_PART: Final = 4
"""The part of the memory that is the default, as for any JVM that is given no size."""
_LEAST: Final = 1 << 30
"""The heap at least: Spark's own default."""
_MOST: Final = 31 << 30
"""And at most: from 32 GB on, the JVM's references take twice the room."""
_COPIES: Final = 12
"""How often a row must fit into the heap,"""
_OWN: Final = 256 << 20
"""in addition to what Spark itself needs. With 512 MB, a text of 31 MB could not be written into a table of Parquet,
and one of 48 MB not into one of Iceberg.
"""
_DRIVER_MEMORY: Final = "spark.driver.memory"
_EXECUTOR_MEMORY: Final = "spark.executor.memory"
HEAP: Final = "SPARK_DRIVER_MEMORY"
"""The environment variable of the heap, which counts where no property says it (SparkSubmitCommandBuilder)."""
_SIZE: Final = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
_UNITS: Final = {"": 1 << 20, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
"""A size without a unit is in megabytes (Spark's documentation, "spark.driver.memory")."""


def default_heap(memory: int) -> int:
    """Return the bytes of the heap on a machine, given the bytes of its memory."""
    return min(max(memory // _PART, _LEAST), _MOST)


def machine_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory that this process may use, None where the system does not say it.

    It is that of the machine, or the least limit of the control groups that the process is in.

    Args:
        root: Where ``/proc`` and ``/sys`` are.
    """
    try:
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, OSError, ValueError):  # Windows
        return None
    for path in _limit_files(root):
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text.isdecimal():  # "max" is no limit
            found.append(int(text))
    return min(found)


def _limit_files(root: Path) -> Iterator[Path]:
    """Yield the files that may have the limits of the process's control groups, of both versions, and those above.

    In a container the groups are named as outside of it, and the top of what is mounted may be its own.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # another system than Linux
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder, file = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        group = PurePosixPath(name)
        for each in (group, *group.parents):
            yield root / "sys/fs/cgroup" / folder / str(each).lstrip("/") / file


def heap_of(spark: SparkSession) -> "Heap | None":
    """Return the heap in which tasks of a session run; None where that is not known."""
    if is_remote():
        return None
    master = spark.conf.get("spark.master") or ""
    if not master.startswith("local") or master.startswith("local-cluster"):
        return _heap_of_size(spark.conf.get(_EXECUTOR_MEMORY, "1g"), _EXECUTOR_MEMORY)
    if is_closed(spark):  # as it will be
        return _heap_of_size(spark.conf.get(_DRIVER_MEMORY, None) or os.environ.get(HEAP, "1g"), _DRIVER_MEMORY)
    context: Any = spark.sparkContext
    return Heap(int(context._jvm.java.lang.Runtime.getRuntime().maxMemory()), _DRIVER_MEMORY)


def _heap_of_size(size: str | None, setting: str) -> "Heap | None":
    found = _SIZE.fullmatch((size or "").strip())
    return None if found is None else Heap(int(found[1]) * _UNITS[found[2].lower()], setting)


class Heap(NamedTuple):
    """The heap in which tasks run."""

    bytes: int
    """Its size."""
    setting: str
    """The property of Spark that sets it."""

    def __str__(self) -> str:
        return shown_bytes(self.bytes)

    @property
    def largest_row(self) -> int:
        """The most bytes of a row."""
        return max(self.bytes - _OWN, 0) // _COPIES

    def gigabytes_for(self, size: int) -> int:
        """Return the least heap, in whole gigabytes, for a row of some bytes."""
        return -(-(size * _COPIES + _OWN) >> 30)


def shown_bytes(size: int) -> str:
    """Return a number of bytes for people."""
    if size >= 1 << 30:
        return f"{size / (1 << 30):.1f} GB"
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} kB"
