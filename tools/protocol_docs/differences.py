"""One difference between a document and the specification: what it is, where, and in one line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tools.language import Deviation

__all__ = ["Difference", "is_known", "unused"]


@dataclass(frozen=True)
class Difference:
    """A difference; ``kind``, ``message``, ``at`` and ``says`` are what a deviation names."""

    kind: str
    message: str
    at: str
    says: str
    wants: str
    line: int = 0

    def text(self, file: str) -> str:
        """Return the line that a maintainer acts on."""
        place = f"spec/{file}:{self.line}: " if self.line else f"spec/{file}: "
        where = ", ".join(filter(None, [self.message, self.at]))
        return f"{place}{where}{': ' if where else ''}{self.kind}: {self.wants}"


def is_known(difference: Difference, deviation: Deviation) -> bool:
    """Return whether a deviation is about this difference."""
    same = (difference.kind, difference.message, difference.at) == (deviation.kind, deviation.message, deviation.at)
    return same and deviation.says in (None, difference.says)


def unused(deviations: Iterable[Deviation], found: Sequence[Difference]) -> list[Deviation]:
    """Return the deviations that no difference bears out, those excepted that only some documents show."""
    return [d for d in deviations if not d.sometimes and not any(is_known(each, d) for each in found)]
