"""``pgoutput inspect``: shows the bytes of one message, field by field."""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import click

from pgoutput_construct.cli._input import ByteSource, hex_lines, payload_of, read_recvlogical, standard_input
from pgoutput_construct.cli._options import as_arguments, choose, first_options_in, layout_options, state_options
from pgoutput_construct.cli._printing import counted, printable
from pgoutput_construct.cli.commands._inspect_rows import Detail, Row, RowKind, dump
from pgoutput_construct.cli.commands._log_relations import LogRelations
from pgoutput_construct.errors import DecodeError, PgoutputError, ProtocolError
from pgoutput_construct.extras import require
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import RelationCache
from pgoutput_construct.stream.state import StreamState
from pgoutput_construct.wire import parse, parse_frame
from pgoutput_construct.wire.connection_engine import CONNECTION_STATES, SENDERS, Role, parse_connection, states_of
from pgoutput_construct.wire.connection_messages import PLAIN_COPY, CopyData
from pgoutput_construct.wire.frames import XLogData
from pgoutput_construct.wire.messages import PgoutputMessage, Relation
from pgoutput_construct.wire.options import LAYOUT_OPTIONS, STATE_PARAMETERS, noun
from pgoutput_construct.wire.trace import Trace, trace, trace_connection, trace_frame

__all__ = ["Context", "inspect_command", "labels"]


@click.command("inspect")
@click.argument("source", default="-")
@click.option(
    "--index", type=click.IntRange(min=1), default=1, show_default=True, help="Number of the message in a file."
)
@click.option("--seq", type=click.IntRange(min=0), help="Row number (seq) of the message in a change log.")
@click.option("--frame", is_flag=True, help="SOURCE is a frame, the content of one CopyData message.")
@click.option(
    "--sender",
    type=click.Choice(SENDERS),
    help="SOURCE is a message of the connection, with its tag and length, that this side sent.",
)
@click.option(
    "--state",
    type=click.Choice(CONNECTION_STATES),
    metavar="STATE",
    help="The state of the connection (spec/protocol.yaml).  [default: the first in which SENDER can send the message]",
)
@click.option("--all", "everything", is_flag=True, help="Show wide rows and long values in full.")
@layout_options("as in SOURCE")
@state_options
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Save the output as an SVG image.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Save the output as an HTML page.")
def inspect_command(
    source: str,
    *,
    index: int,
    seq: int | None,
    frame: bool,
    sender: Role | None,
    state: str | None,
    everything: bool,
    given: Mapping[str, Any],
    states: Mapping[str, bool],
    svg: Path | None,
    html: Path | None,
) -> None:
    """Show the bytes of one message, field by field.

    Shows the offset, type, value and meaning of each field. SOURCE is hexadecimal digits; a file with lines of them, or
    written by pg_recvlogical, from which --index selects a message; or a change log (a directory), from which --seq
    selects one. Without SOURCE, or with -, standard input is read. Tables and columns are named if SOURCE has their
    Relation message before this one.

    With --sender, SOURCE is a message of the connection; a frame and a message in a CopyData are shown, too.

    A message that ends too early or is invalid is shown up to the error, and the exit status is 1.

    \b
    Examples:
      pgoutput inspect 490000400f4e00027400000001316e
      pgoutput inspect --in-stream 490000031d000040074e0001740000000161
      pgoutput inspect --sender server 520000000800000000
      pgoutput inspect changes.bin --index 3
      pgoutput inspect changelog/ --seq 120 --svg change.svg
    """
    if state is not None and sender is None:
        raise click.UsageError("--state needs --sender: who sent the message.")
    if frame and sender is not None:
        raise click.UsageError("--frame is the content of a CopyData, --sender a whole message: give one of them.")
    subject = _find(source, _ChosenMessage(index, seq, _Kind(frame, sender, state), given, states))
    layers = list(_layers(subject))
    _show(subject, layers, everything, svg, html)
    _check(subject, layers)


class _Layer(NamedTuple):
    """A traced message, and those that carry it: a message of the connection, a frame."""

    trace: Trace
    base: int
    """The offset of its first byte in the bytes that are shown."""
    parse: Callable[[bytes], Any]
    read_with: str
    """The arguments with which it is read, for errors."""


