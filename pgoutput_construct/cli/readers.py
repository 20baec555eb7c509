"""What decode reads: every input format as an iteration over decoded messages."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from pgoutput_construct.cli.hexlines import hex_lines
from pgoutput_construct.cli.lines import BEFORE, Decoded
from pgoutput_construct.cli.options import as_arguments, choose
from pgoutput_construct.cli.recvlogical import read_recvlogical
from pgoutput_construct.cli.source import ByteSource, open_source
from pgoutput_construct.errors import DecodeError, PgoutputError
from pgoutput_construct.extras import require
from pgoutput_construct.stream import Session
from pgoutput_construct.wire import parse

__all__ = ["FORMATS", "Reading", "is_log", "open_reading"]

FORMATS: Final = ("auto", "changelog", "recvlogical", "hex")

_LONGEST_DOUBT: Final = 4096
_PRINTABLE: Final = frozenset([*range(32, 127), *b"\t\r"])


class Reading(NamedTuple):
    """The messages of an input, and a function that returns which part of it has been read."""

    messages: Iterator[Decoded]
    done: Callable[[], float | None]


@contextmanager
def open_reading(
    path: str, form: str, given: Mapping[str, Any], warn: Callable[[str], object], before_wait: Callable[[], object]
) -> Iterator[Reading]:
    """Open an input, ``-`` for standard input; ``warn`` is called with what is unusual, but no error."""
    if form == "changelog" or (form == "auto" and is_log(path)):
        yield _open_change_log(path, given)
        return
    with open_source(path, before_wait) as source:
        chosen = _recognize(source) if form == "auto" else form
        if chosen == "hex":
            yield Reading(_read_hex(source, given), source.done)
        else:
            yield Reading(read_recvlogical(source, choose(given), warn), source.done)


def is_log(source: str) -> bool:
    """Tell the address of a change log, a directory or a URI, from names of files."""
    return "://" in source or (source != "-" and Path(source).is_dir())


def _recognize(source: ByteSource) -> str:
    """Return the format of an input by its first bytes: messages have zero bytes in their numbers, lines do not."""
    first = source.peek(_tells).lstrip()
    if first.startswith(b"{"):
        raise PgoutputError(f"{source.name}: these are JSON lines: use pgoutput build")
    if first.startswith(b"PAR1"):
        raise PgoutputError(f"{source.name}: a Parquet file: give the directory of its change log")
    line = first.partition(b"\n")[0]
    return "hex" if line.startswith(b"#") or _PRINTABLE.issuperset(line) else "recvlogical"


def _tells(first: bytes) -> bool:
    """Return whether these bytes are enough: a complete line, or something that no line of digits has."""
    text = first.lstrip()
    return b"\n" in text or not _PRINTABLE.issuperset(text) or text[:1] in (b"{", b"#") or len(text) >= _LONGEST_DOUBT


def _read_hex(source: ByteSource, given: Mapping[str, Any]) -> Iterator[Decoded]:
    session, chosen = Session(), dict[str, Any]()
    for line in hex_lines(source):
        if not chosen:
            chosen = _chosen(source, given, line.known)
            session = Session(**chosen)
        place: dict[str, Any] = {"line": line.number} | ({BEFORE: line.before} if line.before else {})
        read_with = {**chosen, **session.state.parameters}
        try:
            message = session.parse(line.payload)
        except PgoutputError as error:
            doubt = f" (read with {as_arguments(chosen)}: these must be the options of START_REPLICATION)"
            raise PgoutputError(f"{line.place}: {error}{doubt * isinstance(error, DecodeError)}") from error
        yield Decoded(message, line.payload, read_with, place)


def _chosen(source: ByteSource, given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return choose(given, known)
    except PgoutputError as error:
        raise PgoutputError(f"{source.name}: {error}") from error


def _open_change_log(path: str, given: Mapping[str, Any]) -> Reading:
    require("cli", "changelog")
    from pgoutput_construct.changelog import ChangeLog

    log = ChangeLog(path)
    count, total = [0], len(log)
    layouts = {segment.name: choose(given, segment.options.layout()) for segment in log.segments}
    messages = _read_change_log(log, layouts, count)
    return Reading(messages, lambda: count[0] / total if total else None)


def _read_change_log(log: Any, layouts: Mapping[str, Mapping[str, Any]], count: list[int]) -> Iterator[Decoded]:
    from pgoutput_construct.changelog import explain

    for entry in log:
        place = {
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
        yield Decoded(message, entry.payload, read_with, place)
