"""One difference between a document and the specification: its kind, its place, and its text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tools.language import Deviation

__all__ = ["Difference", "is_known", "unused"]


@dataclass(frozen=True)
class Difference:
    """A difference; a deviation refers to it by ``kind``, ``message``, ``at`` and ``says``."""

    kind: str
    message: str
    at: str
    says: str
    wants: str
    line: int = 0

    def text(self, file: str) -> str:
        """Return the line for the maintainer."""
        place = f"spec/{file}:{self.line}: " if self.line else f"spec/{file}: "
        where = ", ".join(filter(None, [self.message, self.at]))
        return f"{place}{where}{': ' if where else ''}{self.kind}: {self.wants}"


def is_known(difference: Difference, deviation: Deviation) -> bool:
    """Return whether a deviation covers this difference."""
    same = (difference.kind, difference.message, difference.at) == (deviation.kind, deviation.message, deviation.at)
    return same and deviation.says in (None, difference.says)


def unused(deviations: Iterable[Deviation], found: Sequence[Difference]) -> list[Deviation]:
    """Return the deviations that no difference confirms, except those that only some documents show."""
    return [d for d in deviations if not d.sometimes and not any(is_known(each, d) for each in found)]
