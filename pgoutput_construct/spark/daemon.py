"""PySpark's daemon, with the modules that tasks need imported before it forks workers: each would take a second."""

import sys
from typing import Final

from pyspark.daemon import manager

__all__ = ["main"]

_WORKER: Final = "pyspark.worker"
"""The module of workers that run tasks; others plan reads."""


def main() -> None:
    """Import what tasks need, and fork workers as PySpark's own daemon does."""
    if _WORKER in sys.argv[1:]:
        _prepare()
    manager()


def _prepare() -> None:
    # Spark's own jar is among them: each task would read what is in it, and it has no modules.
    sys.path[:] = [path for path in sys.path if not path.endswith(".jar")]
    sys.path_importer_cache.clear()
    from pgoutput_construct.columnar import index_batch
    from pgoutput_construct.spark import _parquet_datasets  # noqa: F401 - imports all that reading needs

    index_batch([b""])  # numba's own modules are imported when the first kernel is called


if __name__ == "__main__":
    main()
