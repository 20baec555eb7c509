"""For tests of consumers of pgoutput: strategies of messages, of streams and what they mean, and a publisher.

Strategies need the extra ``testing`` alone, the publisher ``publisher`` alone: each asks for its own when it is used.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pgoutput_construct.extras import needing, require

if TYPE_CHECKING:
    from pgoutput_construct.testing.scripted_publisher import TestPublisher, publisher

if TYPE_CHECKING or find_spec("hypothesis"):
    from pgoutput_construct.testing.payloads import (
        ParseOptions,
        damaged,
        frames,
        messages,
        options,
        options_and_messages,
        payloads,
    )
    from pgoutput_construct.testing.scenarios import Scenario, scenarios
    from pgoutput_construct.testing.streams import Sent, streams

__all__ = [
    "ParseOptions",
    "Scenario",
    "Sent",
    "TestPublisher",
    "damaged",
    "frames",
    "messages",
    "options",
    "options_and_messages",
    "payloads",
    "publisher",
    "scenarios",
    "streams",
]


def __getattr__(name: str) -> Any:
    """Return what serves streams; raise MissingExtraError where the extra of a name is not installed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in ("TestPublisher", "publisher"):
        require("testing")
    with needing("publisher"):
        from pgoutput_construct.testing import scripted_publisher
    return getattr(scripted_publisher, name)
