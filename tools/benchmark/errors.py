"""What goes wrong in a benchmark."""

__all__ = ["BenchmarkError", "Unavailable"]


class BenchmarkError(Exception):
    """The benchmark cannot go on, or its numbers would mean nothing; the text says why."""


class Unavailable(Exception):  # noqa: N818 - no error: the line says so, and the others are measured
    """An engine cannot take part; the text says why."""
