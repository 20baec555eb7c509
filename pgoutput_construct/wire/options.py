"""What decides the layout from outside the bytes: protocol version, streaming option, stream state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire.messages import PROTOCOL_VERSIONS

__all__ = ["KNOWN", "Options", "Streaming", "options"]

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


def options(proto_version: int = 1, streaming: str = "off", in_stream: bool = False) -> Options:
    """Return checked options; raise PgoutputError for values that PostgreSQL does not know."""
    if type(proto_version) is not int or proto_version not in PROTOCOL_VERSIONS:
        raise PgoutputError(f"proto_version must be one of {list(PROTOCOL_VERSIONS)}, not {proto_version!r}")
    if streaming not in get_args(Streaming):
        raise PgoutputError(f"streaming must be 'off', 'on' or 'parallel', not {streaming!r}")
    return Options(proto_version, bool(in_stream), streaming == "parallel")


KNOWN: Final[Mapping[tuple[int, str, bool], tuple[int, bool, bool]]] = {
    (version, streaming, in_stream): (version, in_stream, streaming == "parallel")
    for version in PROTOCOL_VERSIONS
    for streaming in get_args(Streaming)
    for in_stream in (False, True)
}
"""The parameters for all options that can be given, for those who cannot wait for ``options``."""
