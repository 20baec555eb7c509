"""Lsn, Timestamp and Float: numbers that people can read."""

import copy
import math
import operator
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgoutput_construct import Lsn, PgoutputError, Timestamp
from pgoutput_construct.wire import Float


@given(st.integers(0, 2**64 - 1))
def test_lsn_prints_what_it_parses(value: int) -> None:
    """Text and number are each other's."""
    assert Lsn(str(Lsn(value))) == Lsn(value) == value


def test_lsn_prints_as_postgresql_does() -> None:
    """Two hexadecimal halves in upper case, without leading zeros."""
    assert str(Lsn(0x16_B374D848)) == f"{Lsn(0x16_B374D848)}" == "16/B374D848"
    assert Lsn("16/b374d848") == 97500059720
    assert str(Lsn()) == "0/0"


@pytest.mark.parametrize("text", ["", "16", "16/", "g/0", "123456789/0", "1/2/3", "16/B374D848 "])
def test_text_that_is_no_lsn_is_refused(text: str) -> None:
    """The error shows how an LSN is written."""
    with pytest.raises(PgoutputError, match="16/B374D848"):
        Lsn(text)


@pytest.mark.parametrize("value", [None, b"0/0", 1.0])
def test_what_is_no_lsn_is_refused(value: object) -> None:
    """What is neither number nor text."""
    with pytest.raises(PgoutputError, match="an LSN must be"):
        Lsn(value)  # type: ignore[arg-type]


@given(st.integers(-(2**63), 2**63 - 1))
def test_timestamp_text_is_exact(value: int) -> None:
    """Every timestamp comes back from its text."""
    assert Timestamp.from_text(str(Timestamp(value))) == value


@given(st.datetimes(timezones=st.just(UTC)))
def test_timestamp_and_datetime_are_exact(moment: datetime) -> None:
    """Every datetime comes back, to the microsecond."""
    assert Timestamp.from_datetime(moment).to_datetime() == moment


def test_timestamp_prints_readably() -> None:
    """ISO 8601 where datetime can hold it, infinity, or the number."""
    assert str(Timestamp(0)) == "2000-01-01T00:00:00+00:00"
    assert str(Timestamp(2**63 - 1)) == "infinity"
    assert str(Timestamp(-(2**63))) == "-infinity"
    assert str(Timestamp(2**62)) == str(2**62)
    assert Timestamp.from_datetime(datetime(2000, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == 0


def test_timestamp_beyond_datetime_is_an_error() -> None:
    """The year 148,000 is not a datetime, and a naive datetime is not a timestamp."""
    with pytest.raises(PgoutputError, match="outside the years"):
        Timestamp(2**62).to_datetime()
    with pytest.raises(PgoutputError, match="time zone"):
        Timestamp.from_datetime(datetime(2000, 1, 1))
    with pytest.raises(PgoutputError, match="not a timestamp"):
        Timestamp.from_text("yesterday")


@given(st.integers(0, 2**64 - 1))
def test_a_float_keeps_its_bits(bits: int) -> None:
    """Also those of a NaN, through copies and pickles; its repr gives it back."""
    value = Float.from_bits(bits)
    copies = (copy.copy(value), pickle.loads(pickle.dumps(value)), eval(repr(value)))
    assert {each.bits for each in (value, *copies)} == {bits}
    assert all(each == value and hash(each) == hash(value) for each in copies)


def test_floats_are_equal_as_postgresql_has_it() -> None:
    """NaN equals NaN, and zero minus zero; nothing else equals NaN."""
    nan, other = Float("nan"), Float.from_bits(0xFFF0_0000_0000_0001)
    assert nan == other and hash(nan) == hash(other) and (1, nan) == (1, other) and float(nan) == nan
    assert Float(0.0) == Float(-0.0) and Float(0.5) == 0.5
    assert nan != 0.0 and Float(0.0) != nan and nan != "nan"
    assert not any(operator.ne(*pair) for pair in ((nan, other), (nan, math.nan), (Float(0.5), 0.5)))


def test_a_float_prints_as_postgresql_does() -> None:
    """The numbers that are none have PostgreSQL's names."""
    texts = [str(Float(each)) for each in ("nan", "inf", "-inf", 0.1, -0.0, 1e300)]
    assert texts == ["NaN", "Infinity", "-Infinity", "0.1", "-0.0", "1e+300"]
