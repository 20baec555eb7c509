"""Input formats: change logs, files of pg_recvlogical and lines of hexadecimal digits, as iterators over messages."""

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from pgoutput_construct.cli._options import as_arguments, choose, is_log
from pgoutput_construct.errors import DecodeError, PgoutputError
from pgoutput_construct.extras import require
from pgoutput_construct.stream import Session
from pgoutput_construct.stream.state import StreamState
from pgoutput_construct.wire import parse
from pgoutput_construct.wire.engine import parse_prefix
from pgoutput_construct.wire.json_lines import BEFORE, Decoded
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.protocol import OPTIONS
from pgoutput_construct.wire.reference import LARGEST, IncompleteError

__all__ = [
    "FORMATS",
    "ByteSource",
    "hex_lines",
    "open_reading",
    "open_source",
    "payload_of",
    "read_recvlogical",
    "standard_input",
    "standard_output",
]

FORMATS: Final = ("auto", "changelog", "recvlogical", "hex")

_LONGEST_DOUBT: Final = 4096
_PRINTABLE: Final = frozenset([*range(32, 127), *b"\t\r"])


class _CountedInput(NamedTuple):
    """The messages of an input, and a function that returns the fraction that has been read (None if unknown)."""

    messages: Iterator[Decoded]
    done: Callable[[], float | None]


@contextmanager
def open_reading(
    path: str, form: str, given: Mapping[str, Any], warn: Callable[[str], object], before_wait: Callable[[], object]
) -> Iterator[_CountedInput]:
    """Open an input.

    Args:
        path: The path, the URL of a change log, or ``-`` for standard input.
        form: One of FORMATS.
        given: The options that were given on the command line.
        warn: Called with warnings.
        before_wait: Called before each read that may wait for a writer.

    Raises:
        PgoutputError: The input is not in the format, or no change log. Errors of messages are raised while iterating.
    """
    if form == "changelog" or (form == "auto" and is_log(path)):
        yield _open_change_log(path, given)
        return
    with open_source(path, before_wait) as source:
        chosen = _recognize(source) if form == "auto" else form
        if chosen == "hex":
            yield _CountedInput(_read_hex(source, given), source.done)
        else:
            yield _CountedInput(read_recvlogical(source, choose(given), warn), source.done)


def _recognize(source: "ByteSource") -> str:
    """Detect the format of an input by its first bytes: numbers in messages have zero bytes, text lines do not."""
    first = source.peek(_is_enough).lstrip()
    if first.startswith(b"{"):
        raise PgoutputError(f"{source.name}: these are JSON lines: use pgoutput build")
    if first.startswith(b"PAR1"):
        raise PgoutputError(f"{source.name}: a Parquet file: give the directory of its change log")
    line = first.partition(b"\n")[0]
    return "hex" if line.startswith(b"#") or _PRINTABLE.issuperset(line) else "recvlogical"


def _is_enough(first: bytes) -> bool:
    """Return whether these bytes are enough to detect the format."""
    text = first.lstrip()
    return b"\n" in text or not _PRINTABLE.issuperset(text) or text[:1] in (b"{", b"#") or len(text) >= _LONGEST_DOUBT


def _read_hex(source: "ByteSource", given: Mapping[str, Any]) -> Iterator[Decoded]:
    session, chosen = Session(), dict[str, Any]()
    for line in hex_lines(source):
        if not chosen:
            chosen = _chosen(source, given, line.known)
            session = Session(**chosen)
        location: dict[str, Any] = {"line": line.number} | ({BEFORE: line.before} if line.before else {})
        read_with = {**chosen, **session.state.parameters}
        try:
            message = session.parse(line.payload)
        except PgoutputError as error:
            doubt = f" (read with {as_arguments(chosen)}: these must be the options of START_REPLICATION)"
            raise PgoutputError(f"{line.location}: {error}{doubt * isinstance(error, DecodeError)}") from error
        yield Decoded(message, line.payload, read_with, location)


