"""Lines of JSON, as ``pgoutput decode`` prints them, as what a publisher serves."""

import json
from typing import Any

from pgoutput_construct.cli.lines import parse_line
from pgoutput_construct.cli.source import open_source
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher import About, MessageFeed
from pgoutput_construct.stream.bounds import said as bound_said
from pgoutput_construct.wire.messages import Message, PgoutputMessage
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.protocol import BOUNDS
from pgoutput_construct.wire.types import Lsn

__all__ = ["json_feed"]


def json_feed(file: str, server_version: int) -> MessageFeed:
    """Read lines of JSON; raise PgoutputError, with the line, for one that is no message, or that cannot come there.

    Args:
        file: The file, or ``-`` for standard input.
        server_version: The major version of the PostgreSQL that they stand for.
    """
    messages: list[tuple[Lsn, PgoutputMessage]] = []
    layout: dict[str, Any] = {}
    with open_source(file) as source:
        for number, text in enumerate(source.lines(), 1):
            if not text.strip():
                continue
            try:
                line = parse_line(text)
                messages.append((_position(text, line.message), line.message))
            except PgoutputError as error:
                raise PgoutputError(f"{source.name}: line {number}: {error}") from error
            layout |= {name: line.options[name] for name in LAYOUT_OPTIONS if name in line.options}
    about = About(server_version * 10000, "1", "postgres", 1, (), layout)
    return MessageFeed(about, messages)


def _position(text: bytes, message: PgoutputMessage) -> Lsn:
    said = json.loads(text).get("wal_start")
    if isinstance(said, str):
        return Lsn(said)
    known = message.lsn if isinstance(message, Message) else None
    if type(message) in BOUNDS:
        known = next((lsn for role in ("end_lsn", "lsn") if (lsn := bound_said(message, role)) is not None), None)
    return Lsn(0) if known is None else known
