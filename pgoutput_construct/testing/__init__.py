"""For tests of consumers of pgoutput: Hypothesis strategies of messages, streams and scenarios, and a publisher.

Nothing comes in but options; out go messages and payloads (``messages``, ``payloads``, ``frames``), whole streams that
a server could send (``streams``), streams with the tables that must result (``scenarios``), and a walsender that serves
what a test commits (``publisher``). Everything follows from the specification's definitions, so a new message appears
in the strategies without a change here.

- ``payloads``, ``strategies``: strategies of single messages; start reading in ``strategies``
- ``streams``, ``random_tables``: strategies of streams
- ``scenarios``, ``scenario_*``: strategies of scenarios: a model of the tables runs alongside the stream
- ``fake_tables``, ``value_texts``, ``scripted_publisher``: the publisher, and the tables that a test defines
- ``fixtures``: the publisher as a pytest fixture
- ``scenario_feed``: scenarios of a seed as a publisher's feed, for subscribers in any language

Invariants: what a strategy draws, every engine accepts, and a server could send; a scenario's tables follow from its
messages alone; the same seed draws the same. Strategies need the extra ``testing``, the publisher needs ``publisher``;
each is checked on first use. Public: the names below and ``fixtures``.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.extras import needing, require

if TYPE_CHECKING:
    from pgoutput_construct.testing.fake_tables import Change, FakeTable
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
    "Change",
    "FakeTable",
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

_MODULES: Final = {
    "Change": "fake_tables",
    "FakeTable": "fake_tables",
    "TestPublisher": "scripted_publisher",
    "publisher": "scripted_publisher",
}
"""The modules of the publisher's names."""


def __getattr__(name: str) -> Any:
    """Import the publisher on first use; raise MissingExtraError if the extra of a name is not installed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _MODULES:
        require("testing")
    with needing("publisher"):
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return what is public, also what was not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
