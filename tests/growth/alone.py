"""Run in a copy of the project that has one change: whatever the strategies make, all engines agree on it.

python alone.py
"""

from typing import Any

from hypothesis import HealthCheck, given, settings

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.wire import jsonable
from pgoutput_construct.wire.engine import FRAMES, MESSAGES
from pgoutput_construct.wire.options import options
from pgoutput_construct.wire.trace import trace

quick = settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@quick
@given(testing.options_and_messages())
def check_messages(pair: Any) -> None:
    """Messages, under any options."""
    given_options, message = pair
    said = given_options._asdict()
    parameters = options(**said).parameters()
    data = pgo.build(message, **said)
    assert MESSAGES.build(message, parameters) == data
    assert pgo.parse(data, **said) == MESSAGES.parse(data, parameters) == message
    assert jsonable.from_json(jsonable.to_json(message)) == message
    assert b"".join(data[span.start : span.end] for span in trace(data, **said).spans) == data


@quick
@given(testing.frames())
def check_frames(frame: Any) -> None:
    """Frames."""
    data = pgo.build_frame(frame)
    assert FRAMES.build(frame, {}) == data and pgo.parse_frame(data) == FRAMES.parse(data, {}) == frame


if __name__ == "__main__":
    check_messages()
    check_frames()
