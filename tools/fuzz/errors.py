"""The finding of a target: it accepted bytes that it should have rejected, or failed in another way."""

from collections.abc import Sequence

__all__ = ["Finding", "same"]


class Finding(AssertionError):  # noqa: N818 - what fuzzing looks for
    """Engines that disagree, or a reader that changes what it reads."""


def same(what: str, values: Sequence[object]) -> None:
    """Raise Finding where values differ."""
    first, *others = values
    for other in others:
        if other != first:
            raise Finding(f"{what}: {first!r:.200} and {other!r:.200}")
