"""One message: bytes to a message object, and back. Needs construct alone.

Bytes come in with the options of START_REPLICATION and the stream state; a frozen dataclass leaves, or DecodeError with
the path and offset of the offending field. ``build`` is the inverse. The room knows no streams, servers or Arrow.

Two engines read the same layouts, both generated from ``spec/``:

| generated (first line "# Generated from ...") | written by hand |
|---|---|
| ``messages``, ``frames``, ``connection_messages``: the classes | ``types``: Lsn, Timestamp, Float, base classes |
| ``codec``, ``frame_codec``, ``connection_codec``: the fast engine | ``codec_runtime``: what these import |
| ``definitions``, ``frame_definitions``, ``connection_definitions`` | their parts: ``primitives``, ``structures`` |
| ``protocol``: options, states, transitions; ``fields`` and others: descriptions | ``options``, ``spec_metadata`` |

``tests/wire/test_engines.py`` and the fuzzers prove that the two engines accept and reject the same input.

**The fast engine decides, the reference explains.** ``engine`` runs the codec first. A codec carries no error texts:
for anything unexpected it raises one of ``codec_runtime.REJECTIONS``. Only then do the construct definitions read the
same bytes, and raise the error. If they accept what the codec rejected, that is a defect of this package: EngineError.

Start reading in ``engine``. ``reference`` turns construct's errors into ours, ``trace`` reports which bytes are which
field, ``jsonable`` converts messages to JSON, ``connection_engine`` handles the messages that carry their own length
(startup, authentication, queries), ``parse_prefix`` reads files without lengths. The room is not public: the package
re-exports the names below, ``definitions`` and ``frame_definitions``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pgoutput_construct.wire import frames, messages
from pgoutput_construct.wire.engine import build, build_frame, parse, parse_frame
from pgoutput_construct.wire.engine import parse_prefix as parse_prefix  # for files: not re-exported by the package
from pgoutput_construct.wire.frames import *  # noqa: F403 - the specification defines the classes
from pgoutput_construct.wire.messages import *  # noqa: F403
from pgoutput_construct.wire.protocol import PROTOCOL_VERSIONS, Streaming
from pgoutput_construct.wire.types import Float, Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.wire import definitions as definitions
    from pgoutput_construct.wire import frame_definitions as frame_definitions

__all__ = [
    "PROTOCOL_VERSIONS",
    "Float",
    "Lsn",
    "Streaming",
    "Timestamp",
    "build",
    "build_frame",
    "parse",
    "parse_frame",
]
__all__ += frames.__all__
__all__ += messages.__all__


def __getattr__(name: str) -> Any:
    """Import the construct definitions when they are used first."""
    if name in ("definitions", "frame_definitions"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
