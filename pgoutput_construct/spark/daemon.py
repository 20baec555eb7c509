"""PySpark's daemon, whose workers have from their start on what tasks need: each would take a second to import it."""

import sys
from typing import Final

from pyspark.daemon import manager

__all__ = ["main"]

_WORKER: Final = "pyspark.worker"
"""What runs tasks; others are the workers that plan reads."""


def main() -> None:
    """Import what tasks need, and fork workers as PySpark's own daemon does."""
    if _WORKER in sys.argv[1:]:
        _prepare()
    manager()


def _prepare() -> None:
    from pgoutput_construct.columnar import index_batch

    index_batch([b""])  # numba's own modules are imported when the first kernel is called


if __name__ == "__main__":
    main()
