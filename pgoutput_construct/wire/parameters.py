"""The parameters of definitions: those left out are off, at the first version; those that do not exist are refused."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import IO, Any, Final

from construct import Struct
from construct.expr import ExprMixin

from pgoutput_construct.errors import PgoutputError

__all__ = ["MessageDefinition", "Parameter", "ParameterDefaults"]

_OWN: Final = frozenset({"classes_only", "open_end", "recorder"})
"""What this package itself says to its definitions."""


class Parameter(ExprMixin):
    """The value of a parameter in a condition, wherever the definition stands: in one of another library, too."""

    def __init__(self, name: str, default: int) -> None:
        self.name = name
        self.default = default

    def __call__(self, context: Any) -> int:
        """Return the value in a context of construct."""
        value: int = context["_params"].get(self.name, self.default)
        return value

    def __repr__(self) -> str:
        return self.name


class MessageDefinition(Struct):
    """The definition of one message; its keywords are the parameters."""

    def __init__(self, defaults: Mapping[str, int], *subcons: Any) -> None:
        super().__init__(*subcons)
        self.defaults = defaults

    def parse_stream(self, stream: IO[bytes], **parameters: Any) -> Any:
        """Return what a stream has; raise PgoutputError for a parameter that there is not."""
        return super().parse_stream(stream, **self._checked(parameters))

    def build_stream(self, obj: Any, stream: IO[bytes], **parameters: Any) -> Any:
        """Write an object; raise PgoutputError for a parameter that there is not."""
        return super().build_stream(obj, stream, **self._checked(parameters))

    def sizeof(self, **parameters: Any) -> int:
        """Return its size where that is always the same; raise PgoutputError for a parameter that there is not."""
        size: int = super().sizeof(**self._checked(parameters))
        return size

    def _checked(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in parameters:
            if name not in self.defaults and name not in _OWN:
                near = "".join(f" (did you mean {each!r}?)" for each in get_close_matches(name, self.defaults, 1))
                known = ", ".join(self.defaults) or "none"
                raise PgoutputError(f"there is no parameter {name!r}{near}: the parameters are {known}")
        return {**self.defaults, **parameters}


class ParameterDefaults:
    """The parameters of one specification, each with what holds where it is left out."""

    def __init__(self, **defaults: int) -> None:
        self._defaults = defaults

    def __getattr__(self, name: str) -> Any:
        """Return a parameter; raise AttributeError for one that there is not."""
        if name.startswith("_") or name not in self._defaults:
            raise AttributeError(name)
        return Parameter(name, self._defaults[name])

    def definition(self, *subcons: Any) -> MessageDefinition:
        """Return the definition of a message."""
        return MessageDefinition(self._defaults, *subcons)
