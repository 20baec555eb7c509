"""Strategies of the messages that somebody wants, under the options that somebody has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.wire.definitions import DEFINITIONS


@given(st.data(), st.sampled_from(list(DEFINITIONS)))
def test_one_kind(data: st.DataObject, kind: type) -> None:
    """A kind alone, by its class or by its name."""
    assert type(data.draw(testing.messages(4, "parallel", kinds=[kind]))) is kind
    assert type(data.draw(testing.messages(4, "parallel", kinds=[kind.__name__]))) is kind


@given(testing.messages(2, "on", True, kinds=["Insert", pgo.Delete]))
def test_several_kinds(message: pgo.PgoutputMessage) -> None:
    """Only what was asked for, as the options carry it."""
    assert isinstance(message, pgo.Insert | pgo.Delete)
    assert message.xid is not None


@pytest.mark.parametrize(
    ("kinds", "problem"),
    [
        (["Inserts"], "'Inserts' is not a message: write one of Begin"),
        ([pgo.StreamStart], "StreamStart cannot be sent under proto_version=1, streaming='off'"),
    ],
)
def test_what_cannot_come(kinds: list[type | str], problem: str) -> None:
    """What there is not, and what the options do not bring, is said at once."""
    with pytest.raises(pgo.PgoutputError, match=problem):
        testing.messages(1, kinds=kinds)
