"""The seeds of fuzzing: recordings of real servers, the golden vectors, and a message of each kind."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.stream import Session
from pgoutput_construct.wire import XLogData, build_frame
from pgoutput_construct.wire.connection_engine import Role
from pgoutput_construct.wire.options import LAYOUT_OPTIONS, STATE_PARAMETERS
from pgoutput_construct.wire.protocol import ParseOptions
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["RECORDINGS", "Recorded", "Seed", "connection_messages", "frames", "payloads", "recordings"]

_ROOT: Final = Path(__file__).parents[2]
RECORDINGS: Final = _ROOT / "tests" / "data" / "recordings"
_VECTORS: Final = _ROOT / "spec" / "vectors.jsonl"
_FRAME_VECTORS: Final = _ROOT / "spec" / "vectors-envelope.jsonl"
_CONNECTION_VECTORS: Final = _ROOT / "spec" / "vectors-connection.jsonl"


class Seed(NamedTuple):
    """A payload, and the options and stream state under which it was sent."""

    payload: bytes
    options: ParseOptions


class Recorded(NamedTuple):
    """A whole stream as a server sent it."""

    payloads: tuple[bytes, ...]
    options: dict[str, Any]
    """The options of its Session."""
    text: bytes
    """The file: a header with options, and a payload a line."""


@cache
def recordings() -> tuple[Recorded, ...]:
    """Return the stored recordings in the order of their names."""
    return tuple(map(_recorded, sorted(RECORDINGS.glob("*.txt"))))


def _recorded(path: Path) -> Recorded:
    text = path.read_bytes()
    header, *lines = text.splitlines()
    known = json.loads(header.lstrip(b"# "))
    options = {name: known[name] for name in LAYOUT_OPTIONS if name in known}
    return Recorded(tuple(bytes.fromhex(line.decode()) for line in lines), options, text)


@cache
def payloads() -> tuple[Seed, ...]:
    """Return the payloads of all recordings and vectors, those that must be refused too, each once."""
    return tuple(dict.fromkeys([*_of_recordings(), *_of_vectors()]))


def _of_recordings() -> Iterator[Seed]:
    for recorded in recordings():
        session = Session(**recorded.options)
        for payload in recorded.payloads:
            yield Seed(payload, ParseOptions(**recorded.options | session.state.parameters))
            try:
                session.parse(payload)
            except PgoutputError:  # what was cut off, and begins again
                session.follow(payload)


def _of_vectors() -> Iterator[Seed]:
    for vector in _vectors(_VECTORS):
        options: dict[str, Any] = {
            name: vector[name] for name in (*LAYOUT_OPTIONS, *STATE_PARAMETERS) if name in vector
        }
        yield Seed(bytes.fromhex(vector["hex"]), ParseOptions(**options))


def _vectors(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from (vector for line in lines if "hex" in (vector := json.loads(line)))


@cache
def frames() -> tuple[bytes, ...]:
    """Return frames: the vectors of the envelope, and some payloads in it."""
    carried = (XLogData(Lsn(7), Lsn(7), Timestamp(7), seed.payload) for seed in payloads()[::16])
    return (*(bytes.fromhex(vector["hex"]) for vector in _vectors(_FRAME_VECTORS)), *map(build_frame, carried))


@cache
def connection_messages() -> dict[tuple[str, Role], tuple[bytes, ...]]:
    """Return the vectors of connections, by the state and the sender."""
    found = dict[tuple[str, Role], list[bytes]]()
    for vector in _vectors(_CONNECTION_VECTORS):
        found.setdefault((vector["state"], vector["sender"]), []).append(bytes.fromhex(vector["hex"]))
    return {when: tuple(each) for when, each in found.items()}
