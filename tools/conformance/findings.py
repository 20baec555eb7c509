"""What the failures of clients have in common, in words that could be sent to their maintainers."""

from dataclasses import dataclass
from typing import Final

__all__ = ["FINDINGS", "Finding"]


@dataclass(frozen=True)
class Finding:
    """One defect, limit, or decision of a client."""

    clients: tuple[str, ...]
    title: str
    cases: tuple[str, ...]
    """Patterns of the cases that show it."""
    text: str


FINDINGS: Final[tuple[Finding, ...]] = ()
"""In the order of the page."""
