"""Zeller's delta debugging: the parts of an input that matter."""

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["minimized"]

_Item = TypeVar("_Item")


def minimized(
    items: Sequence[_Item], fails: Callable[[list[_Item]], bool], is_over: Callable[[], bool] = lambda: False
) -> list[_Item]:
    """Return some of the items, in their order, that still fail, and no longer do so without any one of them.

    Parts are left out, each time smaller ones. All items together must fail.

    Args:
        items: What is to be shrunk.
        fails: Whether some of the items fail.
        is_over: Asked before each trial; what is left when it says True is returned, and may have more than it takes.
    """
    left, parts = list(items), 2
    while left:
        size = -(-len(left) // parts)
        for first in range(0, len(left), size):
            if is_over():
                return left
            fewer = left[:first] + left[first + size :]
            if fails(fewer):
                left, parts = fewer, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(2 * parts, len(left))
    return left
