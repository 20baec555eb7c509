"""Spark workers run the Python of the tests."""

import os
import sys

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
