"""Benchmarks in Spark: ``python -m tools.benchmark spark | tables | tasks | freshness | memory``.

``workload`` writes the log that they measure, ``runs`` times jobs, ``main`` compares reading, writing and replaying
with what Spark does without us; ``tables`` replicates many tables, ``tasks`` measures the memory of Python workers,
``memory`` that of the driver, ``freshness`` the time from a commit to its row. Start reading at ``main``.
"""
