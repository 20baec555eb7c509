"""Engines of one message: the interpreted construct definitions, and the codec in the ways that users call it."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import accumulate, repeat
from typing import Any

import pgoutput_construct as pgo
from pgoutput_construct.wire.engine import MESSAGES, parse_prefix
from pgoutput_construct.wire.options import options
from tools.benchmark.batch import Batch
from tools.benchmark.measure import Engine, Pass, timed

__all__ = ["MESSAGE_ENGINES", "each"]


def each(function: Callable[..., Any], *columns: Iterable[Any]) -> int:
    """Call a function for every message, drop what it returns, and return how many there were."""
    count = 0
    for _ in map(function, *columns):
        count += 1
    return count


def _options(batch: Batch) -> tuple[Any, ...]:
    return repeat(batch.case.proto_version), repeat(batch.case.streaming), batch.in_stream


def _parameters(batch: Batch) -> list[dict[str, int]]:
    case = batch.case
    states = [options(case.proto_version, case.streaming, inside).parameters() for inside in (False, True)]
    return [states[inside] for inside in batch.in_stream]


def _construct_parse(batch: Batch, _stack: ExitStack) -> Pass:
    parameters = _parameters(batch)
    return timed(lambda: each(MESSAGES.parse, batch.payloads, parameters), len(batch))


def _construct_build(batch: Batch, _stack: ExitStack) -> Pass:
    messages, parameters = batch.messages, _parameters(batch)
    return timed(lambda: each(MESSAGES.build, messages, parameters), len(batch))


def _parse(batch: Batch, _stack: ExitStack) -> Pass:
    return timed(lambda: each(pgo.parse, batch.payloads, *_options(batch)), len(batch))


def _prefix(batch: Batch, _stack: ExitStack) -> Pass:
    data = b"".join(batch.payloads)
    starts = list(accumulate(map(len, batch.payloads[:-1]), initial=0))
    return timed(lambda: each(parse_prefix, repeat(data), starts, *_options(batch)), len(batch))


def _build(batch: Batch, _stack: ExitStack) -> Pass:
    messages = batch.messages
    return timed(lambda: each(pgo.build, messages, *_options(batch)), len(batch))


def _session(batch: Batch, _stack: ExitStack) -> Pass:
    case = batch.case
    return timed(lambda: each(pgo.Session(case.proto_version, case.streaming).parse, batch.payloads), len(batch))


MESSAGE_ENGINES = (
    Engine("construct", "parse", "ours", "the construct definitions, interpreted", _construct_parse, sample=3000),
    Engine("codec", "parse", "ours", "pgo.parse: the generated codec", _parse),
    Engine("session", "parse", "ours", "Session.parse: the codec, and the stream state", _session),
    Engine("prefix", "parse", "ours", "parse_prefix: the codec, messages without lengths in one buffer", _prefix),
    Engine("construct-build", "build", "ours", "the construct definitions, interpreted", _construct_build, sample=3000),
    Engine("codec-build", "build", "ours", "pgo.build: the generated codec", _build),
)
"""The engines that make or take one message object at a time."""