def _layers(subject: "_Subject") -> Iterator[_Layer]:
    """Yield what carries the message, and the message; up to one that carries nothing, as far as it reaches."""
    kind, data, base, options = subject.kind, subject.payload, 0, subject.options
    framed, read_with = kind.frame, as_arguments(options)
    if kind.sender is not None:
        sender, state = kind.sender, kind.state_of(data)
        outer = trace_connection(data, sender, state)
        told = f"--sender {sender} --state {state}"
        yield _Layer(outer, base, lambda data: parse_connection(data, sender, state), told)
        if (
            outer.name != CopyData.__name__
            or outer.spans[-1].path != f"{CopyData.__name__}.data"
            or state in PLAIN_COPY
        ):
            return
        data, base, framed = outer.spans[-1].value, outer.spans[-1].start, True
    if framed:
        frame = trace_frame(data, **options)
        yield _Layer(frame, base, lambda data: parse_frame(data, **options), read_with)
        if frame.name != XLogData.__name__ or frame.fault is not None:
            return
        data, base = frame.spans[-1].value, base + frame.spans[-1].start
    yield _Layer(trace(data, **options), base, lambda data: parse(data, **options), read_with)


def _show(subject: "_Subject", layers: Sequence[_Layer], everything: bool, svg: Path | None, html: Path | None) -> None:
    from pgoutput_construct.cli.commands._inspect_picture import Picture

    traces = [layer.trace for layer in layers]
    picture = Picture(_title(subject, traces), list(_rows(subject, layers, everything)), everything)
    picture.print()
    if svg is not None:
        svg.write_text(picture.svg(), "utf-8")
    if html is not None:
        html.write_text(picture.html(), "utf-8")


def _rows(subject: "_Subject", layers: Sequence[_Layer], everything: bool) -> Iterator[Row]:
    for depth, layer in enumerate(layers):
        inner = layers[depth + 1].base if depth + 1 < len(layers) else None
        names = labels(layer.trace, subject.before.relations)
        for row in dump(layer.trace, Detail(everything, names), layer.base, depth):
            yield replace(row, kind=RowKind.GROUP, data=b"", value="") if row.start == inner else row


def _title(subject: "_Subject", traces: list[Trace]) -> str:
    names = [_name(each) for each in traces]
    options = ", ".join(f"{name} {subject.options[name]}" for name in LAYOUT_OPTIONS)
    states = [_state(name, subject.options[name]) for name in STATE_PARAMETERS]
    size = counted(len(subject.payload), "byte")
    how = ", ".join([options, *states])
    if subject.kind.sender is not None:
        sent = f"sent by the {subject.kind.sender}, state {subject.kind.state_of(subject.payload)}"
        how = f"{sent}, {how}" if len(traces) > 1 else sent
    parts = [" with ".join(names), size, how, subject.location]
    return " · ".join(part for part in parts if part)


def _state(name: str, on: bool) -> str:
    """Describe a state: ``inside a stream`` for ``in_stream``."""
    return f"{'inside' if on else 'outside'} a {noun(name)}"


def _name(each: Trace) -> str:
    return "no message" if each.name is None else each.fields[each.name].notation


def _check(subject: "_Subject", layers: Sequence[_Layer]) -> None:
    """Raise the PgoutputError of parse, which may add the likely mistake to that of the trace."""
    for layer in layers:
        try:
            layer.parse(layer.trace.data)
        except DecodeError as refused:
            fault = layer.trace.fault
            # The trace knows the field where bytes end that could begin several messages of a connection.
            error = fault.error if fault is not None and fault.error.offset and not refused.path else refused
            location = f"{subject.location}: " if subject.location else ""
            inside = f" (at byte {layer.base + (error.offset or 0)} of the whole message)" if layer.base else ""
            raise PgoutputError(f"{location}{error}{inside} (read with {layer.read_with})") from refused


_COLUMN: Final = re.compile(r"(.*\.columns\[(\d+)\]).*")
_TABLE: Final = re.compile(r".*\.relation_oids?(\[\d+\])?")


