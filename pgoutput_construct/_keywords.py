"""Functions whose arguments are the fields of a dataclass: each is named, typed and described once.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Options:
...     width: int
...     depth: int = 1
>>> @takes_fields(Options)
... def area(unit: str, options: Options) -> str:
...     return f"{options.width * options.depth} {unit}"
>>> area("m", 3, depth=2)
'6 m'
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

__all__ = ["takes_fields"]

_Fields = ParamSpec("_Fields")
_First = TypeVar("_First")
_Options = TypeVar("_Options")
_Result = TypeVar("_Result")


def takes_fields(
    options: Callable[_Fields, _Options],
) -> Callable[[Callable[[_First, _Options], _Result]], Callable[Concatenate[_First, _Fields], _Result]]:
    """Return a decorator: the second argument of a function is made of those that its callers give.

    Args:
        options: The dataclass of the second argument.
    """

    def decorate(
        function: Callable[[_First, _Options], _Result],
    ) -> Callable[Concatenate[_First, _Fields], _Result]:
        own = inspect.signature(function)
        first, fields = next(iter(own.parameters.values())), inspect.signature(options).parameters.values()

        @wraps(function)
        def taking(given: _First, /, *arguments: _Fields.args, **keywords: _Fields.kwargs) -> _Result:
            return function(given, options(*arguments, **keywords))

        taking.__signature__ = own.replace(parameters=[first, *fields])  # type: ignore[attr-defined]
        return taking

    return decorate
