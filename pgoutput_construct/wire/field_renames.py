"""Deprecated names of message fields: they still work, with a DeprecationWarning that names the current one.

No warning is raised for the package's own code: it must keep running when only the specification has changed.
"""

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

__all__ = ["former", "of_today", "renamed"]

T = TypeVar("T", bound=type)

_PACKAGE: Final = __name__.partition(".")[0]

_RENAMED: Final[dict[type, Mapping[str, str]]] = {}
"""For each class, its fields' former names and what they are called now."""


def former(message: object, old: str, new: str) -> None:
    """Warn that a field is read by its former name."""
    _warn_user(type(message), old, new)


def renamed(**names: str) -> Callable[[T], T]:
    """Let a class accept former field names as keywords; ``names`` maps each to the current name.

    ``dataclasses.replace`` passes every field under its current name, so there a former name wins over it.
    """

    def decorate(cls: T) -> T:
        made: Any = cls.__init__  # type: ignore[misc]

        @wraps(made)
        def init(self: Any, /, *given: Any, **named: Any) -> None:
            for old in names.keys() & named.keys():
                new = names[old]
                if new in named and sys._getframe(1).f_globals.get("__name__") != "dataclasses":
                    raise TypeError(f"{cls.__name__}: {old!r} is the former name of {new!r}: give one of them")
                _warn_user(cls, old, new)
                named[new] = named.pop(old)
            made(self, *given, **named)

        cls.__init__ = init  # type: ignore[misc]
        _RENAMED[cls] = names
        return cls

    return decorate


def of_today(cls: type, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a JSON object with former field names replaced by the current ones."""
    names = _RENAMED.get(cls)
    if not names or not names.keys() & value.keys():
        return value
    for old in names.keys() & value.keys():
        warnings.warn(_message(cls, old, names[old]), DeprecationWarning, stacklevel=3)
    return {names.get(key, key): item for key, item in value.items()}


def _message(cls: type, old: str, new: str) -> str:
    return f"{cls.__name__}.{old} is called {new!r} now"


def _warn_user(cls: type, old: str, new: str) -> None:
    """Warn at the caller's line, unless the caller is part of the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__") in (__name__, cls.__module__, "dataclasses"):
        frame, level = frame.f_back, level + 1
    if str(frame.f_globals.get("__name__")).partition(".")[0] != _PACKAGE:
        warnings.warn(_message(cls, old, new), DeprecationWarning, stacklevel=level)
