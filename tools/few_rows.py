"""Spark's settings for plans that see a few rows each."""

from collections.abc import Mapping
from typing import Final

__all__ = ["FEW_ROWS"]

FEW_ROWS: Final[Mapping[str, str]] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Most of the time of such a plan goes into compiling what runs once, and into planning again what has one task."""