def _chosen(source: "ByteSource", given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return choose(given, known)
    except PgoutputError as error:
        raise PgoutputError(f"{source.name}: {error}") from error


def _open_change_log(path: str, given: Mapping[str, Any]) -> _CountedInput:
    require("cli", "changelog")
    from pgoutput_construct.changelog import ChangeLog

    log = ChangeLog(path)
    count, total = [0], len(log)
    layouts = {segment.name: choose(given, segment.options.layout()) for segment in log.segments}
    messages = _read_change_log(log, layouts, count)
    return _CountedInput(messages, lambda: count[0] / total if total else None)


def _read_change_log(log: Any, layouts: Mapping[str, Mapping[str, Any]], count: list[int]) -> Iterator[Decoded]:
    from pgoutput_construct.changelog import explain

    for entry in log:
        location = {
            "seq": entry.seq,
            "wal_start": str(entry.wal_start),
            "send_time": str(entry.send_time),
            "stream_xid": entry.stream_xid,
        }
        read_with = {**layouts[entry.segment], **entry.states}
        try:
            message = parse(entry.payload, **read_with)
        except PgoutputError as error:
            raise explain(entry, error) from error
        count[0] += 1
        yield Decoded(message, entry.payload, read_with, location)


PATIENCE = 8 << 20
"""Bytes of an incomplete message from which parsing is retried only after a quarter more was read."""


def read_recvlogical(
    source: "ByteSource", options: Mapping[str, Any], warn: Callable[[str], object]
) -> Iterator[Decoded]:
    """Iterate over the messages of a file that pg_recvlogical has written.

    Args:
        source: The file.
        options: The options that decide layouts.
        warn: Called if the file continues with another connection (pg_recvlogical reconnects by itself).

    Raises:
        PgoutputError: A message is invalid; the error has its number and offset.
    """
    window, state = _FileWindow(source, options), StreamState()
    number = 0
    while (empty := window.skip_newlines()) is not None:
        number += 1
        message, payload = window.parse(state, number)
        if state.in_stream and not state.permits(type(message)):
            warn(f"{window.location(number)}: {_name(message)} inside a stream: from here on another connection")
            state = StreamState()
            message, payload = window.parse(state, number)
        if not state.permits(type(message)):
            raise PgoutputError(f"{window.location(number)}: {_name(message)} outside a stream: its start is missing")
        location = {"offset": window.offset} | ({BEFORE: [""] * empty} if empty else {})
        window.skip(len(payload), _name(message), number)
        yield Decoded(message, payload, {**options, **state.parameters}, location)
        state.advance(message)


def _name(message: PgoutputMessage) -> str:
    return type(message).__name__


class _FileWindow:
    """The part of a file that is in memory: it starts with the next message, and grows until that is complete."""

    def __init__(self, source: "ByteSource", options: Mapping[str, Any]) -> None:
        self.source = source
        self.options = options
        self.offset = 0
        """The offset of the next message in the file."""
        self._data = b""
        self._start = 0

    def location(self, number: int) -> str:
        """Return the location of the next message, for errors."""
        return f"{self.source.name}: message {number} at offset {self.offset}"

    def skip_newlines(self) -> int | None:
        """Skip empty payloads, which are newlines only; return their number, or None at the end of the file."""
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
                missing = str(error)  # not the error itself, whose traceback references the data
            except DecodeError as error:
                raise PgoutputError(f"{self.location(number)}: {error}{self._options_hint()}") from error
            size_so_far = len(self._data) - self._start
            if size_so_far >= LARGEST:
                raise PgoutputError(
                    f"{self.location(number)}: larger than any message: {missing}{self._options_hint()}"
                )
            if not self._more(size_so_far // 4 if size_so_far > PATIENCE else 1):
                raise PgoutputError(f"{self.location(number)}: the file ends inside this message: {missing}")

    def skip(self, size: int, name: str, number: int) -> None:
        """Skip the message and the newline that must follow it."""
        end = self._start + size
        if end == len(self._data) and not self._more():
            raise PgoutputError(f"{self.location(number)}: the file ends without the newline after this {name}")
        end = self._start + size
        following = self._data[end : end + 1]
        if following != b"\n":
            reason = f"{name} ends after {size} bytes with {following!r}, not with a newline"
            raise PgoutputError(f"{self.location(number)}: {reason}{self._options_hint()}")
        self._advance(size + 1)

    def _advance(self, size: int) -> None:
        self._start += size
        self.offset += size

    def _more(self, least: int = 1) -> bool:
        """Read at least ``least`` more bytes; return whether there were any."""
        chunks, size = [self._data[self._start :]], 0
        while size < least and (chunk := self.source.chunk()):
            chunks.append(chunk)
            size += len(chunk)
        self._data, self._start = b"".join(chunks), 0
        return size > 0

    def _options_hint(self) -> str:
        return f" (read with {as_arguments(self.options)}: these must be the options that pg_recvlogical was given)"


class _HexLine(NamedTuple):
    """One line with a payload."""

    location: str
    """The location, for errors."""
    number: int
    payload: bytes
    known: Mapping[str, Any]
    """The options in the comments before the first payload: ``# {"proto_version": 4, "streaming": "parallel"}``."""
    before: list[str]
    """The comments and empty lines since the previous payload."""


def hex_lines(source: "ByteSource") -> Iterator[_HexLine]:
    """Iterate over the payloads of an input; raise PgoutputError with the location of an invalid line."""
    known: Mapping[str, Any] = {}
    before: list[str] = []
    begun = False
    for number, line in enumerate(source.lines(), 1):
        digits = line.strip()
        if not digits or digits.startswith(b"#"):
            known = known if begun else known or _header(digits, f"{source.name}: line {number}")
            before.append(line.decode("utf-8", "surrogateescape"))
            continue
        location = f"{source.name}: line {number}"
        yield _HexLine(location, number, payload_of(digits, location), known, before)
        begun, before = True, []


def payload_of(digits: bytes, location: str) -> bytes:
    """Return the bytes of hexadecimal digits, also as psql prints them (``\\x``); raise PgoutputError for others."""
    try:
        return bytes.fromhex(digits.strip().removeprefix(b"\\x").decode("ascii"))
    except ValueError:
        raise PgoutputError(f"{location}: not an even number of hexadecimal digits (a comment begins with #)") from None


def _header(comment: bytes, location: str) -> Mapping[str, Any]:
    try:
        value = json.loads(comment.lstrip(b"#"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    if unknown := [name for name in value if name not in OPTIONS]:
        raise PgoutputError(f"{location}: unknown option {unknown[0]!r:.80}: the options are {', '.join(OPTIONS)}")
    return value


CHUNK = 1 << 20
LONGEST_LINE = 3 * LARGEST  # more than the hexadecimal digits of the largest message


class ByteSource:
    """The bytes of one input, read once from beginning to end."""

    def __init__(self, file: Any, name: str, before_wait: Callable[[], object] | None = None) -> None:
        """Begin to read.

        Args:
            file: A binary file.
            name: Its name, for errors.
            before_wait: Called before each read that may wait for a writer.
        """
        self.name = name
        self._file = file
        self._peeked = b""
        self._ended = False
        self._size = _size(file)
        self._consumed = 0
        self._before_wait = before_wait if self._size is None else None

    def chunk(self) -> bytes:
        """Return more bytes as soon as there are any; empty at the end."""
        if self._peeked:
            peeked, self._peeked = self._peeked, b""
            return peeked
        return self._read()

    def peek(self, enough: Callable[[bytes], bool] = bool) -> bytes:
        """Return the first bytes, as soon as they are ``enough``, or all of them; the next chunk returns them again."""
        while not enough(self._peeked) and (more := self._read()):
            self._peeked += more
        return self._peeked

    def lines(self) -> Iterator[bytes]:
        """Iterate over the lines without newlines; raise PgoutputError for a line longer than any message."""
        parts: list[bytes] = []
        while chunk := self.chunk():
            first, *others = chunk.split(b"\n")
            parts.append(first)
            if others:
                yield b"".join(parts)
                yield from others[:-1]
                parts = others[-1:]
            elif sum(map(len, parts)) > LONGEST_LINE:
                raise PgoutputError(f"{self.name}: a line is longer than any message: the input is not lines of text")
        if any(parts):
            yield b"".join(parts)

    def done(self) -> float | None:
        """Return the fraction of the input that has been read; None if its size is unknown."""
        return self._consumed / self._size if self._size else None

    def _read(self) -> bytes:
        if self._ended:
            return b""  # reading a terminal again would wait for a second Ctrl-D
        if self._before_wait is not None:
            self._before_wait()
        data: bytes = self._file.read1(CHUNK)
        self._ended = not data
        self._consumed += len(data)
        return data


def standard_input() -> BinaryIO:
    """Return standard input as a binary file; raise PgoutputError if it is closed (``<&-`` in a shell)."""
    if sys.stdin is None:
        raise PgoutputError("standard input is closed: name a file, or pipe the input")
    return sys.stdin.buffer


def standard_output() -> BinaryIO:
    """Return standard output as a binary file; raise PgoutputError if it is closed (``>&-`` in a shell)."""
    if sys.stdout is None:
        raise PgoutputError("standard output is closed: redirect it to a file or a pipe")
    return sys.stdout.buffer


@contextmanager
def open_source(path: str, before_wait: Callable[[], object] | None = None) -> Iterator[ByteSource]:
    """Open a file, or standard input for ``-``."""
    if path == "-":
        yield ByteSource(standard_input(), "standard input", before_wait)
        return
    with Path(path).open("rb") as file:
        yield ByteSource(file, path, before_wait)


def _size(file: Any) -> int | None:
    try:
        status = os.fstat(file.fileno())
    except (OSError, AttributeError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
