"""For tests of consumers of pgoutput: Hypothesis strategies of messages and whole streams under every option."""

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
    from pgoutput_construct.testing.streams import Sent, streams

__all__ = [
    "ParseOptions",
    "Sent",
    "damaged",
    "frames",
    "messages",
    "options",
    "options_and_messages",
    "payloads",
    "streams",
]
