"""The messages of a recording, one by one, with the options and states to parse them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pgoutput_construct as pgo
from tests.live.recording import Recording

__all__ = ["KINDS", "Item", "items", "traits"]

KINDS = frozenset("BMCORYIUDTSEcAbPKrp")
"""The first byte of every message there is."""


@dataclass(frozen=True, slots=True)
class Item:
    """One message of a recording, and the stream it stands in."""

    payload: bytes
    message: Any
    stream_xid: int | None

    @property
    def kind(self) -> str:
        """The first byte."""
        return chr(self.payload[0])

    @property
    def in_stream(self) -> bool:
        """Return whether it stands between Stream Start and Stream Stop."""
        return self.stream_xid is not None

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of its new and old row."""
        return (getattr(self.message, "new", None) or ()) + (getattr(self.message, "old", None) or ())


def items(recording: Recording) -> Iterator[Item]:
    """Parse a recording from its beginning."""
    session = pgo.Session(proto_version=recording.mode.proto_version, streaming=recording.mode.streaming)
    stream_xid: int | None = None
    for payload in recording.payloads:
        message = session.parse(payload)
        if isinstance(message, pgo.StreamStop):
            stream_xid = None
        yield Item(payload, message, stream_xid)
        if isinstance(message, pgo.StreamStart):
            stream_xid = message.xid


def traits(recording: Recording) -> frozenset[str]:
    """Return what a recording's options and server make possible."""
    mode = recording.mode
    return frozenset(
        name
        for name, given in {
            "binary": mode.binary,
            "text": not mode.binary,
            "one-phase": not mode.two_phase,
            "two-phase": mode.two_phase,
            "streaming": mode.streaming != "off",
            "parallel": mode.streaming == "parallel",
            "not parallel": mode.streaming == "on",
            "whole": not mode.immediate,
            f"server {recording.server_version}": True,
        }.items()
        if given
    )
