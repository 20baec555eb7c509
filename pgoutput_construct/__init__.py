"""PostgreSQL's logical replication protocol (pgoutput): parsed and built from one declarative specification."""

from typing import Final

from pgoutput_construct import errors, wire
from pgoutput_construct.errors import *  # noqa: F403
from pgoutput_construct.stream import Session
from pgoutput_construct.wire import *  # noqa: F403
from pgoutput_construct.wire import definitions, frame_definitions
from pgoutput_construct.wire.frames import *  # noqa: F403 - of these, too: type checkers look no further
from pgoutput_construct.wire.messages import *  # noqa: F403

__version__: Final = "0.2.0"
"""The version of this package."""

__all__ = ["Session", "__version__", "definitions", "frame_definitions"]
__all__ += errors.__all__
__all__ += wire.__all__
