"""Zip files that modules come from, in Python's workers: before Python 3.12 they would be read again for every task."""

import sys
from zipimport import zipimporter

__all__ = ["keep_archives"]


def keep_archives() -> None:
    """Let importers keep what they know of zip files, such as those with PySpark itself: they do not change.

    Before each task a worker of PySpark tells all importers that files may have changed. Those of zip files then read
    the lists of these again, one for each package in them, and one for Spark's own jar: together 0.1 s.
    """
    for importer in tuple(sys.path_importer_cache.values()):
        if isinstance(importer, zipimporter):
            vars(importer)["invalidate_caches"] = _nothing


def _nothing() -> None:
    """Forget nothing."""
