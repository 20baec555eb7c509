"""Mutated payloads through the codecs in Rust, Go and TypeScript: each decides, and finds, what Python does.

Of a refusal the path and the offset are compared: errors in Python have no word for the reason, as golden vectors do.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.wire import parse, parse_frame
from pgoutput_construct.wire.connection_engine import parse_connection
from pgoutput_construct.wire.connection_messages import ConnectionMessage
from pgoutput_construct.wire.frames import Frame
from pgoutput_construct.wire.jsonable import JsonFormat
from pgoutput_construct.wire.messages import VALUES, PgoutputMessage
from pgoutput_construct.wire.options import combinations
from tools.codecs import CODECS, CodecError, answers, built, is_alike, message_line, missing_tools
from tools.fuzz.mutate import Pool, mutated, pool
from tools.fuzz.seeds import connection_messages, frames, payloads

__all__ = ["LanguageReport", "run"]

_FORMAT: Final = JsonFormat[Any](
    (cls for union in (PgoutputMessage, Frame, ConnectionMessage) for cls in get_args(union)), VALUES
)
"""The JSON of them all."""
_BATCH: Final = 20_000
_NEVER_REPEATED: Final = 1 << 40
_SHOWN: Final = 10
_EVERY_SECONDS: Final = 10


@dataclass
class LanguageReport:
    """What was compared."""

    payloads: int = 0
    accepted: int = 0
    """How many are messages."""
    languages: Sequence[str] = ()
    problems: list[str] = field(default_factory=list)
    """Payloads on which a language and Python disagree."""

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        yield f"{self.payloads:,} payloads in {', '.join(self.languages)}: Python reads {self.accepted:,} of them"
        yield from self.problems[:_SHOWN]
        yield f"{len(self.problems)} disagreements with Python"


def run(count: int, seed: int, directory: Path) -> LanguageReport:
    """Compare payloads, mutated by a seed, in every language whose tools are there.

    Args:
        count: The least number of payloads, from 1 on.
        seed: It says which ones, together with their number.
        directory: Where the programs are built.

    Raises:
        CodecError: No language has its tools, or a program does not compile.
    """
    programs = dict[str, list[str]]()
    for name, codec in CODECS.items():
        if problem := missing_tools(codec):
            print(f"{problem}: skipped", file=sys.stderr)
            continue
        (directory / name).mkdir(parents=True, exist_ok=True)
        programs[name] = built(codec, directory / name)
    if not programs:
        raise CodecError(f"no language has the tools of its codec: {', '.join(CODECS)}")
    report, subjects = LanguageReport(languages=[*programs]), [*_subjects()]
    begun = said = time.monotonic()
    size = min(_BATCH, -(-count // len(subjects)))
    for number in range(seed * _NEVER_REPEATED, seed * _NEVER_REPEATED + -(-count // size)):
        seeds, line, read = subjects[number % len(subjects)]
        some = mutated(seeds, size, number).to_pylist()
        _compare(report, programs, [line(payload.hex()) for payload in some], [_decided(read, each) for each in some])
        if time.monotonic() - said > _EVERY_SECONDS:
            said = time.monotonic()
            print(f"{report.payloads:,} payloads, {report.payloads / (said - begun):,.0f} a second", file=sys.stderr)
    return report


def _subjects() -> Iterator[tuple[Pool, Callable[[str], str], Callable[[bytes], Any]]]:
    """Yield what is mutated, how programs receive it, and what reads it: messages by options, frames, states."""
    messages = pool([each.payload for each in payloads()])
    for options in combinations():
        given = options._asdict()
        yield messages, partial(message_line, given), partial(parse, **given)
    yield pool(frames()), "frame {}".format, parse_frame
    for (state, sender), seeds in connection_messages().items():
        line = f"connection {sender} {state} {{}}".format
        yield pool(seeds), line, partial(parse_connection, sender=sender, state=state)


def _compare(
    report: LanguageReport, programs: Mapping[str, list[str]], lines: Sequence[str], wanted: Sequence[Mapping[str, Any]]
) -> None:
    report.payloads += len(lines)
    report.accepted += sum("message" in each for each in wanted)
    for name, program in programs.items():
        for line, found, decided in zip(lines, answers(program, lines), wanted, strict=True):
            compared = {key: found[key] for key in decided} if "refuse" in found and "path" in decided else found
            if not is_alike(compared, decided):
                report.problems.append(f"{name}: {line}: {found}, Python {decided}")


def _decided(read: Callable[[bytes], Any], payload: bytes) -> dict[str, Any]:
    """Return what Python reads, or where it refuses that."""
    try:
        return _FORMAT.to_json(read(payload))
    except DecodeError as error:
        return {"path": error.path, "offset": error.offset}
