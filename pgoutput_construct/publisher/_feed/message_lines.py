"""JSON lines of messages, as ``pgoutput decode`` prints them, as what a feed serves."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.stream.bounds import said
from pgoutput_construct.wire.json_lines import parse_line
from pgoutput_construct.wire.messages import Message, PgoutputMessage
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.protocol import BOUNDS
from pgoutput_construct.wire.types import Lsn

__all__ = ["MessageLines", "read_message_lines"]


class MessageLines(NamedTuple):
    """The messages of a file."""

    messages: list[tuple[Lsn, PgoutputMessage]]
    """The messages in their order, each with its LSN."""
    layout: dict[str, Any]
    """The options of START_REPLICATION under which they were sent, as far as the lines have them."""


def read_message_lines(lines: Iterable[bytes], name: str) -> MessageLines:
    """Read lines; raise PgoutputError, with the line, for one that is not a message.

    Args:
        lines: The lines; empty ones are skipped.
        name: Where they come from, for errors.
    """
    found = MessageLines([], {})
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = parse_line(text)
            found.messages.append((_lsn(text, line.message), line.message))
        except PgoutputError as error:
            raise PgoutputError(f"{name}: line {number}: {error}") from error
        found.layout.update({option: line.options[option] for option in LAYOUT_OPTIONS if option in line.options})
    return found


def _lsn(text: bytes, message: PgoutputMessage) -> Lsn:
    """Return the LSN of a message: that of its line, else one that it has itself."""
    given = json.loads(text).get("wal_start")
    if isinstance(given, str):
        return Lsn(given)
    known = message.lsn if isinstance(message, Message) else None
    if type(message) in BOUNDS:
        known = next((lsn for role in ("end_lsn", "lsn") if (lsn := said(message, role)) is not None), None)
    return Lsn(0) if known is None else known
