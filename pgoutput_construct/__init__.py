"""PostgreSQL's logical replication protocol (pgoutput): parsed and built from one declarative specification."""

from pgoutput_construct import errors, wire
from pgoutput_construct.errors import *  # noqa: F403
from pgoutput_construct.stream import Session
from pgoutput_construct.wire import *  # noqa: F403
from pgoutput_construct.wire import definitions, frame_definitions

__all__ = ["Session", "definitions", "frame_definitions"]
__all__ += errors.__all__
__all__ += wire.__all__
