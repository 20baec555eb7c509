"""The versions of PySpark beside the one that the other tests run with: a program in an environment of each."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.spark.logs import orders_after, write_orders
from tools.environments import VERSIONS, missing_environment, python_with

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.long
def test_a_program(tmp_path: Path, version: str) -> None:
    """It reads batches, streams and messages, and replicates: each has all changes, or all rows."""
    if problem := missing_environment(version):
        pytest.skip(problem)
    write_orders(log := tmp_path / "log", range(4))
    python = str(python_with(version))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [python, "-m", "tests.spark.smoke", log, tmp_path]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if "\tat " not in line)[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["version"].startswith(version)
    assert found["stream"][13:] == found["batch"] and len(found["batch"]) == 3 * 15
    assert found["decoded"] == len(found["stream"]) == 13 + 3 * 15
    assert {int(key): total for key, total in found["current"].items()} == orders_after(range(4))
