"""PostgreSQL's logical replication protocol (pgoutput), parsed and built from one declarative specification.

This module is the core: ``parse`` and ``build`` for one message, ``parse_frame`` and ``build_frame`` for the CopyData
envelope, ``Session`` for the messages of one connection in order, the message classes, and the errors. It needs
construct alone. The extras have rooms of their own, each imported by name: ``columnar`` (Arrow), ``changelog``,
``postgres``, ``spark``, ``publisher``, ``testing``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct import errors, wire
from pgoutput_construct.errors import *  # noqa: F403
from pgoutput_construct.wire import *  # noqa: F403
from pgoutput_construct.wire.frames import *  # noqa: F403 - again: type checkers do not follow two star imports
from pgoutput_construct.wire.messages import *  # noqa: F403

if TYPE_CHECKING:
    from pgoutput_construct.stream import Session
    from pgoutput_construct.wire import definitions, frame_definitions

__version__: Final = "0.2.0"
"""The version of this package."""

__all__ = ["Session", "__version__", "definitions", "frame_definitions"]
__all__ += errors.__all__
__all__ += wire.__all__


def __getattr__(name: str) -> Any:
    """Import what takes long to import, and not every program needs, when it is used first."""
    if name == "Session":
        found: Any = import_module("pgoutput_construct.stream").Session
    elif name in ("definitions", "frame_definitions"):
        found = import_module(f"pgoutput_construct.wire.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return what is public, and not what this module imports for itself."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
