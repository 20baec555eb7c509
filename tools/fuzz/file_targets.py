"""Targets: the files that the command line reads; any content is read, or rejected with an error of ours."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final

from pgoutput_construct.cli._input import open_reading
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.stream import Session
from pgoutput_construct.wire import build
from pgoutput_construct.wire.json_lines import Decoded, format_line, parse_line
from pgoutput_construct.wire.options import STATE_PARAMETERS, combinations
from tools.fuzz.errors import Finding, same
from tools.fuzz.seeds import Recorded, recordings

__all__ = ["SEEDS", "inspect_file", "read_file", "read_lines"]

_OPTIONS: Final = tuple(
    dict.fromkeys(
        tuple((key, value) for key, value in each._asdict().items() if key not in STATE_PARAMETERS)
        for each in combinations()
    )
)
_PAYLOADS: Final = 24
"""Payloads of a seed: mutations of a short file reach more of what reads it."""
_MOST_INSPECTED: Final = 30


def read_file(data: bytes) -> None:
    """Read a file as decode does, of hexadecimal lines or of pg_recvlogical; the first byte says under which options.

    What is read of a file of pg_recvlogical stands in it, one message after the other.
    """
    if not data:
        return
    given, content = dict(_OPTIONS[data[0] % len(_OPTIONS)]), data[1:]
    path = _written(content)
    for form in ("auto", "recvlogical", "hex"):
        with suppress(PgoutputError), open_reading(str(path), form, given, _ignore, _ignore) as reading:
            for decoded in reading.messages:
                at = decoded.location.get("offset", -1)
                if at >= 0 and content[at : at + len(decoded.payload)] != decoded.payload:
                    raise Finding(f"the message at {at} differs from the bytes of the file")
                format_line(decoded)


def read_lines(data: bytes) -> None:
    """Read lines of JSON as build does; what is read is written and read again as it was."""
    for line in data.split(b"\n"):
        with suppress(PgoutputError):
            found = parse_line(line)
            again = parse_line(format_line(Decoded(found.message, b"", found.options)))
            same("a line written again", [repr((found.message, found.options)), repr((again.message, again.options))])
            build(found.message, **{"in_stream": False, **found.options})


def inspect_file(data: bytes) -> None:
    """Show a message of a file: the first byte says which one."""
    from click.testing import CliRunner

    from pgoutput_construct.cli.group import cli

    if not data:
        return
    arguments = ["inspect", str(_written(data[1:])), "--index", str(1 + data[0] % _MOST_INSPECTED)]
    result = CliRunner().invoke(cli, [*arguments, *(["--frame"] if data[0] > 0xF0 else [])])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code not in (0, 1, 2):
        raise Finding(f"exit status {result.exit_code}")


def _ignore(*_: object) -> None:
    """Ignore what is unusual."""


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fuzz-")


def _written(content: bytes) -> Path:
    path = Path(_directory().name) / "input"
    path.write_bytes(content)
    return path


def _number(recorded: Recorded) -> int:
    return next(n for n, each in enumerate(_OPTIONS) if dict(each) == recorded.options)


def _files() -> Iterator[bytes]:
    return (bytes([_number(recorded)]) + content for recorded in recordings() for content in _parts(recorded))


def _inspected() -> Iterator[bytes]:
    return (bytes([number % _MOST_INSPECTED]) + content[1:] for number, content in enumerate(_files()))


def _parts(recorded: Recorded) -> Iterator[bytes]:
    header, *lines = recorded.text.splitlines(keepends=True)
    for first in range(0, len(lines), _PAYLOADS):
        yield header + b"".join(lines[first : first + _PAYLOADS])
        yield b"".join(payload + b"\n" for payload in recorded.payloads[first : first + _PAYLOADS])


def _lines() -> Iterator[bytes]:
    return (content for recorded in recordings() for content in _json_lines(recorded))


def _json_lines(recorded: Recorded) -> Iterator[bytes]:
    """Yield JSON lines of a few messages each."""
    session, lines = Session(**recorded.options), list[bytes]()
    for payload in recorded.payloads:
        states = session.state.parameters
        with suppress(PgoutputError):
            lines.append(format_line(Decoded(session.parse(payload), payload, {**recorded.options, **states})))
    rest = iter(lines)
    while some := list(islice(rest, 4)):
        yield b"".join(some)


SEEDS: Final[Mapping[str, Callable[[], Iterable[bytes]]]] = {"file": _files, "lines": _lines, "inspect": _inspected}
"""The functions that return the seeds of each target."""
