"""The archive of Spark's classes, with which its JVMs start."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.class_archive import archive


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="what a process maps is in /proc")
def test_it_is_mapped(spark: Any) -> None:
    """Java ignores one that does not fit, and starts more slowly: nothing else would show it."""
    made = archive()
    if made is None or str(made) not in os.environ["SPARK_SUBMIT_OPTS"]:
        pytest.skip("the archive was not made: run python -m tools.class_archive")
    jvm = spark.sparkContext._jvm.ProcessHandle.current().pid()
    assert f" {made}\n" in Path(f"/proc/{jvm}/maps").read_text("utf-8")
