"""What inspect looks at: one payload, found in digits, a file, or a change log."""

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import click

from pgoutput_construct.cli.inspect_names import Before
from pgoutput_construct.cli.lines import Given
from pgoutput_construct.cli.recvlogical import read_recvlogical
from pgoutput_construct.cli.source import ByteSource, standard_input
from pgoutput_construct.errors import DecodeError, PgoutputError
from pgoutput_construct.extras import require
from pgoutput_construct.wire import build, parse_frame
from pgoutput_construct.wire.frames import XLogData
from pgoutput_construct.wire.messages import Relation, StreamAbort, StreamCommit, StreamPrepare

__all__ = ["Asked", "Subject", "find"]

DESCRIBING: Final = (Relation, StreamCommit, StreamAbort, StreamPrepare)
"""What changes which tables are known."""

_DIGITS: Final = re.compile(r"(\\x)?[0-9A-Fa-f\s]*")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says of the message: which it is, and how it is to be read."""

    index: int
    seq: int | None
    frame: bool
    in_stream: bool | None
    given: Given

    def options(self, known: Mapping[str, Any]) -> tuple[int, str]:
        """Return proto_version and streaming; inside a stream the defaults are the first that have streams."""
        streams = self.in_stream and self.given.proto_version != 1
        return self.given.over({**({"proto_version": 2, "streaming": "on"} if streams else {}), **known})

    def inside(self, known: bool) -> bool:
        """Return whether the message is read as inside a stream."""
        return known if self.in_stream is None else self.in_stream


@dataclass(frozen=True, slots=True)
class Subject:
    """One payload (or frame), where it was, and how it is to be read."""

    payload: bytes
    proto_version: int
    streaming: str
    in_stream: bool
    place: str = ""
    before: Before = field(default_factory=Before)


def find(source: str, asked: Asked) -> Subject:
    """Return what SOURCE and the options name; raise PgoutputError, or a usage error for what cannot be."""
    path = _path(source)
    if path is not None and path.is_dir():
        return _in_change_log(path, asked)
    if asked.seq is not None:
        raise click.UsageError("--seq is for a change log, which is a directory: use --index in a file.")
    if source == "-":
        return _in_file(io.BytesIO(standard_input().read()), "standard input", asked)
    if path is None:
        return _in_argument(source, asked)
    with path.open("rb") as file:
        return _in_file(file, source, asked)


def _path(source: str) -> Path | None:
    """Return the path of what is there under that name; nothing for digits, which may be too long for a name."""
    try:
        return Path(source) if source not in ("-", "") and Path(source).exists() else None
    except (OSError, ValueError):
        return None


def _in_argument(source: str, asked: Asked) -> Subject:
    if not _DIGITS.fullmatch(source):
        raise click.UsageError(f"{source!r:.200} is no file, no directory, and no hexadecimal digits.")
    proto_version, streaming = asked.options({})
    return Subject(_payload(source.encode("ascii"), "SOURCE"), proto_version, streaming, bool(asked.in_stream))


def _payload(digits: bytes, place: str) -> bytes:
    try:
        return bytes.fromhex(digits.strip().removeprefix(b"\\x").decode("ascii"))
    except ValueError:
        raise PgoutputError(f"{place}: not an even number of hexadecimal digits") from None


def _in_file(file: IO[bytes], name: str, asked: Asked) -> Subject:
    source = ByteSource(file, name)
    first = source.peek().lstrip().partition(b"\n")[0]
    if first.startswith(b"#") or _DIGITS.fullmatch(first.decode("latin-1")):
        return _in_lines(source, asked)
    if asked.frame:
        raise click.UsageError("--frame needs hexadecimal digits: pg_recvlogical writes no frames.")
    return _in_recvlogical(source, file, asked)


def _in_lines(source: ByteSource, asked: Asked) -> Subject:
    known: dict[str, Any] = {}
    before, count = Before(), 0
    for number, line in enumerate(source.lines(), 1):
        if line.lstrip().startswith(b"#"):
            known = known if count else known | _header(line)
        elif line.strip():
            count += 1
            place = f"{source.name}: line {number}"
            options = asked.options(known)
            if count == asked.index:
                return Subject(_payload(line, place), *options, asked.inside(before.in_stream), place, before)
            before.read(_inner(_payload(line, place), asked.frame), *options)
    raise PgoutputError(f"{source.name}: there is no message {asked.index}, the file has {count}")


def _header(comment: bytes) -> dict[str, Any]:
    try:
        value = json.loads(comment.lstrip(b"# "))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _inner(payload: bytes, frame: bool) -> bytes:
    """Return the message in a frame, nothing for a frame that has none."""
    if not frame:
        return payload
    try:
        outer = parse_frame(payload)
    except DecodeError:
        return b""
    return outer.data if isinstance(outer, XLogData) else b""


def _in_recvlogical(source: ByteSource, file: IO[bytes], asked: Asked) -> Subject:
    options = asked.options({})
    before, count, end = Before(), 0, 0
    place = f"{source.name}: message {asked.index}"
    try:
        for decoded in read_recvlogical(source, *options, _ignore):
            count += 1
            payload = build(decoded.message, *options, decoded.in_stream)
            if count == asked.index:
                return Subject(payload, *options, asked.inside(decoded.in_stream), place, before)
            before.take(decoded.message)
            end = decoded.place["offset"] + len(payload) + 1
    except PgoutputError:
        payload = _rest(file, end)
        if count + 1 != asked.index or not payload:
            raise
        return Subject(payload, *options, asked.inside(before.in_stream), place, before)
    raise PgoutputError(f"{source.name}: there is no message {asked.index}, the file has {count}")


def _ignore(text: str) -> None:
    """Take no notice of a connection that was made again."""


def _rest(file: IO[bytes], start: int) -> bytes:
    """Return what stands where no message could be read: to the end of the file, since nothing says how long it is."""
    file.seek(start)
    return file.read().lstrip(b"\n")


def _in_change_log(source: Path, asked: Asked) -> Subject:
    if asked.seq is None:
        raise click.UsageError("a change log needs --seq: which message to show.")
    if asked.frame:
        raise click.UsageError("--frame needs hexadecimal digits: a change log has no frames.")
    require("cli", "changelog")
    from pgoutput_construct.changelog import ChangeLog

    log = ChangeLog(source)
    entry = log.entry(asked.seq)
    known = {"proto_version": log.options.proto_version, "streaming": log.options.streaming}
    options = asked.options(known)
    before = Before()
    for payload, stream_xid, in_stream in _descriptions(log, asked.seq):
        before.in_stream, before.relations.stream_xid = in_stream, stream_xid
        before.read(payload, *options)
    before.relations.stream_xid = entry.stream_xid
    place = f"{entry.segment}: seq {entry.seq}, WAL {entry.wal_start}, sent {entry.send_time}"
    return Subject(entry.payload, *options, asked.inside(entry.in_stream), place, before)


def _descriptions(log: Any, seq: int) -> Iterator[tuple[bytes, int | None, bool]]:
    """Yield the messages before ``seq`` that change which tables are known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = pa.array([kind.TAG for kind in DESCRIBING], pa.binary())
    for segment in log.segments:
        if segment.first_seq < seq:
            table = log.table(segment)
            tags = pc.binary_slice(table["payload"], 0, 1)
            wanted = pc.and_(pc.is_in(tags, value_set=kinds), pc.less(table["seq"], seq))
            rows = table.filter(wanted).select(["payload", "stream_xid", "in_stream"])
            yield from zip(*(column.to_pylist() for column in rows.columns), strict=True)
