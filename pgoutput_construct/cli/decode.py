"""``pgoutput decode``: messages as JSON lines."""

import click

from pgoutput_construct.cli.lines import Given, format_line
from pgoutput_construct.cli.progress import with_progress
from pgoutput_construct.cli.readers import FORMATS, open_reading
from pgoutput_construct.cli.source import standard_output
from pgoutput_construct.wire.protocol import PROTOCOL_VERSIONS

__all__ = ["decode_command"]


def _warn(text: str) -> None:
    click.echo(f"Warning: {text}", err=True)


@click.command("decode")
@click.argument("source", default="-")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="auto",
    show_default=True,
    help="What SOURCE is: a directory with a change log, a file of pg_recvlogical, or lines of hexadecimal digits.",
)
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
def decode_command(source: str, form: str, proto_version: int | None, streaming: str | None) -> None:
    """Print the messages in SOURCE as JSON, one a line.

    SOURCE is a change log (a directory), a file of pg_recvlogical, or lines of hexadecimal digits, one message a
    line, as psql prints what pg_logical_slot_peek_binary_changes() returns. Without SOURCE, or with -, standard input
    is read. Change logs know the options of their connection; so do hexadecimal lines whose first line is
    # {"proto_version": 4, "streaming": "parallel"}. For the others they must be given as the connection had them.

    Each line has the message's fields and, to build it again, in_stream, proto_version and streaming; and its place
    in SOURCE: seq, wal_start, send_time and stream_xid in a change log, offset or line in a file. The first message
    that cannot be read ends the work with status 1; those before it have been printed.

    \b
    Examples:
      pgoutput decode changelog/ | head
      pgoutput decode --proto-version 4 --streaming parallel changes.bin
      pg_recvlogical -d shop --slot s --start -o proto_version=1 -o publication_names=p -f - | pgoutput decode
      psql -Atc "SELECT data FROM pg_logical_slot_peek_binary_changes('s', NULL, NULL,
         'proto_version', '1', 'publication_names', 'p')" | pgoutput decode
      echo 530000031d01 | pgoutput decode --proto-version 2 --streaming on
    """
    output = standard_output()
    with open_reading(source, form, Given(proto_version, streaming), _warn, output.flush) as reading:
        try:
            for decoded in with_progress(reading.messages, reading.done, "messages"):
                output.write(format_line(decoded))
        finally:
            output.flush()
