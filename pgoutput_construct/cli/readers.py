"""What decode reads: each form of input as an iteration over decoded messages."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from pgoutput_construct.cli.lines import BEFORE, Decoded, Given
from pgoutput_construct.cli.recvlogical import read_recvlogical
from pgoutput_construct.cli.source import ByteSource, open_source
from pgoutput_construct.errors import DecodeError, PgoutputError
from pgoutput_construct.extras import require
from pgoutput_construct.stream import Session
from pgoutput_construct.wire import parse

__all__ = ["FORMATS", "Reading", "open_reading"]

FORMATS: Final = ("auto", "changelog", "recvlogical", "hex")

_LONGEST_DOUBT: Final = 4096
_PRINTABLE: Final = frozenset([*range(32, 127), *b"\t\r"])


class Reading(NamedTuple):
    """The messages of an input, and a function that tells which part of it has been read."""

    messages: Iterator[Decoded]
    done: Callable[[], float | None]


@contextmanager
def open_reading(
    path: str, form: str, given: Given, warn: Callable[[str], object], before_wait: Callable[[], object]
) -> Iterator[Reading]:
    """Open an input, ``-`` for standard input; ``warn`` is told of what is odd, and no error."""
    if form == "changelog" or (form == "auto" and path != "-" and Path(path).is_dir()):
        yield _open_change_log(path, given)
        return
    with open_source(path, before_wait) as source:
        chosen = _recognize(source) if form == "auto" else form
        if chosen == "hex":
            yield Reading(_read_hex(source, given), source.done)
        else:
            yield Reading(read_recvlogical(source, *given.over({}), warn), source.done)


def _recognize(source: ByteSource) -> str:
    """Return the form of an input by its first bytes: messages have zero bytes in their numbers, lines have none."""
    first = source.peek(_tells).lstrip()
    if first.startswith(b"{"):
        raise PgoutputError(f"{source.name}: these are lines of JSON: give them to pgoutput build")
    if first.startswith(b"PAR1"):
        raise PgoutputError(f"{source.name}: a Parquet file: give the directory of the change log that it is in")
    line = first.partition(b"\n")[0]
    return "hex" if line.startswith(b"#") or _PRINTABLE.issuperset(line) else "recvlogical"


def _tells(first: bytes) -> bool:
    """Tell whether these bytes are enough: a whole line, or something that no line of digits has."""
    text = first.lstrip()
    return b"\n" in text or not _PRINTABLE.issuperset(text) or text[:1] in (b"{", b"#") or len(text) >= _LONGEST_DOUBT


def _read_hex(source: ByteSource, given: Given) -> Iterator[Decoded]:
    session: Session | None = None
    known: Mapping[str, Any] = {}
    before: list[str] = []
    for number, line in enumerate(source.lines(), 1):
        digits = line.strip()
        if not digits or digits.startswith(b"#"):
            known = known or (_header(digits) if session is None else {})
            before.append(line.decode("utf-8", "surrogateescape"))
            continue
        session = session or _session(source, given, known)
        place: dict[str, Any] = {"line": number} | ({BEFORE: before} if before else {})
        in_stream, before = session.in_stream, []
        try:
            message = session.parse(_payload(digits))
        except PgoutputError as error:
            raise PgoutputError(f"{source.name}: line {number}: {error}{_doubt(session, error)}") from error
        yield Decoded(message, session.proto_version, session.streaming, in_stream, place)


def _session(source: ByteSource, given: Given, known: Mapping[str, Any]) -> Session:
    try:
        return Session(*given.over(known))
    except PgoutputError as error:
        raise PgoutputError(f"{source.name}: {error}") from error


def _header(comment: bytes) -> Mapping[str, Any]:
    """Return the options in a comment such as ``# {"proto_version": 4, "streaming": "parallel"}``."""
    try:
        value = json.loads(comment.lstrip(b"#"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _payload(digits: bytes) -> bytes:
    try:
        return bytes.fromhex(digits.removeprefix(b"\\x").decode("ascii"))
    except ValueError:
        raise PgoutputError("a line must be an even number of hexadecimal digits, or a comment (# ...)") from None


def _doubt(session: Session, error: PgoutputError) -> str:
    if not isinstance(error, DecodeError):
        return ""
    asked = f"--proto-version {session.proto_version} --streaming {session.streaming}"
    return f" (read with {asked}: these must be the options of START_REPLICATION)"


def _open_change_log(path: str, given: Given) -> Reading:
    require("cli", "changelog")
    from pgoutput_construct.changelog import ChangeLog

    log = ChangeLog(path)
    known = {"proto_version": log.options.proto_version, "streaming": log.options.streaming}
    count, total = [0], len(log)
    return Reading(_read_change_log(log, given.over(known), count), lambda: count[0] / total if total else None)


def _read_change_log(log: Any, options: tuple[int, str], count: list[int]) -> Iterator[Decoded]:
    from pgoutput_construct.changelog import explain

    for entry in log:
        place = {
            "seq": entry.seq,
            "wal_start": str(entry.wal_start),
            "send_time": str(entry.send_time),
            "stream_xid": entry.stream_xid,
        }
        try:
            message = parse(entry.payload, *options, entry.in_stream)
        except PgoutputError as error:
            raise explain(entry, error) from error
        count[0] += 1
        yield Decoded(message, *options, entry.in_stream, place)
