"""Binary values as PostgreSQL's text."""

import struct
from contextlib import suppress
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.types.numeric import DecimalBinaryDumper

from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.pgtypes.composites import label
from pgoutput_construct.pgtypes.type_registry import CODECS, TEXT_WRITERS, writer
from pgoutput_construct.pgtypes.value_codec import CODEC_ERRORS
from pgoutput_construct.wire.messages import Type


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("bool", b"\1", "t"),
        ("bytea", b"\0\xff", "\\x00ff"),
        ("char", b"\xff", "\\377"),
        ("char", b"\0", ""),
        ("int8", struct.pack("!q", -5), "-5"),
        ("xid", b"\xff\xff\xff\xff", "4294967295"),
        ("tid", struct.pack("!IH", 7, 2), "(7,2)"),
        ("inet", bytes([2, 32, 0, 4, 10, 0, 0, 1]), "10.0.0.1"),
        ("inet", bytes([2, 8, 0, 4, 10, 0, 0, 1]), "10.0.0.1/8"),
        ("cidr", bytes([2, 32, 1, 4, 10, 0, 0, 1]), "10.0.0.1/32"),
        ("inet", bytes([3, 128, 0, 16, *bytes(15), 1]), "::1"),
        ("inet", bytes([3, 128, 0, 16, *bytes(13), 1, 0, 2]), "::0.1.0.2"),
        ("cidr", bytes([3, 128, 1, 16, *bytes(10), 255, 255, 1, 2, 3, 4]), "::ffff:1.2.3.4/128"),
        ("macaddr", bytes(range(6)), "00:01:02:03:04:05"),
        ("bit", b"\0\0\0\5\xa8", "10101"),
        ("pg_lsn", (0x16B374D848).to_bytes(8), "16/B374D848"),
        ("jsonb", b"\1{}", "{}"),
        ("numeric", struct.pack("!HhHH2H", 2, 0, 0x4000, 2, 12, 3400), "-12.34"),
        ("numeric", struct.pack("!HhHH", 0, 0, 0, 3), "0.000"),
        ("numeric", struct.pack("!HhHHH", 1, -2, 0, 6, 1200), "0.000012"),
        ("numeric", struct.pack("!HhHHH", 1, 2, 0, 0, 7), "700000000"),
        ("numeric", struct.pack("!HhHH", 0, 0, 0xF000, 0), "-Infinity"),
        ("int4range", b"\1", "empty"),
        ("int4range", b"\2\0\0\0\4\0\0\0\1\0\0\0\4\0\0\0\5", "[1,5)"),
        ("tsrange", b"\x18", "(,)"),
        ("tsrange", b"\x12\0\0\0\x08" + bytes(8), '["2000-01-01 00:00:00",)'),
        ("int4multirange", b"\0\0\0\1\0\0\0\x11\2\0\0\0\4\0\0\0\1\0\0\0\4\0\0\0\5", "{[1,5)}"),
    ],
)
def test_texts(name: str, data: bytes, text: str) -> None:
    """Each type as its output function writes it."""
    assert TEXT_WRITERS[name](data) == text


@given(st.sampled_from(sorted(TEXT_WRITERS)), st.binary(max_size=40))
def test_any_bytes(name: str, data: bytes) -> None:
    """Bytes that are not of the type are refused, and nothing else happens."""
    with suppress(*CODEC_ERRORS):
        assert isinstance(TEXT_WRITERS[name](data), str)


@given(st.sampled_from(sorted(name for name, codec in CODECS.items() if codec.binary)), st.text(max_size=40))
def test_any_text(name: str, text: str) -> None:
    """Text that is not of the type is refused, or makes bytes of which other text is made, and nothing else happens."""
    reader = CODECS[name].binary
    assert reader is not None
    with suppress(*CODEC_ERRORS):
        assert isinstance(CODECS[name].text(reader(text)), str)


def test_every_type_has_a_codec() -> None:
    """But for those whose text a locale or a catalog decides, and those that are not sent in binary format."""
    without = {name for name in TYPE_NAMES.keys() - CODECS.keys() if not name.startswith("_")}
    assert CODECS.keys() <= TYPE_NAMES.keys()
    assert {name for name in without if not name.startswith("reg")} == {"money", "aclitem", "gtsvector", "record"}
    assert TYPE_NAMES.keys() - CODECS.keys() == without | {f"_{name}" for name in without}


@given(st.decimals() | st.decimals(places=3, allow_nan=False, allow_infinity=False) | st.integers().map(Decimal))
def test_numerics(number: Decimal) -> None:
    """The text of a numeric is that of the number which psycopg sends."""
    text = TEXT_WRITERS["numeric"](bytes(DecimalBinaryDumper(Decimal).dump(number)))
    if number.is_finite():
        assert text.lstrip("-") == f"{number.copy_abs():f}"
        assert text.startswith("-") == (number < 0)
    else:
        assert text == ("NaN" if number.is_nan() else str(number))


