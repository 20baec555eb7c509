"""The payload that inspect shows: from digits, a file, or a change log."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import click

from pgoutput_construct.cli.hexlines import hex_lines, payload_of
from pgoutput_construct.cli.inspect_names import Before
from pgoutput_construct.cli.log_relations import LogRelations
from pgoutput_construct.cli.options import choose, first_in
from pgoutput_construct.cli.recvlogical import read_recvlogical
from pgoutput_construct.cli.source import ByteSource, standard_input
from pgoutput_construct.cli.words import counted
from pgoutput_construct.errors import DecodeError, PgoutputError
from pgoutput_construct.extras import require
from pgoutput_construct.stream.state import StreamState
from pgoutput_construct.wire import parse_frame
from pgoutput_construct.wire.frames import XLogData

__all__ = ["Asked", "Subject", "find"]

_DIGITS: Final = re.compile(r"(\\x)?[0-9A-Fa-f\s]*")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says of the message: which it is, and how it is to be read."""

    index: int
    seq: int | None
    frame: bool
    given: Mapping[str, Any]
    """Options of START_REPLICATION."""
    states: Mapping[str, bool]
    """Where in the stream the message stands."""

    def options(self, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the options of the layouts; inside a stream the defaults are the first that have streams."""
        return choose(self.given, {**first_in(self.states), **(known or {})})

    def all(self, options: Mapping[str, Any], states: Mapping[str, bool]) -> dict[str, Any]:
        """Return the keywords of parse: options, and the state that was asked for, else the one that is known."""
        return {**options, **states, **self.states}


@dataclass(frozen=True, slots=True)
class Subject:
    """One payload (or frame), where it was, and how it is to be read."""

    payload: bytes
    options: Mapping[str, Any]
    """The keywords of parse."""
    place: str = ""
    before: Before = field(default_factory=Before)


def find(source: str, asked: Asked) -> Subject:
    """Return what SOURCE and the options name; raise PgoutputError, or a usage error for options that do not fit."""
    path = _path(source)
    if "://" in source or (path is not None and path.is_dir()):
        return _in_change_log(source, asked)
    if asked.seq is not None:
        raise click.UsageError("--seq is for a change log, which is a directory: use --index in a file.")
    if source == "-":
        return _in_file(io.BytesIO(standard_input().read()), "standard input", asked)
    if path is None:
        return _in_argument(source, asked)
    with path.open("rb") as file:
        return _in_file(file, source, asked)


def _path(source: str) -> Path | None:
    """Return the path of an existing file or directory; None for digits, which may be too long for a name."""
    try:
        return Path(source) if source not in ("-", "") and Path(source).exists() else None
    except (OSError, ValueError):
        return None


def _in_argument(source: str, asked: Asked) -> Subject:
    if not _DIGITS.fullmatch(source):
        raise click.UsageError(f"{source!r:.200} is neither a file, nor a directory, nor hexadecimal digits.")
    options = asked.all(asked.options(), StreamState().parameters)
    return Subject(payload_of(source.encode("ascii"), "SOURCE"), options)


def _in_file(file: IO[bytes], name: str, asked: Asked) -> Subject:
    source = ByteSource(file, name)
    first = source.peek().lstrip().partition(b"\n")[0]
    if first.startswith(b"#") or _DIGITS.fullmatch(first.decode("latin-1")):
        return _in_lines(source, asked)
    if asked.frame:
        raise click.UsageError("--frame needs hexadecimal digits: pg_recvlogical writes messages, not frames.")
    return _in_recvlogical(source, file, asked)


def _in_lines(source: ByteSource, asked: Asked) -> Subject:
    before, count = Before(), 0
    for count, line in enumerate(hex_lines(source), 1):
        options = asked.options(line.known)
        if count == asked.index:
            return Subject(line.payload, asked.all(options, before.state.parameters), line.place, before)
        before.read(_inner(line.payload, asked.frame, options), options)
    raise PgoutputError(f"{source.name}: no message {asked.index}: the file has {counted(count, 'message')}")


def _inner(payload: bytes, frame: bool, options: Mapping[str, Any]) -> bytes:
    """Return the message in a frame, nothing for a frame that has none."""
    if not frame:
        return payload
    try:
        outer = parse_frame(payload, **options)
    except DecodeError:
        return b""
    return outer.data if isinstance(outer, XLogData) else b""


def _in_recvlogical(source: ByteSource, file: IO[bytes], asked: Asked) -> Subject:
    options = asked.options()
    before, count, end = Before(), 0, 0
    place = f"{source.name}: message {asked.index}"
    try:
        for decoded in read_recvlogical(source, options, _ignore):
            count += 1
            if count == asked.index:
                return Subject(decoded.payload, {**decoded.options, **asked.states}, place, before)
            before.take(decoded.message)
            end = decoded.place["offset"] + len(decoded.payload) + 1
    except PgoutputError:
        payload = _rest(file, end)
        if count + 1 != asked.index or not payload:
            raise
        return Subject(payload, asked.all(options, before.state.parameters), place, before)
    raise PgoutputError(f"{source.name}: no message {asked.index}: the file has {counted(count, 'message')}")


def _ignore(text: str) -> None:
    """Ignore reconnections: only the message matters."""


def _rest(file: IO[bytes], start: int) -> bytes:
    """Return the bytes where no message could be read, to the end of the file: nothing says how long it is."""
    file.seek(start)
    return file.read().lstrip(b"\n")


def _in_change_log(source: str, asked: Asked) -> Subject:
    if asked.seq is None:
        raise click.UsageError("a change log needs --seq, the position of the message.")
    if asked.frame:
        raise click.UsageError("--frame needs hexadecimal digits: a change log stores messages, not frames.")
    require("cli", "changelog")
    from pgoutput_construct.changelog import ChangeLog

    log = ChangeLog(source)
    entry = log.entry(asked.seq)
    segment = next(each for each in log.segments if each.name == entry.segment)
    options = asked.options(segment.options.layout())
    relations = LogRelations(log.index)
    relations.go_to(entry)
    place = f"{entry.segment}: seq {entry.seq}, WAL {entry.wal_start}, sent {entry.send_time}"
    return Subject(entry.payload, asked.all(options, entry.states), place, Before(relations))
