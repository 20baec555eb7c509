"""JSON lines: one message per line, with the options and the stream state that are needed to build it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pgoutput_construct.errors import EncodeError, PgoutputError
from pgoutput_construct.wire.jsonable import from_json, to_json
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.options import LAYOUT_OPTIONS, STATE_PARAMETERS
from pgoutput_construct.wire.protocol import OPTIONS

__all__ = ["BEFORE", "KEYS", "Decoded", "Line", "format_line", "parse_line"]

BEFORE: Final = "before"
"""The key of the comments and empty lines before a message."""

_OPTIONS: Final[Mapping[str, type]] = {
    **dict.fromkeys(STATE_PARAMETERS, bool),
    **{name: type(OPTIONS[name].default) for name in LAYOUT_OPTIONS},
}
_LOCATION: Final = ("line", "offset", "seq", "wal_start", "send_time", "stream_xid")
KEYS: Final = frozenset({*_OPTIONS, *_LOCATION, BEFORE})
"""The keys of a line that are not the message's; no field of a message may have such a name."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A message, its location in the input, and the options under which it was read."""

    message: PgoutputMessage
    payload: bytes
    options: Mapping[str, Any]
    """The options and the stream state under which it was read: the keywords of parse."""
    location: Mapping[str, Any] = field(default_factory=dict)


class Line(NamedTuple):
    """A parsed line: the message, its options, and the comments before it."""

    message: PgoutputMessage
    options: Mapping[str, Any]
    before: list[str]


def format_line(decoded: Decoded) -> bytes:
    """Return a message as one line of JSON in ASCII."""
    return json.dumps({**to_json(decoded.message), **decoded.options, **decoded.location}).encode("ascii") + b"\n"


def parse_line(text: bytes) -> Line:
    """Parse a line in the form of ``format_line``; raise EncodeError."""
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
        raise EncodeError(f"the key {twice!r:.80} occurs twice")
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
