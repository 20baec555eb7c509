"""The formats of tables as parameters of tests.

A batch into Delta Lake or Iceberg takes ten times as long as one into Parquet. What tests show of every format, in few
batches, they show each time; what takes many batches is shown in Parquet each time, and in the others by
``tools/test -m long``.
"""

from typing import Any, Final

import pytest

__all__ = ["ALL_FORMATS", "SHORT_IN_PARQUET"]

ALL_FORMATS: Final = ("parquet", "delta", "iceberg")
SHORT_IN_PARQUET: Final[tuple[Any, ...]] = (
    "parquet",
    *(pytest.param(name, marks=pytest.mark.long) for name in ALL_FORMATS[1:]),
)
