"""Files of pg_recvlogical: payloads, each followed by a newline, without lengths; the grammar says where each ends."""

from collections.abc import Callable, Iterator

from pgoutput_construct.cli.lines import BEFORE, Decoded
from pgoutput_construct.cli.source import ByteSource
from pgoutput_construct.cli.state import can_come, in_stream_after
from pgoutput_construct.errors import DecodeError, PgoutputError
from pgoutput_construct.wire.engine import parse_prefix
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.reference import LARGEST, IncompleteError

__all__ = ["read_recvlogical"]

PATIENCE = 8 << 20
"""Bytes of an unfinished message above which it is tried again only when a quarter more has come."""


def read_recvlogical(
    source: ByteSource, proto_version: int, streaming: str, warn: Callable[[str], object]
) -> Iterator[Decoded]:
    """Iterate over the messages of a file; raise PgoutputError with the place in the file.

    ``warn`` is told where the file goes on with another connection, which pg_recvlogical makes by itself.
    """
    front = _Front(source, proto_version, streaming)
    in_stream, number = False, 0
    while (empty := front.skip_newlines()) is not None:
        number += 1
        message, size = front.parse(in_stream, number)
        if in_stream and not can_come(message, in_stream):
            warn(f"{front.place(number)}: {_name(message)} inside a stream: from here on another connection")
            in_stream = False
            message, size = front.parse(in_stream, number)
        if not can_come(message, in_stream):
            raise PgoutputError(f"{front.place(number)}: {_name(message)} outside a stream: its start is missing")
        place = {"offset": front.offset} | ({BEFORE: [""] * empty} if empty else {})
        front.pass_over(size, _name(message), number)
        yield Decoded(message, proto_version, streaming, in_stream, place)
        in_stream = in_stream_after(message, in_stream)


def _name(message: PgoutputMessage) -> str:
    return type(message).__name__


class _Front:
    """The part of a file that is in memory: it starts with the next message, and grows as that needs."""

    def __init__(self, source: ByteSource, proto_version: int, streaming: str) -> None:
        self.source = source
        self.options = proto_version, streaming
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

    def parse(self, in_stream: bool, number: int) -> tuple[PgoutputMessage, int]:
        """Return the next message and its size; raise PgoutputError."""
        while True:
            try:
                return parse_prefix(self._data, self._start, *self.options, in_stream)
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
        """Leave the message behind, with the newline that must follow it."""
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
        proto_version, streaming = self.options
        asked = f"--proto-version {proto_version} --streaming {streaming}"
        return f" (read with {asked}: these must be the options that pg_recvlogical was given)"
