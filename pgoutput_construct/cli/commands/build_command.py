"""``pgoutput build``: builds messages from JSON lines, the inverse of ``pgoutput decode``."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import UnsupportedOperation
from pathlib import Path
from typing import IO, Any, Final

import click

from pgoutput_construct.cli._input import ByteSource, open_source, standard_input, standard_output
from pgoutput_construct.cli._options import choose, layout_options
from pgoutput_construct.cli._progress import with_progress
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.stream.state import CHANGES_SCOPE, StreamState
from pgoutput_construct.wire import build
from pgoutput_construct.wire.json_lines import parse_line
from pgoutput_construct.wire.options import STATE_PARAMETERS

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
    help="Hexadecimal digits, one message per line; bytes with a newline after each message; or the bytes alone.",
)
@click.option("--output", "-o", default="-", metavar="FILE", help="The output file.  [default: standard output]")
@layout_options("as in each line")
def build_command(file: str, form: str, output: str, given: Mapping[str, Any]) -> None:
    """Build the messages in JSON lines, the inverse of pgoutput decode.

    FILE has one message per line. Without FILE, or with -, standard input is read. Whether a message stands inside a
    stream is taken from its line (in_stream), else from the messages before it. Building stops at the first invalid
    line with exit status 1; the messages before it have been written.

    \b
    Examples:
      pgoutput decode changes.hex | pgoutput build
      pgoutput decode changes.bin | pgoutput build --format recvlogical -o copy.bin
      echo '{"message": "StreamStart", "xid": 7, "first_segment": 1}' | pgoutput build --proto-version 2
    """
    write = _FORMATS[form]
    with _open_output(output, file) as target, open_source(file, target.flush) as source:
        try:
            payloads = _build_lines(source, given)
            for payload, before in with_progress(payloads, source.done):
                target.write(write(payload, before))
        finally:
            target.flush()


@contextmanager
def _open_output(path: str, source: str) -> Iterator[IO[bytes]]:
    """Open the output, which truncates it, after checking that the input exists and is another file."""
    given = _status(source)
    if path == "-":
        yield standard_output()
        return
    if given is not None and Path(path).is_file() and os.path.samestat(given, Path(path).stat()):
        raise PgoutputError(f"{path}: the output would overwrite its own input: choose another file")
    with Path(path).open("wb") as file:
        yield file


def _status(source: str) -> os.stat_result | None:
    """Return the stat result of the input; None for a standard input without a file descriptor."""
    if source != "-":
        return Path(source).stat()
    try:
        return os.fstat(standard_input().fileno())
    except UnsupportedOperation:
        return None


def _build_lines(source: ByteSource, given: Mapping[str, Any]) -> Iterator[tuple[bytes, list[str]]]:
    state, said = StreamState(), dict[str, bool]()
    for number, text in enumerate(source.lines(), 1):
        if not text.strip():
            continue
        try:
            line = parse_line(text)
            said |= {name: line.options[name] for name in STATE_PARAMETERS if name in line.options}
            payload = build(line.message, **{**choose(given, line.options), **state.parameters, **said})
        except PgoutputError as error:
            raise PgoutputError(f"{source.name}: line {number}: {error}") from error
        yield payload, line.before
        if type(line.message) in CHANGES_SCOPE:
            state.follow(line.message)
            said = {}
