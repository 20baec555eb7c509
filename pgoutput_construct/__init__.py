"""PostgreSQL's logical replication protocol (pgoutput): parsed and built from one declarative specification."""

from typing import Final

from pgoutput_construct import errors
from pgoutput_construct.errors import *  # noqa: F403
from pgoutput_construct.stream import Session
from pgoutput_construct.wire import (
    PROTOCOL_VERSIONS,
    Lsn,
    Streaming,
    Timestamp,
    build,
    build_frame,
    definitions,
    frame_definitions,
    frames,
    messages,
    parse,
    parse_frame,
)
from pgoutput_construct.wire.frames import *  # noqa: F403 - the specification says which classes there are
from pgoutput_construct.wire.messages import *  # noqa: F403

__version__: Final = "0.2.0"
"""The version of this package."""

__all__ = [
    "PROTOCOL_VERSIONS",
    "Lsn",
    "Session",
    "Streaming",
    "Timestamp",
    "__version__",
    "build",
    "build_frame",
    "parse",
    "parse_frame",
]
__all__ += ["definitions", "frame_definitions"]
__all__ += errors.__all__
__all__ += frames.__all__
__all__ += messages.__all__
