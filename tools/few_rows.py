"""Spark's settings for plans that process only a few rows."""

from collections.abc import Mapping
from typing import Final

__all__ = ["FEW_ROWS"]

FEW_ROWS: Final[Mapping[str, str]] = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Most of the time of such a plan goes into compiling what runs once.

Plans are adapted to what they meet, and have several tasks, as users have them: Spark may move rows between tasks then,
and whatever rests on where rows are has to withstand it.
"""
