"""What decides the layout from outside the bytes: protocol version, streaming option, stream state."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire.messages import PROTOCOL_VERSIONS

__all__ = ["Options", "Streaming", "options"]

Streaming: TypeAlias = Literal["off", "on", "parallel"]
"""The option streaming of START_REPLICATION, as in PostgreSQL."""


@dataclass(frozen=True, slots=True)
class Options:
    """The parameters of the definitions, as keywords."""

    proto_version: int
    in_stream: bool
    parallel: bool

    def parameters(self) -> dict[str, int]:
        """Return the keywords that every definition takes."""
        return {"proto_version": self.proto_version, "in_stream": self.in_stream, "parallel": self.parallel}


@lru_cache(maxsize=None, typed=True)
def options(proto_version: int = 1, streaming: str = "off", in_stream: bool = False) -> Options:
    """Return checked options; raise PgoutputError for values that PostgreSQL does not know."""
    if type(proto_version) is not int or proto_version not in PROTOCOL_VERSIONS:
        raise PgoutputError(f"proto_version must be one of {list(PROTOCOL_VERSIONS)}, not {proto_version!r}")
    if streaming not in get_args(Streaming):
        raise PgoutputError(f"streaming must be 'off', 'on' or 'parallel', not {streaming!r}")
    return Options(proto_version, bool(in_stream), streaming == "parallel")
