"""The formats of tables as parameters of tests.

A batch into Delta Lake or Iceberg takes ten times as long as one into Parquet. What takes few batches is shown of every
format each time, or, where one format with a log of commits is enough, of Parquet and Iceberg; what takes many batches
is shown in Parquet each time. ``tools/test -m long`` shows the rest.
"""

from typing import Any, Final

import pytest

__all__ = ["ALL_FORMATS", "SHORT_IN_PARQUET", "SHORT_WITHOUT_DELTA"]

ALL_FORMATS: Final = ("parquet", "delta", "iceberg")
SHORT_IN_PARQUET: Final[tuple[Any, ...]] = (
    "parquet",
    *(pytest.param(name, marks=pytest.mark.long) for name in ALL_FORMATS[1:]),
)
SHORT_WITHOUT_DELTA: Final[tuple[Any, ...]] = ("parquet", pytest.param("delta", marks=pytest.mark.long), "iceberg")