class Context:
    """The context that earlier messages provide: the stream state, and the known tables."""

    def __init__(self, relations: RelationCache | None = None) -> None:
        """Begin before the first message; ``relations`` are the tables that are known already."""
        self.state = StreamState()
        self.relations = relations or RelationCache()

    def take(self, message: PgoutputMessage) -> None:
        """Process the next message."""
        self.relations.update(message)
        self.state.follow(message)

    def read(self, payload: bytes, options: Mapping[str, Any]) -> None:
        """Process the next payload; an invalid one is ignored."""
        try:
            self.take(parse(payload, **{**options, **self.state.parameters}))
        except PgoutputError:
            return


def labels(trace: Trace, relations: RelationCache) -> Mapping[str, str]:
    """Return the names of the known tables and columns in a message, by path."""
    return {} if trace.name == Relation.__name__ else dict(_labels(trace, relations))


def _labels(trace: Trace, relations: RelationCache) -> Iterator[tuple[str, str]]:
    relation: Relation | None = None
    for span in trace.spans:
        if _TABLE.fullmatch(span.path):
            relation = _relation(relations, span.value)
            if relation is not None:
                yield span.path, printable(full_name(relation))
        elif relation is not None and (match := _COLUMN.fullmatch(span.path)):
            index = int(match[2])
            if index < len(relation.columns):
                yield match[1], printable(relation.columns[index].name)


def _relation(relations: RelationCache, oid: int) -> Relation | None:
    try:
        return relations.get(oid)
    except ProtocolError:
        return None


_DIGITS: Final = re.compile(r"(\\x)?[0-9A-Fa-f\s]*")


class _Kind(NamedTuple):
    """What the bytes are: a message, a frame, or a message of the connection that one side sent."""

    frame: bool
    sender: Role | None
    state: str | None

    def state_of(self, data: bytes) -> str:
        """Return the state of the connection: the given one, or the first in which the sender can send these bytes."""
        assert self.sender is not None
        return self.state or next(iter(states_of(data, self.sender)), CONNECTION_STATES[0])

    def unwrap(self, data: bytes, options: Mapping[str, Any]) -> bytes:
        """Return the message that these bytes carry; empty for those that carry none."""
        try:
            framed = self.frame
            if self.sender is not None:
                state = self.state_of(data)
                outer = parse_connection(data, self.sender, state)
                framed = isinstance(outer, CopyData) and state not in PLAIN_COPY
                data = outer.data if isinstance(outer, CopyData) and framed else b""
            if framed:
                frame = parse_frame(data, **options)
                data = frame.data if isinstance(frame, XLogData) else b""
        except DecodeError:
            return b""
        return data

    def check_messages(self, source: str) -> None:
        """Raise a usage error for anything else than messages, of which ``source`` consists."""
        for option, given in (("--frame", self.frame), ("--sender", self.sender is not None)):
            if given:
                raise click.UsageError(f"{option} needs hexadecimal digits: {source}.")


