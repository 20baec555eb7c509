"""Files of pg_recvlogical: payloads, each followed by a newline, without lengths; the grammar says where each ends."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pgoutput_construct.cli.lines import BEFORE, Decoded
from pgoutput_construct.cli.options import as_arguments
from pgoutput_construct.cli.source import ByteSource
from pgoutput_construct.errors import DecodeError, PgoutputError
from pgoutput_construct.stream.state import StreamState
from pgoutput_construct.wire.engine import parse_prefix
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.reference import LARGEST, IncompleteError

__all__ = ["read_recvlogical"]

PATIENCE = 8 << 20
"""Bytes of an unfinished message above which it is tried again only when a quarter more has come."""


def read_recvlogical(
    source: ByteSource, options: Mapping[str, Any], warn: Callable[[str], object]
) -> Iterator[Decoded]:
    """Iterate over the messages of a file; raise PgoutputError with the place in the file.

    ``options`` are those that decide layouts. ``warn`` is called where the file continues with another connection, to
    which pg_recvlogical reconnects by itself.
    """
    front, state = _Front(source, options), StreamState()
    number = 0
    while (empty := front.skip_newlines()) is not None:
        number += 1
        message, payload = front.parse(state, number)
        if state.in_stream and not state.permits(type(message)):
            warn(f"{front.place(number)}: {_name(message)} inside a stream: from here on another connection")
            state = StreamState()
            message, payload = front.parse(state, number)
        if not state.permits(type(message)):
            raise PgoutputError(f"{front.place(number)}: {_name(message)} outside a stream: its start is missing")
        place = {"offset": front.offset} | ({BEFORE: [""] * empty} if empty else {})
        front.pass_over(len(payload), _name(message), number)
        yield Decoded(message, payload, {**options, **state.parameters}, place)
        state.advance(message)


def _name(message: PgoutputMessage) -> str:
    return type(message).__name__


class _Front:
    """The part of a file that is in memory: it starts with the next message, and grows as that needs."""

    def __init__(self, source: ByteSource, options: Mapping[str, Any]) -> None:
        self.source = source
        self.options = options
        self.offset = 0
        """Where in the file the next message starts."""
        self._data = b""
        self._start = 0

    def place(self, number: int) -> str:
        """Name the next message."""
        return f"{self.source.name}: message {number} at offset {self.offset}"

    def skip_newlines(self) -> int | None:
        """Pass over empty payloads, of which only newlines are there; return how many, None at the end of the file."""
        count = 0
        while self._start < len(self._data) or self._more():
            if self._data[self._start] != ord("\n"):
                return count
            self._advance(1)
            count += 1
        return None

    def parse(self, state: StreamState, number: int) -> tuple[PgoutputMessage, bytes]:
        """Return the next message and its bytes; raise PgoutputError."""
        while True:
            try:
                message, size = parse_prefix(self._data, self._start, **{**self.options, **state.parameters})
                return message, self._data[self._start : self._start + size]
            except IncompleteError as error:
                missing = str(error)  # and not the error, whose frames keep what was read so far
            except DecodeError as error:
                raise PgoutputError(f"{self.place(number)}: {error}{self._doubt()}") from error
            there = len(self._data) - self._start
            if there >= LARGEST:
                raise PgoutputError(f"{self.place(number)}: larger than any message: {missing}{self._doubt()}")
            if not self._more(there // 4 if there > PATIENCE else 1):
                raise PgoutputError(f"{self.place(number)}: the file ends inside this message: {missing}")

    def pass_over(self, size: int, name: str, number: int) -> None:
        """Print the message, with the newline that must follow it."""
        end = self._start + size
        if end == len(self._data) and not self._more():
            raise PgoutputError(f"{self.place(number)}: the file ends without the newline after this {name}")
        end = self._start + size
        following = self._data[end : end + 1]
        if following != b"\n":
            reason = f"{name} ends after {size} bytes with {following!r}, not with a newline"
            raise PgoutputError(f"{self.place(number)}: {reason}{self._doubt()}")
        self._advance(size + 1)

    def _advance(self, size: int) -> None:
        self._start += size
        self.offset += size

    def _more(self, least: int = 1) -> bool:
        """Read on, at least so much; return whether there was anything."""
        chunks, size = [self._data[self._start :]], 0
        while size < least and (chunk := self.source.chunk()):
            chunks.append(chunk)
            size += len(chunk)
        self._data, self._start = b"".join(chunks), 0
        return size > 0

    def _doubt(self) -> str:
        return f" (read with {as_arguments(self.options)}: these must be the options that pg_recvlogical was given)"