@pytest.mark.parametrize(
    "data", [struct.pack("!HhHHH", 1, 0, 0, 0, 10_000), struct.pack("!HhHH", 0, 0, 1, 0), b"\0" * 9]
)
def test_no_numeric(data: bytes) -> None:
    """Digits above 9999, unknown signs and other lengths are refused."""
    with pytest.raises(CODEC_ERRORS):
        TEXT_WRITERS["numeric"](data)


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1", b"a\x01", b"\xff"])
def test_no_label(data: bytes) -> None:
    """What does not look like an enum's label is not taken for text."""
    with pytest.raises(ValueError):
        label(data)
    assert label("glücklich".encode()) == "glücklich"


@pytest.mark.parametrize(("part", "text"), [(b"ABCD", None), (b"fifth", "(fifth)"), (b"two words", '("two words")')])
def test_a_part_of_an_unknown_type(part: bytes, text: str | None) -> None:
    """It is a label, but not where it has as many bytes as a number: a domain over float4 may look alike."""
    data, told = struct.pack("!iIi", 1, 20001, len(part)) + part, {20000: Type(None, 20000, "public", "row")}
    if text is not None:
        assert writer(20000, told)(data) == text
    else:
        with pytest.raises(ValueError, match="may be a number"):
            writer(20000, told)(data)


@pytest.mark.parametrize(
    ("microseconds", "days", "months", "text"),
    [
        (0, 0, 0, "00:00:00"),
        (1, 0, 0, "00:00:00.000001"),
        (-1_500_000, 0, 0, "-00:00:01.5"),
        (14_706_789_000, -3, -10, "-10 mons -3 days +04:05:06.789"),
        (0, 1, 13, "1 year 1 mon 1 day"),
        (0, 2, -14, "-1 years -2 mons +2 days"),
        (-1, 1, 0, "1 day -00:00:00.000001"),
        (2**63 - 1, 2**31 - 1, 2**31 - 1, "infinity"),
        (-(2**63), -(2**31), -(2**31), "-infinity"),
    ],
)
def test_intervals(microseconds: int, days: int, months: int, text: str) -> None:
    """Signs and plurals are PostgreSQL's."""
    assert TEXT_WRITERS["interval"](struct.pack("!qii", microseconds, days, months)) == text


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "2000-01-01"),
        (-730_119, "0001-01-01"),
        (-730_120, "0001-12-31 BC"),
        (-2_451_507, "4713-01-01 BC"),
        (2_145_031_948, "5874897-12-31"),
        (2**31 - 1, "infinity"),
    ],
)
def test_dates(days: int, text: str) -> None:
    """Also where Python's calendar ends."""
    assert TEXT_WRITERS["date"](struct.pack("!i", days)) == text


def test_times() -> None:
    """The last moment of the day, zones east and west, fractions without trailing zeros."""
    assert TEXT_WRITERS["time"](struct.pack("!q", 86_400_000_000)) == "24:00:00"
    assert TEXT_WRITERS["timetz"](struct.pack("!qi", 1_500_000, -19_800)) == "00:00:01.5+05:30"
    assert TEXT_WRITERS["timetz"](struct.pack("!qi", 0, 3_661)) == "00:00:00-01:01:01"
    assert TEXT_WRITERS["timestamptz"](struct.pack("!q", -1)) == "1999-12-31 23:59:59.999999+00"
    assert TEXT_WRITERS["timestamp"](struct.pack("!q", -(2**63))) == "-infinity"


@pytest.mark.parametrize("data", [bytes([2, 33, 0, 4, 1, 2, 3, 4]), bytes([3, 129, 0, 16, *bytes(16)])])
def test_no_address(data: bytes) -> None:
    """No address has more bits than its family's."""
    with pytest.raises(CODEC_ERRORS):
        TEXT_WRITERS["inet"](data)


def test_addresses_are_those_of_the_server(server: EmbeddedServer) -> None:
    """Every pattern of words that are zero, small or all ones, as inet and cidr; IPv4, and fewer bits, among them."""
    words = (":".join(pattern) for pattern in product(("0", "102", "ffff"), repeat=8))
    addresses = [*words, "::1/64", "::ffff:1.2.3.4/100", "::1.2.3.4/8", "10.0.0.1", "10.0.0.1/8", "0.0.0.0/0"]
    sent = "SELECT inet_send(a), format('%%s', a), cidr_send(c), format('%%s', c)"
    with server.connect() as connection:
        rows = connection.execute(f"{sent} FROM unnest(%s::inet[]) AS a, network(a) AS c", [addresses]).fetchall()
    assert len(rows) == len(addresses)
    for inet, inet_text, cidr, cidr_text in rows:
        assert (TEXT_WRITERS["inet"](inet), TEXT_WRITERS["cidr"](cidr)) == (inet_text, cidr_text)
