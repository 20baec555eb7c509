"""``pgoutput decode``: prints messages as JSON lines."""

from collections.abc import Mapping
from typing import Any

import click

from pgoutput_construct.cli._input import FORMATS, open_reading, standard_output
from pgoutput_construct.cli._options import layout_options
from pgoutput_construct.cli._printing import say
from pgoutput_construct.cli._progress import with_progress
from pgoutput_construct.wire.json_lines import format_line

__all__ = ["decode_command"]


def _warn(text: str) -> None:
    say(f"Warning: {text}", err=True)


@click.command("decode")
@click.argument("source", default="-")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="auto",
    show_default=True,
    help="Format of SOURCE: a change log (a directory), a file of pg_recvlogical, or lines of hexadecimal digits.",
)
@layout_options("as in SOURCE")
def decode_command(source: str, form: str, given: Mapping[str, Any]) -> None:
    """Print the messages in SOURCE as JSON, one per line.

    SOURCE is a change log (a directory, or a URL such as s3://bucket/folder), a file written by pg_recvlogical, or
    lines of hexadecimal digits, one message per line, as psql prints the output of
    pg_logical_slot_peek_binary_changes(). Without SOURCE, or with -, standard input is read. A change log stores the
    options of its connection, and lines of hexadecimal digits can begin with a comment that names them (the last
    example). Otherwise give the options that the connection had.

    Each line has the message's fields; the options and the stream state (in_stream), which pgoutput build needs; and
    the message's position in SOURCE: seq, wal_start, send_time and stream_xid in a change log, offset or line in a
    file. Decoding stops at the first invalid message with exit status 1; the messages before it have been printed.

    \b
    Examples:
      pgoutput decode changelog/ | head
      pgoutput decode --proto-version 4 --streaming parallel changes.bin
      pg_recvlogical -d shop --slot s --start -o proto_version=1 -o publication_names=p -f - | pgoutput decode
      psql -Atc "SELECT data FROM pg_logical_slot_peek_binary_changes('s', NULL, NULL,
         'proto_version', '1', 'publication_names', 'p')" | pgoutput decode
      echo 530000031d01 | pgoutput decode --proto-version 2 --streaming on
      printf '# {"proto_version": 2, "streaming": "on"}\\n530000031d01\\n' | pgoutput decode
    """
    output = standard_output()
    with open_reading(source, form, given, _warn, output.flush) as reading:
        try:
            for decoded in with_progress(reading.messages, reading.done):
                output.write(format_line(decoded))
        finally:
            output.flush()
