"""One message at the start of more bytes: the grammar determines its end."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.testing.payloads import payloads
from pgoutput_construct.wire.engine import parse, parse_prefix
from pgoutput_construct.wire.reference import IncompleteError


@given(payloads(), st.binary(max_size=9), st.binary(max_size=9))
def test_whatever_is_around(pair: Any, before: bytes, after: bytes) -> None:
    """The message and its size do not depend on the bytes around it."""
    options, payload = pair
    message, size = parse_prefix(before + payload + after, len(before), **options._asdict())
    assert (message, size) == (parse(payload, **options._asdict()), len(payload))


@pytest.mark.slow
@given(payloads(), st.data())
def test_every_cut_is_incomplete(pair: Any, data: Any) -> None:
    """A message truncated anywhere raises IncompleteError, with the offset."""
    options, payload = pair
    cut = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises(IncompleteError) as caught:
        parse_prefix(b"\n" + payload[:cut], 1, **options._asdict())
    assert caught.value.offset is not None and 0 <= caught.value.offset <= cut


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"?", "unknown tag b'?'"),
        (b"I\0\0\0\7N\0\1x", "must be one of n, u, t, b"),
        (b"I\0\0\0\7N\0\1t\xff\xff\xff\xffab", "needs 4294967295 bytes, but only 2 bytes are left"),
        (b"T\0\0\0\1\4", "no bits beyond 0x3"),
        (b"S\0\0\0\1\1", "belongs to protocol version 2"),
    ],
)
def test_more_would_not_help(data: bytes, reason: str) -> None:
    """Malformed bytes, and lengths beyond any message, are errors at once, even at the end of the data."""
    with pytest.raises(DecodeError) as caught:
        parse_prefix(data)
    assert reason in str(caught.value)
    assert not isinstance(caught.value, IncompleteError)


def test_offsets_are_the_message_s() -> None:
    """Errors count from the start of the message, wherever that is."""
    data = b"I\0\0\0\7N\0\1x"
    for start in (0, 5):
        with pytest.raises(DecodeError) as caught:
            parse_prefix(bytes(start) + data, start)
        assert (caught.value.path, caught.value.offset) == ("Insert.new.columns[0]", 8)
