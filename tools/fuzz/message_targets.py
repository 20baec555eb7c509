"""Targets: a message, a frame, a connection message, and a stream; each engine compared with the others."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from pgoutput_construct.columnar import BatchDecoder, DecodedBatch
from pgoutput_construct.columnar.envelope import Frames, split_frames
from pgoutput_construct.errors import DecodeError, EngineError, PgoutputError
from pgoutput_construct.testing.payloads import connection_messages
from pgoutput_construct.wire import build, build_frame, codec, connection_codec, frame_codec, parse, parse_frame
from pgoutput_construct.wire.codec_runtime import PAD, REJECTIONS, read_whole
from pgoutput_construct.wire.connection_definitions import DEFINITIONS
from pgoutput_construct.wire.connection_engine import build_connection, message_size, next_state, parse_connection
from pgoutput_construct.wire.connection_messages import FOLLOWING, ConnectionMessage
from pgoutput_construct.wire.engine import FRAMES, MESSAGES, parse_prefix, refused
from pgoutput_construct.wire.jsonable import from_json, to_json
from pgoutput_construct.wire.options import STATE_PARAMETERS, combinations
from pgoutput_construct.wire.options import options as checked
from pgoutput_construct.wire.reference import Reference
from pgoutput_construct.wire.trace import trace, trace_frame
from tools.fuzz.compare import compare_frames, compare_payloads
from tools.fuzz.errors import Finding, same
from tools.fuzz.seeds import frames, payloads, recordings

__all__ = ["SEEDS", "read_connection", "read_frame", "read_message", "read_stream"]

_OPTIONS: Final = tuple(combinations())
_PLACES: Final[tuple[tuple[str, Any], ...]] = tuple(
    (state, sender) for (state, sender), classes in FOLLOWING.items() if classes
)
_CONNECTION: Final = Reference({}, DEFINITIONS)
_REFUSED: Final = "refused"
_STREAM_PAYLOADS: Final = 60


def read_message(data: bytes) -> None:
    """Read a message by the codec, the definitions, the kernels, as a prefix and by inspect; write it back.

    The first byte says under which options.
    """
    if not data:
        return
    options, payload = _OPTIONS[data[0] % len(_OPTIONS)], data[1:]
    given = options._asdict()
    parameters = checked(**given).parameters()
    found = _outcome(lambda: read_whole(codec.READERS, payload, tuple(parameters.values())))
    same("codec and definitions", [repr(found), repr(_outcome(lambda: MESSAGES.parse(payload, parameters)))])
    _agree(compare_payloads(pa.array([payload], pa.large_binary()), options).problems)
    traced = trace(payload, **given)
    same("fault of inspect", [traced.fault is not None, _outcome(lambda: parse(payload, **given)) is _REFUSED])
    if found is _REFUSED or refused(payload[:1], checked(**given)):
        return
    same("built", [payload, build(found, **given), MESSAGES.build(found, parameters)])
    same("as JSON", [found, from_json(json.loads(json.dumps(to_json(found))))])
    same("size", [len(payload), parse_prefix(payload + b"\n", 0, **given)[1]])


def read_frame(data: bytes) -> None:
    """Read a frame of the envelope by the codec, the definitions, the kernels and by inspect; write it back."""
    found = _outcome(lambda: read_whole(frame_codec.READERS, data))
    outcomes = [found, _outcome(lambda: FRAMES.parse(data, {})), _outcome(lambda: parse_frame(data))]
    same("codec and definitions", [*map(repr, outcomes)])
    _agree(compare_frames(pa.array([data], pa.large_binary())).problems)
    same("fault of inspect", [trace_frame(data).fault is not None, found is _REFUSED])
    same("fault of the batch", [split_frames(Frames.of(data)).error is not None, found is _REFUSED])
    if found is not _REFUSED:
        same("built", [data, build_frame(found), FRAMES.build(found, {})])


def read_connection(data: bytes) -> None:
    """Read a message of a connection by both engines; the first byte says by whom it was sent, and in which state."""
    if not data:
        return
    (state, sender), payload = _PLACES[data[0] % len(_PLACES)], data[1:]
    size: Any = _outcome(lambda: message_size(payload, sender, state))
    found = _outcome(lambda: parse_connection(payload, sender, state))
    for cls in FOLLOWING[state, sender]:
        if payload.startswith(cls.TAG):
            fast = _outcome(lambda cls=cls: _whole(connection_codec.READERS[cls], payload))  # type: ignore[misc]
            slow = _outcome(lambda cls=cls: _CONNECTION.read(cls, payload, {}))  # type: ignore[misc]
            same(f"codec and definitions of {cls.__name__}", [repr(fast), repr(slow)])
    if found is not _REFUSED:
        same("size", [size, len(payload)])
        same("built", [payload, build_connection(found), _CONNECTION.build(found, {})])
        next_state(found, sender, state)


def _whole(read: Callable[..., tuple[Any, int]], payload: bytes) -> Any:
    message, end = read(payload + PAD, 0, len(payload))
    if end != len(payload):
        raise DecodeError("more follows")
    return message


def read_stream(data: bytes) -> None:
    """Decode a stream at once and in two batches, which must give the same rows and errors.

    The first byte says under which options, two bytes before each payload how long it is.
    """
    if len(data) < 2:
        return
    options = {key: value for key, value in _OPTIONS[data[0] % len(_OPTIONS)]._asdict().items()
               if key not in STATE_PARAMETERS}  # fmt: skip
    sent = list(_split(data[2:]))
    cut = data[1] % (len(sent) + 1)
    halves = BatchDecoder(**options)
    apart = _rows(halves.decode(sent[:cut]), 0) + _rows(halves.decode(sent[cut:]), cut)
    same("rows of a batch and of its halves", [sorted(_rows(BatchDecoder(**options).decode(sent), 0)), sorted(apart)])


def _split(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 2 <= len(data):
        size = int.from_bytes(data[at : at + 2], "big")
        yield data[at + 2 : at + 2 + size]
        at += 2 + size


def _rows(decoded: DecodedBatch, first: int) -> list[tuple[int, str]]:
    decoded.index.messages().validate(full=True)
    errors = [(first + error.row, str(error)) for error in decoded.errors]
    return errors + [
        (first + row, repr(values))
        for table in decoded.tables
        for row, values in zip(table.rows.tolist(), _values(table.batch), strict=True)
    ]


def _values(batch: pa.RecordBatch) -> list[str]:
    batch.validate(full=True)
    columns = [[str(value) for value in column] for column in batch.columns]
    return [repr(row) for row in zip(*columns, strict=True)] if columns else [""] * len(batch)


def _outcome(call: Callable[[], Any]) -> Any:
    """Return what is read, or that it is refused; a defect that the package itself reports is a finding."""
    try:
        return call()
    except EngineError as error:
        raise Finding(str(error)) from error
    except (PgoutputError, *REJECTIONS):
        return _REFUSED


def _agree(problems: list[tuple[bytes, str]]) -> None:
    for payload, what in problems:
        raise Finding(f"{what}: {payload.hex()}")


def _messages() -> Iterator[bytes]:
    places = {options: bytes([number]) for number, options in enumerate(_OPTIONS)}
    return (places[seed.options] + seed.payload for seed in payloads() if seed.options in places)


def _streams() -> Iterator[bytes]:
    for recorded in recordings():
        number = next(n for n, each in enumerate(_OPTIONS) if recorded.options.items() <= each._asdict().items())
        for first in range(0, len(recorded.payloads), _STREAM_PAYLOADS):
            some = recorded.payloads[first : first + _STREAM_PAYLOADS]
            yield bytes([number, len(some) // 2]) + b"".join(len(p).to_bytes(2, "big") + p for p in some)


def _connection() -> Iterator[bytes]:
    """Yield an invented message of each kind at each place where it can come."""
    for message in _invented():
        with suppress(PgoutputError):
            payload = build_connection(message)
            for number, place in enumerate(_PLACES):
                if type(message) in FOLLOWING[place]:
                    yield bytes([number]) + payload


def _invented(count: int = 400) -> list[ConnectionMessage]:
    from hypothesis import HealthCheck, Phase, given, seed, settings

    found: list[ConnectionMessage] = []

    @seed(1)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(connection_messages())
    def collect(message: ConnectionMessage) -> None:
        found.append(message)

    collect()
    return found


SEEDS: Final[Mapping[str, Callable[[], Iterable[bytes]]]] = {
    "message": _messages,
    "frame": frames,
    "connection": _connection,
    "stream": _streams,
}
"""The functions that return the seeds of each target."""
