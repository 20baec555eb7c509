"""For those who test consumers of pgoutput: Hypothesis strategies of every message under every option."""

from pgoutput_construct.testing.payloads import (
    ParseOptions,
    damaged,
    frames,
    messages,
    options,
    options_and_messages,
    payloads,
)

__all__ = ["ParseOptions", "damaged", "frames", "messages", "options", "options_and_messages", "payloads"]
