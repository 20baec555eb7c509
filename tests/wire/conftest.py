"""Every behaviour is tested on both engines of one message."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.wire.engine import MESSAGES
from pgoutput_construct.wire.options import options


class Engine(NamedTuple):
    """One way to parse and build messages."""

    parse: Callable[..., Any]
    build: Callable[..., bytes]


def _parse(data: bytes, *given: Any, **named: Any) -> Any:
    return MESSAGES.parse(data, options(*given, **named).parameters())


def _build(message: Any, *given: Any, **named: Any) -> bytes:
    return MESSAGES.build(message, options(*given, **named).parameters())


ENGINES = {"codec": Engine(pgo.parse, pgo.build), "definitions": Engine(_parse, _build)}


@pytest.fixture(params=ENGINES.values(), ids=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """The fast engine, which asks the definitions where it refuses, and the definitions alone."""
    found: Engine = request.param
    return found
