"""``pgoutput build``: JSON lines back to bytes."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import UnsupportedOperation
from pathlib import Path
from typing import IO, Final

import click

from pgoutput_construct.cli.lines import Given, parse_line
from pgoutput_construct.cli.progress import with_progress
from pgoutput_construct.cli.source import ByteSource, open_source, standard_input, standard_output
from pgoutput_construct.cli.state import in_stream_after
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire import build
from pgoutput_construct.wire.protocol import PROTOCOL_VERSIONS

__all__ = ["build_command"]


def _as_hex(payload: bytes, before: Iterable[str]) -> bytes:
    lines = [line.encode("utf-8", "surrogateescape") for line in before]
    return b"".join(line + b"\n" for line in [*lines, payload.hex().encode("ascii")])


def _as_recvlogical(payload: bytes, before: Iterable[str]) -> bytes:
    return b"\n" * sum(not line for line in before) + payload + b"\n"


def _as_raw(payload: bytes, before: Iterable[str]) -> bytes:
    return payload


_FORMATS: Final[Mapping[str, Callable[[bytes, Iterable[str]], bytes]]] = {
    "hex": _as_hex,
    "recvlogical": _as_recvlogical,
    "raw": _as_raw,
}


@click.command("build")
@click.argument("file", default="-")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_FORMATS)),
    default="hex",
    show_default=True,
    help="Hexadecimal digits, one message a line; bytes with a newline after each message; or nothing but the bytes.",
)
@click.option("--output", "-o", default="-", metavar="FILE", help="Where to write.  [default: standard output]")
@click.option(
    "--proto-version",
    type=click.IntRange(min(PROTOCOL_VERSIONS), max(PROTOCOL_VERSIONS)),
    help="Build for this protocol version.  [default: as each line says, else 1]",
)
@click.option(
    "--streaming",
    type=click.Choice(["off", "on", "parallel"]),
    help="Build for this option streaming.  [default: as each line says, else off]",
)
def build_command(file: str, form: str, output: str, proto_version: int | None, streaming: str | None) -> None:
    """Build the messages in JSON lines, the inverse of pgoutput decode.

    FILE has one message a line. Without FILE, or with -, standard input is read. Whether a message stands inside a
    stream is what its line says (in_stream), else what the messages before it say. A line that is wrong ends the
    work with status 1; what was built before it has been written.

    \b
    Examples:
      pgoutput decode changes.hex | pgoutput build
      pgoutput decode changes.bin | pgoutput build --format recvlogical -o copy.bin
      echo '{"message": "StreamStart", "xid": 7, "first_segment": 1}' | pgoutput build --proto-version 2
    """
    write = _FORMATS[form]
    with _open_output(output, file) as target, open_source(file, target.flush) as source:
        try:
            payloads = _build_lines(source, Given(proto_version, streaming))
            for payload, before in with_progress(payloads, source.done, "messages"):
                target.write(write(payload, before))
        finally:
            target.flush()


@contextmanager
def _open_output(path: str, source: str) -> Iterator[IO[bytes]]:
    """Open what is written to, which empties a file that is there: only once the input is there, and another one."""
    given = _status(source)
    if path == "-":
        yield standard_output()
        return
    if given is not None and Path(path).is_file() and os.path.samestat(given, Path(path).stat()):
        raise PgoutputError(f"{path}: the output would replace its own input: name another file")
    with Path(path).open("wb") as file:
        yield file


def _status(source: str) -> os.stat_result | None:
    """Return what the system says of the input; None for a standard input that is none of the system's."""
    if source != "-":
        return Path(source).stat()
    try:
        return os.fstat(standard_input().fileno())
    except UnsupportedOperation:
        return None


def _build_lines(source: ByteSource, given: Given) -> Iterator[tuple[bytes, list[str]]]:
    in_stream = False
    for number, text in enumerate(source.lines(), 1):
        if not text.strip():
            continue
        try:
            line = parse_line(text)
            in_stream = line.options.get("in_stream", in_stream)
            payload = build(line.message, *given.over(line.options), in_stream)
        except PgoutputError as error:
            raise PgoutputError(f"{source.name}: line {number}: {error}") from error
        yield payload, line.before
        in_stream = in_stream_after(line.message, in_stream)
