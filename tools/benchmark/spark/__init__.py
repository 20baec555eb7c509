"""Benchmarks in Spark: ``python -m tools.benchmark spark | lake | tables | tasks | freshness``.

``workload`` writes the log that they measure, ``runs`` times jobs, ``main`` compares reading, writing and replaying
with what Spark does without us; ``lake`` measures batches in tables that grow, ``tables`` those of many tables,
``tasks`` the memory of Python workers, ``memory`` that of the driver, ``freshness`` the time from a commit to its row.
Start reading at ``main``.
"""
