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
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

__all__ = ["takes_fields"]

_Fields = ParamSpec("_Fields")
_First = TypeVar("_First")
_Options = TypeVar("_Options")
_Result = TypeVar("_Result")


def takes_fields(
    options: Callable[_Fields, _Options],
) -> Callable[[Callable[[_First, _Options], _Result]], Callable[Concatenate[_First, _Fields], _Result]]:
    """Return a decorator: the second argument of a function is made of those that its callers give.

    A TypeError names the function. Its signature, annotations and defaults are those of the fields. Type checkers take
    its first argument for positional alone: a ParamSpec cannot say more.

    Args:
        options: The dataclass of the second argument.
    """

    def decorate(
        function: Callable[[_First, _Options], _Result],
    ) -> Callable[Concatenate[_First, _Fields], _Result]:
        own = inspect.signature(function)
        first = next(iter(own.parameters.values()))
        signature = own.replace(parameters=[first, *_parameters(options)])

        @wraps(function)
        def taking(*arguments: Any, **keywords: Any) -> _Result:
            try:
                given = signature.bind(*arguments, **keywords).arguments
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(given.pop(first.name), options(**given))  # type: ignore[call-arg]

        hints = {name: parameter.annotation for name, parameter in signature.parameters.items()}
        taking.__annotations__ = hints | {"return": own.return_annotation}
        taking.__signature__ = signature  # type: ignore[attr-defined]
        return taking

    return decorate


def _parameters(options: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters of a dataclass, with the default that a factory makes instead of the factory."""
    made = {each.name: each.default_factory() for each in fields(options) if each.default_factory is not MISSING}  # type: ignore[arg-type]
    return [
        parameter.replace(default=made.get(name, parameter.default))
        for name, parameter in inspect.signature(options).parameters.items()
    ]
