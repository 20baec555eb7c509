"""``pgoutput inspect``: the bytes of one message, field by field."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from pgoutput_construct.cli.inspect_names import labels
from pgoutput_construct.cli.inspect_rows import Detail, Row, RowKind, dump
from pgoutput_construct.cli.inspect_source import Asked, Subject, find
from pgoutput_construct.cli.options import as_arguments, layout_options, state_options
from pgoutput_construct.cli.words import counted
from pgoutput_construct.errors import DecodeError, PgoutputError
from pgoutput_construct.wire import parse, parse_frame
from pgoutput_construct.wire.frames import XLogData
from pgoutput_construct.wire.options import LAYOUT_OPTIONS, STATE_PARAMETERS, noun
from pgoutput_construct.wire.trace import Trace, trace, trace_frame

__all__ = ["inspect_command"]


@click.command("inspect")
@click.argument("source", default="-")
@click.option(
    "--index", type=click.IntRange(min=1), default=1, show_default=True, help="Number of the message in a file."
)
@click.option("--seq", type=click.IntRange(min=0), help="Position (seq) of the message in a change log.")
@click.option("--frame", is_flag=True, help="SOURCE is a frame, as one CopyData message carries it.")
@click.option("--all", "everything", is_flag=True, help="Show wide rows and long values in full.")
@layout_options("as SOURCE says")
@state_options
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Save the output as an SVG image.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Save the output as an HTML page.")
def inspect_command(
    source: str,
    *,
    index: int,
    seq: int | None,
    frame: bool,
    everything: bool,
    given: Mapping[str, Any],
    states: Mapping[str, bool],
    svg: Path | None,
    html: Path | None,
) -> None:
    """Show the bytes of one message, field by field.

    For each field its offset, type, value and meaning are shown. SOURCE is hexadecimal digits; a file with lines of
    them, or written by pg_recvlogical, from which --index chooses a message; or a change log (a directory), from
    which --seq chooses one. Without SOURCE, or with -, standard input is read. Tables and columns are named where a
    Relation message before this one is known.

    An invalid message is shown up to the error, and the exit status is 1.

    \b
    Examples:
      pgoutput inspect 490000400f4e00027400000001316e
      pgoutput inspect --in-stream 490000031d000040074e0001740000000161
      pgoutput inspect changes.bin --index 3
      pgoutput inspect changelog/ --seq 120 --svg change.svg
    """
    subject = find(source, Asked(index, seq, frame, given, states))
    traces = list(_traces(subject, frame))
    _show(subject, traces, everything, svg, html)
    _check(subject, frame)


def _traces(subject: Subject, frame: bool) -> Iterator[tuple[Trace, int]]:
    """Yield the frame and the message in it, or the message alone, each with the offset of its first byte."""
    if not frame:
        yield trace(subject.payload, **subject.options), 0
        return
    outer = trace_frame(subject.payload, **subject.options)
    yield outer, 0
    if outer.name == XLogData.__name__ and outer.fault is None:
        data = outer.spans[-1]
        yield trace(data.value, **subject.options), data.start


def _show(
    subject: Subject, traces: list[tuple[Trace, int]], everything: bool, svg: Path | None, html: Path | None
) -> None:
    from pgoutput_construct.cli.inspect_picture import Picture

    picture = Picture(
        _title(subject, [each for each, _ in traces]), list(_rows(subject, traces, everything)), everything
    )
    picture.print()
    if svg is not None:
        svg.write_text(picture.svg(), "utf-8")
    if html is not None:
        html.write_text(picture.html(), "utf-8")


def _rows(subject: Subject, traces: list[tuple[Trace, int]], everything: bool) -> Iterator[Row]:
    for depth, (each, base) in enumerate(traces):
        inner = depth + 1 < len(traces)
        names = labels(each, subject.before.relations)
        for row in dump(each, Detail(everything, names), base, depth):
            is_payload = inner and row.start == traces[depth + 1][1]
            yield replace(row, kind=RowKind.GROUP, data=b"", value="") if is_payload else row


def _title(subject: Subject, traces: list[Trace]) -> str:
    names = [_name(each) for each in traces]
    options = ", ".join(f"{name} {subject.options[name]}" for name in LAYOUT_OPTIONS)
    states = [_state(name, subject.options[name]) for name in STATE_PARAMETERS]
    size = counted(len(subject.payload), "byte")
    parts = [" with ".join(names), size, ", ".join([options, *states]), subject.place]
    return " · ".join(part for part in parts if part)


def _state(name: str, on: bool) -> str:
    """Say where in the stream a message is read: ``inside a stream`` for ``in_stream``."""
    return f"{'inside' if on else 'outside'} a {noun(name)}"


def _name(each: Trace) -> str:
    return "no message" if each.name is None else each.fields[each.name].notation


def _check(subject: Subject, frame: bool) -> None:
    """Raise PgoutputError for what parse refuses: it may know the likely mistake, and which messages never come."""
    try:
        outer = parse_frame(subject.payload, **subject.options) if frame else None
        if outer is None or isinstance(outer, XLogData):
            parse(subject.payload if outer is None else outer.data, **subject.options)
    except DecodeError as error:
        place = f"{subject.place}: " if subject.place else ""
        raise PgoutputError(f"{place}{error} (read with {as_arguments(subject.options)})") from error
