"""How often a query that waits for changes looks for them: Spark itself asks a hundred times a second."""

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Pace"]

Answer = TypeVar("Answer")


class Pace:
    """Waits before a question whose last answer had nothing new, longer where answers take longer.

    It never gives an old answer: who has just written into a log, and then asks, finds it.
    """

    def __init__(self, least: float) -> None:
        """``least`` seconds are between two questions."""
        self._least = least
        self._due = 0.0

    def ask(self, question: Callable[[], Answer], is_new: Callable[[Answer], bool]) -> Answer:
        """Ask, when it is time."""
        time.sleep(max(0.0, self._due - time.monotonic()))
        began = time.monotonic()
        answer = question()
        ended = time.monotonic()
        self._due = ended if is_new(answer) else ended + max(self._least, ended - began)
        return answer
