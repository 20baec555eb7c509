"""Words that several commands print."""

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 byte``, ``1,024 bytes``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
