"""Numbers that have a point: numeric, float4 and float8."""

import math
import struct
from decimal import Decimal
from functools import partial
from typing import Final

from pgoutput_construct.pgtypes.form import Form

__all__ = ["NEGATIVE", "NUMBERS", "float_text"]

NEGATIVE: Final = 0x4000
"""NUMERIC_NEG in numeric.c."""
_NOT_FINITE, _SIGNS = {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}, {0: "", NEGATIVE: "-"}
_INFINITY_SCALE = 32
"""What numeric_send() says of them, whose flags it takes for a scale, too."""
_BASE_DIGITS = 4

_MANTISSA_BITS = {"!f": 24, "!d": 53}
_LEAST_EXPONENT = {"!f": -149, "!d": -1074}
_PLAIN_DIGITS = {"!f": 6, "!d": 15}  # FLT_DIG and DBL_DIG
_MOST_DIGITS = 17
_FLOAT4_DIGITS = (6, 7, 8, 9)
_POWER_OF_TWO = 0.5
"""The fraction of one: below it the next number is nearer than above."""


def _numeric_text(data: bytes) -> str:
    # numeric_send(): digits to base 10,000, the weight of the first, a sign, and how many decimals are written.
    count, weight, sign, scale = struct.unpack_from("!HhHH", data)
    groups = struct.unpack(f"!{count}H", data[8:])
    if sign in _NOT_FINITE:
        return _NOT_FINITE[sign]
    if sign not in _SIGNS or max(groups, default=0) > 9999:
        raise ValueError("this is no numeric")
    digits, point = "".join(f"{group:04}" for group in groups), 4 * (weight + 1)
    digits = digits.rjust(len(digits) - min(point, 0), "0").ljust(point, "0")
    whole, decimals = digits[: max(point, 0)].lstrip("0") or "0", digits[max(point, 0) :].ljust(scale, "0")[:scale]
    return f"{_SIGNS[sign]}{whole}.{decimals}" if scale else f"{_SIGNS[sign]}{whole}"


def _numeric_binary(text: str) -> bytes:
    for sign, word in _NOT_FINITE.items():
        if text == word:
            return struct.pack("!HhHH", 0, 0, sign, _INFINITY_SCALE if text.endswith("Infinity") else 0)
    whole, _, decimals = text.removeprefix("-").partition(".")
    whole = whole.rjust(-(-len(whole) // _BASE_DIGITS) * _BASE_DIGITS, "0")
    digits = whole + decimals.ljust(-(-len(decimals) // _BASE_DIGITS) * _BASE_DIGITS, "0")
    groups = [int(digits[at : at + _BASE_DIGITS]) for at in range(0, len(digits), _BASE_DIGITS)]
    weight = len(whole) // _BASE_DIGITS - 1
    # strip_var(): no groups of zeros at either end.
    first = next((place for place, group in enumerate(groups) if group), len(groups))
    last = next((place for place in range(len(groups), first, -1) if groups[place - 1]), first)
    groups, weight = groups[first:last], weight - first if last > first else 0
    sign = NEGATIVE if text.startswith("-") and groups else 0
    return struct.pack(f"!HhHH{len(groups)}H", len(groups), weight, sign, len(decimals), *groups)


def float_text(form: str, data: bytes) -> str:
    """Write a float with the fewest digits that tell it from others (extra_float_digits above 0).

    Args:
        form: How ``struct`` unpacks it: ``!f`` or ``!d``.
        data: Its bytes.
    """
    (value,) = struct.unpack(form, data)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "-Infinity" if value < 0 else "Infinity"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if not value:
        return f"{sign}0"
    digits, exponent = _shortest(form, abs(value))
    return sign + _laid_out(digits, exponent, _PLAIN_DIGITS[form])


def _laid_out(digits: str, exponent: int, plain_digits: int) -> str:
    """Write digits, the first of which counts ten to the power of ``exponent`` (to_chars() in d2s.c)."""
    if not -4 <= exponent < plain_digits:
        rest = f".{digits[1:]}" if digits[1:] else ""
        return f"{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole, decimals = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{whole}.{decimals}" if decimals else whole


def _shortest(form: str, value: float) -> tuple[str, int]:
    """Return the fewest digits, and the power of ten of the first of them."""
    # What lies just between two floats is neither's for PostgreSQL, and the even one's for Python. So many bits as that
    # takes few digits have only above these numbers.
    if form == "!d" and value < 2**52:
        return _scientific(repr(value))
    if form == "!f" and 2**-126 <= value < 2**24 and math.frexp(value)[0] != _POWER_OF_TWO:
        for digits in _FLOAT4_DIGITS:
            text = f"{value:.{digits}g}"
            if struct.unpack(form, struct.pack(form, float(text))) == (value,):
                return _scientific(text)
    return _strictly_between(form, value)


def _scientific(text: str) -> tuple[str, int]:
    mantissa, _, power = text.partition("e")
    whole, _, decimals = mantissa.partition(".")
    digits = (whole + decimals).lstrip("0")
    leading = len(whole) if whole != "0" else len(digits) - len(decimals)
    return digits.rstrip("0"), leading - 1 + int(power or 0)


def _strictly_between(form: str, value: float) -> tuple[str, int]:
    """Return the fewest digits between the middles to the next floats, and of those the nearest to the value."""
    bits = _MANTISSA_BITS[form]
    _, exponent = math.frexp(value)
    exponent = max(exponent - bits, _LEAST_EXPONENT[form])
    mantissa = int(math.ldexp(value, -exponent))
    below = 1 if mantissa == 1 << bits - 1 and exponent > _LEAST_EXPONENT[form] else 2
    up, down = 1 << max(exponent, 0), 4 << max(-exponent, 0)
    exact, low, high = 4 * mantissa * up, (4 * mantissa - below) * up, (4 * mantissa + 2) * up
    power = Decimal(value).adjusted()
    for count in range(1, _MOST_DIGITS + 1):
        shift = count - 1 - power
        more, less = 10 ** max(shift, 0), 10 ** max(-shift, 0)
        floor = exact * more // (down * less)
        fitting = [n for n in (floor, floor + 1) if low * more < n * down * less < high * more]
        if fitting:
            nearest = min(fitting, key=lambda n: (abs(n * down * less - exact * more), n % 2))
            digits = str(nearest)
            return digits.rstrip("0"), power + len(digits) - count
    raise ValueError("this is no float")


def _float_binary(form: str, text: str) -> bytes:
    return struct.pack(form, float(text))


NUMBERS: Final = {
    "numeric": Form(_numeric_text, _numeric_binary),
    "float4": Form(partial(float_text, "!f"), partial(_float_binary, "!f")),
    "float8": Form(partial(float_text, "!d"), partial(_float_binary, "!d")),
}
