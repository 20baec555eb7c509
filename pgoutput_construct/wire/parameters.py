"""Parameters of the construct definitions, passed as keywords of parse and build.

Parameters that are left out are off, at the first protocol version; unknown ones are refused.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import IO, Any, Final

from construct import Struct
from construct.expr import ExprMixin

from pgoutput_construct.errors import PgoutputError

__all__ = ["MessageDefinition", "Parameter", "ParameterDefaults"]

_OWN: Final = frozenset({"classes_only", "open_end", "recorder"})
"""Keywords that only this package passes to its definitions."""


class Parameter(ExprMixin):
    """A parameter in a condition; also works if the definition is nested in a construct of another library."""

    def __init__(self, name: str, default: int) -> None:
        self.name = name
        self.default = default

    def __call__(self, context: Any) -> int:
        """Return the parameter's value in a construct context."""
        value: int = context["_params"].get(self.name, self.default)
        return value

    def __repr__(self) -> str:
        return self.name


class MessageDefinition(Struct):
    """The definition of one message: a Struct whose keywords are the parameters of its specification."""

    def __init__(self, defaults: Mapping[str, int], *subcons: Any) -> None:
        super().__init__(*subcons)
        self.defaults = defaults

    def parse_stream(self, stream: IO[bytes], **parameters: Any) -> Any:
        """Parse a message from a stream; raise PgoutputError for an unknown parameter."""
        return super().parse_stream(stream, **self._checked(parameters))

    def build_stream(self, obj: Any, stream: IO[bytes], **parameters: Any) -> Any:
        """Write an object to a stream; raise PgoutputError for an unknown parameter."""
        return super().build_stream(obj, stream, **self._checked(parameters))

    def sizeof(self, **parameters: Any) -> int:
        """Return the size in bytes if it is fixed; raise PgoutputError for an unknown parameter."""
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
    """The parameters of one specification, and their default values."""

    def __init__(self, **defaults: int) -> None:
        self._defaults = defaults

    def __getattr__(self, name: str) -> Any:
        """Return a parameter; raise AttributeError if it does not exist."""
        if name.startswith("_") or name not in self._defaults:
            raise AttributeError(name)
        return Parameter(name, self._defaults[name])

    def definition(self, *subcons: Any) -> MessageDefinition:
        """Return the definition of a message that consists of these constructs."""
        return MessageDefinition(self._defaults, *subcons)
