"""Bytes of one message in, a message object out, and back."""

from pgoutput_construct.wire import frames, messages
from pgoutput_construct.wire.engine import build, build_frame, parse, parse_frame
from pgoutput_construct.wire.engine import parse_prefix as parse_prefix  # for files: the package does not show it
from pgoutput_construct.wire.frames import *  # noqa: F403 - the specification says which classes there are
from pgoutput_construct.wire.messages import *  # noqa: F403
from pgoutput_construct.wire.protocol import PROTOCOL_VERSIONS, Streaming
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["PROTOCOL_VERSIONS", "Lsn", "Streaming", "Timestamp", "build", "build_frame", "parse", "parse_frame"]
__all__ += frames.__all__
__all__ += messages.__all__
