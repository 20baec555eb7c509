"""The word that somebody may have meant, for the errors about names that do not exist."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

__all__ = ["meant", "nearest"]

_LEAST: Final = 0.65
_SYNONYMS: Final[Mapping[str, str]] = {"start": "begin", "open": "begin", "rollback": "abort", "end": "commit"}


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is meant by another one, None if no one is near."""
    words = list(known)
    if _SYNONYMS.get(word) in words:
        return _SYNONYMS[word]
    return next(iter(get_close_matches(word, words, 1, _LEAST)), None)


def meant(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown word: ``: did you mean 'TupleData'?``, or nothing."""
    near = nearest(word, known)
    return f": did you mean {near!r}?" if near else ""
