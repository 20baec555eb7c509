"""The errors of the benchmarks."""

__all__ = ["BenchmarkError", "Unavailable"]


class BenchmarkError(Exception):
    """The benchmark cannot continue, or its results would be meaningless; the text says why."""


class Unavailable(Exception):  # noqa: N818 - no error: the line says so, and the others are measured
    """An engine cannot take part; the text says why."""
