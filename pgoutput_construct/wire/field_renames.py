"""Names that fields had before: they work still, with a warning that says the new one.

The package itself may use former names without one: it has to run when the specification alone has changed.
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
"""The former names of the fields of classes, each with the name of today."""


def former(message: object, old: str, new: str) -> None:
    """Say that a field is read by a former name."""
    _warn_user(type(message), old, new)


def renamed(**names: str) -> Callable[[T], T]:
    """Let a class take former names of its fields as keywords; ``names`` maps each to the name of today.

    ``dataclasses.replace`` passes what is not replaced by the names of today: there a former name replaces.
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
    """Return an object of JSON with the names that fields have today."""
    names = _RENAMED.get(cls)
    if not names or not names.keys() & value.keys():
        return value
    for old in names.keys() & value.keys():
        warnings.warn(_message(cls, old, names[old]), DeprecationWarning, stacklevel=3)
    return {names.get(key, key): item for key, item in value.items()}


def _message(cls: type, old: str, new: str) -> str:
    return f"{cls.__name__}.{old} is called {new!r} now"


def _warn_user(cls: type, old: str, new: str) -> None:
    """Warn where the name is written, unless that is in the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__") in (__name__, cls.__module__, "dataclasses"):
        frame, level = frame.f_back, level + 1
    if str(frame.f_globals.get("__name__")).partition(".")[0] != _PACKAGE:
        warnings.warn(_message(cls, old, new), DeprecationWarning, stacklevel=level)
