"""For tests of consumers of pgoutput: strategies of messages, of streams and what they mean, and a publisher."""

from pgoutput_construct.extras import needing

with needing("testing"):
    from pgoutput_construct.testing.payloads import (
        ParseOptions,
        damaged,
        frames,
        messages,
        options,
        options_and_messages,
        payloads,
    )
    from pgoutput_construct.testing.publisher import TestPublisher, publisher
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
