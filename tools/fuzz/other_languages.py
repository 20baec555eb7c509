"""Mutated payloads through the codecs in Rust, Go and TypeScript: each decides, and finds, what Python does."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.wire import parse, parse_frame
from pgoutput_construct.wire.jsonable import to_json
from pgoutput_construct.wire.options import combinations
from tools.codecs import CODECS, answers, built, message_line, missing_tools
from tools.fuzz.mutate import mutated, pool
from tools.fuzz.seeds import frames, payloads

__all__ = ["LanguageReport", "run"]

_BATCH: Final = 20_000
_OPTIONS: Final = tuple(combinations())
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
        count: The least number of payloads.
        seed: It says which ones, together with their number.
        directory: Where the programs are built.
    """
    programs = dict[str, list[str]]()
    for name, codec in CODECS.items():
        if problem := missing_tools(codec):
            print(f"{problem}: skipped", file=sys.stderr)
            continue
        (directory / name).mkdir(parents=True, exist_ok=True)
        programs[name] = built(codec, directory / name)
    report, pools = LanguageReport(languages=[*programs]), (pool([each.payload for each in payloads()]), pool(frames()))
    begun = said = time.monotonic()
    for number in range(seed * _NEVER_REPEATED, seed * _NEVER_REPEATED + -(-count // _BATCH)):
        kind = number % (len(_OPTIONS) + 1)
        some = mutated(pools[kind == len(_OPTIONS)], _BATCH, number).to_pylist()
        _compare(report, programs, kind, some)
        if time.monotonic() - said > _EVERY_SECONDS:
            said = time.monotonic()
            print(f"{report.payloads:,} payloads, {report.payloads / (said - begun):,.0f} a second", file=sys.stderr)
    return report


def _compare(report: LanguageReport, programs: Mapping[str, list[str]], kind: int, some: Sequence[bytes]) -> None:
    line: Callable[[str], str] = "frame {}".format
    read: Callable[[bytes], Any] = parse_frame
    if kind < len(_OPTIONS):
        given = _OPTIONS[kind]._asdict()
        line, read = partial(message_line, given), partial(parse, **given)
    wanted = [_decided(read, payload) for payload in some]
    report.payloads += len(some)
    report.accepted += sum("message" in each for each in wanted)
    lines = [line(payload.hex()) for payload in some]
    for name, program in programs.items():
        for line, found, decided in zip(lines, answers(program, lines), wanted, strict=True):
            if not decided.items() <= found.items():
                report.problems.append(f"{name}: {line}: {found}, Python {decided}")


def _decided(read: Callable[[bytes], Any], payload: bytes) -> dict[str, Any]:
    """Return what Python reads, or where it refuses that."""
    try:
        return to_json(read(payload))
    except DecodeError as error:
        return {"path": error.path, "offset": error.offset}
