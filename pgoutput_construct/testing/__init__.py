"""For tests of consumers of pgoutput: strategies of messages and whole streams, and a publisher for their clients."""

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
    from pgoutput_construct.testing.streams import Sent, streams

__all__ = [
    "ParseOptions",
    "Sent",
    "TestPublisher",
    "damaged",
    "frames",
    "messages",
    "options",
    "options_and_messages",
    "payloads",
    "publisher",
    "streams",
]