@dataclass(frozen=True, slots=True)
class _ChosenMessage:
    """The message that the command line selects, and how to read it."""

    index: int
    seq: int | None
    kind: _Kind
    given: Mapping[str, Any]
    """Options of START_REPLICATION."""
    states: Mapping[str, bool]
    """The stream states of the message, as far as they were given."""

    def options(self, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the options of the layouts; inside a stream they default to the first version with streams."""
        return choose(self.given, {**first_options_in(self.states), **(known or {})})

    def all(self, options: Mapping[str, Any], states: Mapping[str, bool]) -> dict[str, Any]:
        """Return the keywords of parse: the options, and the states given on the command line or else known."""
        return {**options, **states, **self.states}


@dataclass(frozen=True, slots=True)
class _Subject:
    """One payload (or frame), its location, and how to read it."""

    payload: bytes
    kind: _Kind
    options: Mapping[str, Any]
    """The keywords of parse."""
    location: str = ""
    before: Context = field(default_factory=Context)


def _find(source: str, selection: _ChosenMessage) -> _Subject:
    """Return the selected message; raise PgoutputError, or a usage error for options that do not fit SOURCE."""
    path = _path(source)
    if "://" in source or (path is not None and path.is_dir()):
        return _in_change_log(source, selection)
    if selection.seq is not None:
        raise click.UsageError("--seq needs a change log, which is a directory: use --index for a file.")
    if source == "-":
        return _in_file(io.BytesIO(standard_input().read()), "standard input", selection)
    if path is None:
        return _in_argument(source, selection)
    with path.open("rb") as file:
        return _in_file(file, source, selection)


def _path(source: str) -> Path | None:
    """Return the path of an existing file or directory; None for digits, which may be too long for a path."""
    try:
        return Path(source) if source not in ("-", "") and Path(source).exists() else None
    except (OSError, ValueError):
        return None


def _in_argument(source: str, selection: _ChosenMessage) -> _Subject:
    if not _DIGITS.fullmatch(source):
        raise click.UsageError(f"{source!r:.200} is neither a file, nor a directory, nor hexadecimal digits.")
    options = selection.all(selection.options(), StreamState().parameters)
    return _Subject(payload_of(source.encode("ascii"), "SOURCE"), selection.kind, options)


def _in_file(file: IO[bytes], name: str, selection: _ChosenMessage) -> _Subject:
    source = ByteSource(file, name)
    first = source.peek().lstrip().partition(b"\n")[0]
    if first.startswith(b"#") or _DIGITS.fullmatch(first.decode("latin-1")):
        return _in_lines(source, selection)
    selection.kind.check_messages("pg_recvlogical writes messages, not frames")
    return _in_recvlogical(source, file, selection)


def _in_lines(source: ByteSource, selection: _ChosenMessage) -> _Subject:
    before, count = Context(), 0
    for count, line in enumerate(hex_lines(source), 1):
        options = selection.options(line.known)
        if count == selection.index:
            keywords = selection.all(options, before.state.parameters)
            return _Subject(line.payload, selection.kind, keywords, line.location, before)
        before.read(selection.kind.unwrap(line.payload, options), options)
    raise PgoutputError(f"{source.name}: no message {selection.index}: the file has {counted(count, 'message')}")


def _in_recvlogical(source: ByteSource, file: IO[bytes], selection: _ChosenMessage) -> _Subject:
    options = selection.options()
    before, count, end = Context(), 0, 0
    location = f"{source.name}: message {selection.index}"
    try:
        for decoded in read_recvlogical(source, options, _ignore):
            count += 1
            if count == selection.index:
                keywords = {**decoded.options, **selection.states}
                return _Subject(decoded.payload, selection.kind, keywords, location, before)
            before.take(decoded.message)
            end = decoded.location["offset"] + len(decoded.payload) + 1
    except PgoutputError:
        payload = _rest(file, end)
        if count + 1 != selection.index or not payload:
            raise
        keywords = selection.all(options, before.state.parameters)
        return _Subject(payload, selection.kind, keywords, location, before)
    raise PgoutputError(f"{source.name}: no message {selection.index}: the file has {counted(count, 'message')}")


def _ignore(text: str) -> None:
    """Ignore warnings about reconnects: only the selected message matters."""


def _rest(file: IO[bytes], start: int) -> bytes:
    """Return the bytes of an invalid message up to the end of the file, since its length is unknown."""
    file.seek(start)
    return file.read().lstrip(b"\n")


def _in_change_log(source: str, selection: _ChosenMessage) -> _Subject:
    if selection.seq is None:
        raise click.UsageError("a change log needs --seq, the row number of the message.")
    selection.kind.check_messages("a change log stores messages, not frames")
    require("cli", "changelog")
    from pgoutput_construct.changelog import ChangeLog

    log = ChangeLog(source)
    entry = log.entry(selection.seq)
    segment = next(each for each in log.segments if each.name == entry.segment)
    options = selection.options(segment.options.layout())
    relations = LogRelations(log.index)
    relations.go_to(entry)
    location = f"{entry.segment}: seq {entry.seq}, WAL {entry.wal_start}, sent {entry.send_time}"
    keywords = selection.all(options, entry.states)
    return _Subject(entry.payload, selection.kind, keywords, location, Context(relations))
