"""Names that fields had before: they work still, with a warning that says the new one."""

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

__all__ = ["former", "of_today", "renamed"]

T = TypeVar("T", bound=type)

_RENAMED: Final[dict[type, Mapping[str, str]]] = {}
"""The former names of the fields of classes, each with the name of today."""


def former(message: object, old: str, new: str) -> Any:
    """Return the value of a field that is read by a former name."""
    _warn(type(message), old, new)
    return getattr(message, new)


def renamed(**names: str) -> Callable[[T], T]:
    """Let a class take former names of its fields as keywords; ``names`` maps each to the name of today."""

    def decorate(cls: T) -> T:
        made: Any = cls.__init__  # type: ignore[misc]

        @wraps(made)
        def init(self: Any, /, *given: Any, **named: Any) -> None:
            for old in names.keys() & named.keys():
                new = names[old]
                if new in named:
                    raise TypeError(f"{cls.__name__}: {old!r} is the former name of {new!r}: give one of them")
                _warn(cls, old, new, 3)
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
        _warn(cls, old, names[old])
    return {names.get(key, key): item for key, item in value.items()}


def _warn(cls: type, old: str, new: str, level: int = 4) -> None:
    message = f"{cls.__name__}.{old} is called {new!r} now"
    warnings.warn(message, DeprecationWarning, stacklevel=level)
