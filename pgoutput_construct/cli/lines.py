"""The JSON lines: one message a line, with what is needed to build it again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pgoutput_construct.errors import EncodeError, PgoutputError
from pgoutput_construct.stream import Session
from pgoutput_construct.wire.jsonable import from_json, to_json
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.options import Streaming

__all__ = ["BEFORE", "KEYS", "Decoded", "Given", "Line", "format_line", "parse_line"]

BEFORE: Final = "before"
"""The key of lines of the input that stood before a message and are none: comments, and empty ones."""

_OPTIONS: Final[Mapping[str, type]] = {"in_stream": bool, "proto_version": int, "streaming": str}
_PLACES: Final = ("line", "offset", "seq", "wal_start", "send_time", "stream_xid")
KEYS: Final = frozenset({*_OPTIONS, *_PLACES, BEFORE})
"""The keys of a line that are not the message's; no field of a message may have such a name."""


class Given(NamedTuple):
    """Options of the command line, None where they were not given."""

    proto_version: int | None = None
    streaming: str | None = None

    def over(self, known: Mapping[str, Any]) -> tuple[int, Streaming]:
        """Return proto_version and streaming: as given, else as the input says, else PostgreSQL's defaults.

        Raises PgoutputError for options that PostgreSQL would refuse.
        """
        said = {key: value for key, value in known.items() if key in self._fields}
        chosen: dict[str, Any] = {"proto_version": 1, "streaming": "off"} | said
        chosen |= {key: value for key, value in self._asdict().items() if value is not None}
        if not isinstance(chosen["streaming"], str):
            raise PgoutputError(f"streaming must be 'off', 'on' or 'parallel', not {chosen['streaming']!r:.80}")
        session = Session(**chosen)
        return session.proto_version, session.streaming


@dataclass(frozen=True, slots=True)
class Decoded:
    """A message, and where and how it was read."""

    message: PgoutputMessage
    proto_version: int
    streaming: str
    in_stream: bool
    place: Mapping[str, Any] = field(default_factory=dict)


class Line(NamedTuple):
    """What a line says: the message, the options it names, and the lines before it."""

    message: PgoutputMessage
    options: Mapping[str, Any]
    before: list[str]


def format_line(decoded: Decoded) -> bytes:
    """Return a message as one line of JSON in ASCII."""
    options = {key: getattr(decoded, key) for key in _OPTIONS}
    return json.dumps({**to_json(decoded.message), **options, **decoded.place}).encode("ascii") + b"\n"


def parse_line(text: bytes) -> Line:
    """Read what format_line wrote, or someone in its form; raise PgoutputError (EncodeError in the message)."""
    value = _load(text)
    if not isinstance(value, dict):
        raise EncodeError(f"a line must be an object, not {value!r:.80}")
    options = {key: _option(key, value[key], kind) for key, kind in _OPTIONS.items() if key in value}
    before = _before(value.get(BEFORE, []))
    return Line(from_json({key: item for key, item in value.items() if key not in KEYS}), options, before)


def _load(text: bytes) -> Any:
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_object)
    except RecursionError:
        raise EncodeError("the JSON is nested too deeply") from None
    except PgoutputError:
        raise
    except ValueError as error:
        raise EncodeError(f"not a line of JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise EncodeError(f"the key {twice!r:.80} is there twice: write it once")
    return value


def _option(key: str, value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise EncodeError(f"{key!r} must be of type {kind.__name__}, not {value!r:.80}")
    return value


def _before(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(line, str) and _is_before(line) for line in value):
        raise EncodeError(f"{BEFORE!r} must be an array of comments ('# ...') or empty strings, not {value!r:.80}")
    return value


def _is_before(line: str) -> bool:
    try:
        line.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return "\n" not in line and line.lstrip()[:1] in ("", "#")
