"""``pgoutput inspect``: the bytes of one message, field by field."""

from collections.abc import Iterator
from pathlib import Path

import click

from pgoutput_construct.cli.inspect_names import labels
from pgoutput_construct.cli.inspect_rows import Detail, Row, RowKind, dump
from pgoutput_construct.cli.inspect_source import Asked, Subject, find
from pgoutput_construct.cli.lines import Given
from pgoutput_construct.errors import DecodeError, PgoutputError
from pgoutput_construct.wire.frames import XLogData
from pgoutput_construct.wire.protocol import PROTOCOL_VERSIONS
from pgoutput_construct.wire.trace import Trace, trace, trace_frame

__all__ = ["inspect_command"]


@click.command("inspect")
@click.argument("source", default="-")
@click.option("--index", type=click.IntRange(min=1), default=1, show_default=True, help="Which message of a file.")
@click.option("--seq", type=click.IntRange(min=0), help="Which message of a change log.")
@click.option("--frame", is_flag=True, help="The digits are a frame, as one CopyData of a connection carries it.")
@click.option("--all", "everything", is_flag=True, help="Leave nothing out of wide rows and long values.")
@click.option(
    "--proto-version",
    type=click.IntRange(min(PROTOCOL_VERSIONS), max(PROTOCOL_VERSIONS)),
    help="The option proto_version of START_REPLICATION.  [default: as SOURCE says, else 1]",
)
@click.option(
    "--streaming",
    type=click.Choice(["off", "on", "parallel"]),
    help="The option streaming of START_REPLICATION.  [default: as SOURCE says, else off]",
)
@click.option(
    "--in-stream/--outside-stream",
    default=None,
    help="Whether it stands between Stream Start and Stream Stop.  [default: as the messages before it say]",
)
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Save the picture as an SVG image.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Save the picture as a page.")
def inspect_command(
    source: str,
    *,
    index: int,
    seq: int | None,
    frame: bool,
    everything: bool,
    proto_version: int | None,
    streaming: str | None,
    in_stream: bool | None,
    svg: Path | None,
    html: Path | None,
) -> None:
    """Show the bytes of one message, field by field.

    Each field has its offset, type, value and meaning. SOURCE is hexadecimal digits; or a file with lines of them,
    or of pg_recvlogical, of which --index chooses a message; or a change log (a directory), of which --seq chooses
    one. Without SOURCE, or with -, standard input is read. Where a Relation before the message is known, tables and
    columns have their names.

    A message that is not valid is shown up to the fault, with status 1.

    \b
    Examples:
      pgoutput inspect 490000400f4e00027400000001316e
      pgoutput inspect --in-stream 490000031d000040074e0001740000000161
      pgoutput inspect changes.bin --index 3
      pgoutput inspect changelog/ --seq 120 --svg change.svg
    """
    asked = Asked(index, seq, frame, in_stream, Given(proto_version, streaming))
    subject = find(source, asked)
    traces = list(_traces(subject, frame))
    _show(subject, traces, everything, svg, html)
    for each, _ in traces:
        if each.fault is not None:
            raise _explained(subject, each.fault.error) from each.fault.error


def _traces(subject: Subject, frame: bool) -> Iterator[tuple[Trace, int]]:
    """Yield the frame and the message in it, or the message alone, each with the offset of its first byte."""
    options = subject.proto_version, subject.streaming, subject.in_stream
    if not frame:
        yield trace(subject.payload, *options), 0
        return
    outer = trace_frame(subject.payload)
    yield outer, 0
    if outer.name == XLogData.__name__ and outer.fault is None:
        data = outer.pieces[-1]
        yield trace(data.value, *options), data.start


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
            yield (
                Row(RowKind.GROUP, row.start, b"", row.depth, row.name, row.type, "", row.meaning)
                if is_payload
                else row
            )


def _title(subject: Subject, traces: list[Trace]) -> str:
    names = [_name(each) for each in traces]
    where = "inside a stream" if subject.in_stream else "outside a stream"
    how = f"proto_version {subject.proto_version}, streaming {subject.streaming}, {where}"
    size = len(subject.payload)
    parts = [" with ".join(names), f"{size} byte{'s' * (size != 1)}", how, subject.place]
    return " · ".join(part for part in parts if part)


def _name(each: Trace) -> str:
    return "no message" if each.name is None else each.fields[each.name].notation


def _explained(subject: Subject, error: DecodeError) -> PgoutputError:
    place = f"{subject.place}: " if subject.place else ""
    asked = f"--proto-version {subject.proto_version} --streaming {subject.streaming}"
    inside = " --in-stream" if subject.in_stream else ""
    return PgoutputError(f"{place}{error} (read with {asked}{inside})")
