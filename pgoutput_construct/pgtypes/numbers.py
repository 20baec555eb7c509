"""Booleans, integers, floats, numeric and money (bool.c, int.c, int8.c, float.c, numeric.c, cash.c).

| PostgreSQL | Arrow |
|---|---|
| bool, int2, int4, int8, float4, float8 | bool, int16, int32, int64, float32, float64 |
| numeric(p, s) with p <= 38 and 0 <= s <= p | decimal128(p, s) |
| other numerics | string, or decimal128 or float64 if a reader chooses them |
| money | string |
"""

import math
import re
import struct
from binascii import hexlify
from collections.abc import Callable, Mapping, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.pgtypes.family import ArrowKind, ArrowTypes, CannotHold, Compiled, Family, SqlText
from pgoutput_construct.pgtypes.value_codec import NUMERIC_NEGATIVE, Codec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column
    from pyspark.sql import types as T  # noqa: N812 - as Spark's documentation has it

__all__ = [
    "FAMILY",
    "Numeral",
    "decimal_type",
    "float_bits",
    "float_text",
    "float_texts",
    "in_lists",
    "integer_codec",
    "json_value",
    "single",
    "spark_floats",
]

_NOT_FINITE, _SIGNS = {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}, {0: "", NUMERIC_NEGATIVE: "-"}
_INFINITY_SCALE = 32
"""The scale that numeric_send() sends for infinities: it interprets their flag bits as a scale."""
_BASE_DIGITS = 4

_MANTISSA_BITS = {"!f": 24, "!d": 53}
_LEAST_EXPONENT = {"!f": -149, "!d": -1074}
_PLAIN_DIGITS = {"!f": 6, "!d": 15}  # FLT_DIG and DBL_DIG
_MOST_DIGITS = 17
_FLOAT4_DIGITS = (6, 7, 8, 9)
_POWER_OF_TWO = 0.5
"""math.frexp()'s fraction of a power of two, whose lower neighbour is nearer than its upper one."""


def _numeric_text(data: bytes) -> str:
    # numeric_send(): count of digits to base 10,000, weight of the first, sign, display scale; then the digits.
    count, weight, sign, scale = struct.unpack_from("!HhHH", data)
    groups = struct.unpack(f"!{count}H", data[8:])
    if sign in _NOT_FINITE:
        return _NOT_FINITE[sign]
    if sign not in _SIGNS or max(groups, default=0) > 9999:
        raise ValueError("not a numeric")
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
    # strip_var(): no zero digits at either end.
    first = next((index for index, group in enumerate(groups) if group), len(groups))
    last = next((index for index in range(len(groups), first, -1) if groups[index - 1]), first)
    groups, weight = groups[first:last], weight - first if last > first else 0
    sign = NUMERIC_NEGATIVE if text.startswith("-") and groups else 0
    return struct.pack(f"!HhHH{len(groups)}H", len(groups), weight, sign, len(decimals), *groups)


def float_text(layout: str, data: bytes) -> str:
    """Return the shortest text that identifies a float, as servers write it with extra_float_digits above 0.

    Args:
        layout: The struct format: ``!f`` or ``!d``.
        data: The value in binary format.
    """
    (value,) = struct.unpack(layout, data)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "-Infinity" if value < 0 else "Infinity"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if not value:
        return f"{sign}0"
    digits, exponent = _shortest(layout, abs(value))
    return sign + _laid_out(digits, exponent, _PLAIN_DIGITS[layout])


def _laid_out(digits: str, exponent: int, plain_digits: int) -> str:
    """Format digits; the first has the place value 10**exponent (to_chars() in d2s.c)."""
    if not -4 <= exponent < plain_digits:
        rest = f".{digits[1:]}" if digits[1:] else ""
        return f"{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole, decimals = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{whole}.{decimals}" if decimals else whole


def _shortest(layout: str, value: float) -> tuple[str, int]:
    """Return the fewest digits that identify a float, and the exponent of ten of the first of them."""
    # A decimal exactly halfway between two floats: Python's repr rounds it to the even one, PostgreSQL accepts it for
    # neither (d2s.c). Below these limits no short decimal is exactly halfway, so Python's shortest digits are right.
    if layout == "!d" and value < 2**52:
        return _scientific(repr(value))
    if layout == "!f" and 2**-126 <= value < 2**24 and math.frexp(value)[0] != _POWER_OF_TWO:
        for digits in _FLOAT4_DIGITS:
            text = f"{value:.{digits}g}"
            if struct.unpack(layout, struct.pack(layout, float(text))) == (value,):
                return _scientific(text)
    return _strictly_between(layout, value)


def _scientific(text: str) -> tuple[str, int]:
    mantissa, _, power = text.partition("e")
    whole, _, decimals = mantissa.partition(".")
    digits = (whole + decimals).lstrip("0")
    leading = len(whole) if whole != "0" else len(digits) - len(decimals)
    return digits.rstrip("0"), leading - 1 + int(power or 0)


def _strictly_between(layout: str, value: float) -> tuple[str, int]:
    """Return the fewest digits strictly between the midpoints to both neighbours, and of these the nearest ones."""
    bits = _MANTISSA_BITS[layout]
    _, exponent = math.frexp(value)
    exponent = max(exponent - bits, _LEAST_EXPONENT[layout])
    mantissa = int(math.ldexp(value, -exponent))
    below = 1 if mantissa == 1 << bits - 1 and exponent > _LEAST_EXPONENT[layout] else 2
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
    raise ValueError("not a float")


def _float_binary(layout: str, text: str) -> bytes:
    return struct.pack(layout, float(text))


def integer_codec(layout: str) -> Codec:
    """Return the codec of integers with a struct format such as ``!i``."""
    packed = struct.Struct(layout)
    return Codec(lambda data: str(packed.unpack(data)[0]), lambda text: packed.pack(int(text)))


# In JSON.


class Numeral(str):
    """The text of a number that JSON might not represent exactly."""

    __slots__ = ()


def json_value(text: str, arrow: str) -> Any:
    """Return the JSON value for PostgreSQL's text of a value: a bool, int or finite float, or the text itself.

    Args:
        text: PostgreSQL's text.
        arrow: The name of the type's Arrow type (spec/builtin_types.yaml); a decimal becomes a Numeral.
    """
    try:
        if arrow == "bool":
            return text == "t"
        if arrow.startswith("int"):
            return int(text)
        if arrow.startswith(("float", "double")) and math.isfinite(number := float(text)):
            return number
    except ValueError:
        pass
    return Numeral(text) if arrow == "decimal" else text


# In Arrow.

_MAX_PRECISION: Final = 38
_DIGITS: Final = {16: 5, 32: 10, 64: 19}
"""Decimal digits of integers, by their bits."""
_DOUBLE: Final = 64
"""Bits of float64."""
_EXACT_IN: Final = {(16, 32), (16, 64), (32, 64)}
"""Bits of integers and of floats, where the float represents each of the integers exactly."""
_DECIMAL: Final = re.compile(r"decimal\( *([0-9]{1,2}) *, *([0-9]{1,2}) *\)")
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def decimal_type(modifier: int) -> "pa.DataType | None":
    """Return the Arrow type of a numeric by its column's modifier (atttypmod), None if Arrow has none."""
    import pyarrow as pa

    # numeric.c: precision in the upper half, scale in 11 bits, signed since PostgreSQL 15; 4 is VARHDRSZ.
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    fits = modifier >= 4 and precision <= _MAX_PRECISION and 0 <= scale <= precision
    return pa.decimal128(precision, scale) if fits else None


def _arrow() -> ArrowTypes:
    import pyarrow as pa

    types = ("bool_", "int16", "int32", "int64", "float32", "float64")
    is_type = pa.types
    return ArrowTypes(
        {name.rstrip("_"): getattr(pa, name)() for name in types},
        (
            ArrowKind(is_type.is_boolean, lambda value, _: isinstance(value, bool)),
            ArrowKind(is_type.is_integer, _is_integer),
            ArrowKind(is_type.is_floating, _is_float, _as_float),
            ArrowKind(is_type.is_decimal, _is_decimal, _as_decimal),
        ),
        lambda one, other: _wider(one, other) or _wider(other, one),
        _choose,
    )


def _is_integer(value: Any, target: "pa.DataType") -> bool:
    return type(value) is int and -(1 << target.bit_width - 1) <= value < 1 << target.bit_width - 1


def _is_float(value: Any, target: "pa.DataType") -> bool:
    """Return whether a float type represents a float exactly; NaN and infinities too."""
    return isinstance(value, float) and (target.bit_width == _DOUBLE or math.isnan(value) or single(value) == value)


def _is_decimal(value: Any, target: "pa.DataType") -> bool:
    if not isinstance(value, Decimal) or not value.is_finite():
        return False
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent <= target.scale and (not value or value.adjusted() < target.precision - target.scale)


def _as_decimal(value: Any, target: "pa.DataType") -> Any:
    if type(value) is int:
        value = Decimal(value)
    # A numeric's display scale does not matter for its value: trailing zeros need not fit into the type's scale.
    return value.normalize(_EXACT) if isinstance(value, Decimal) and value.is_finite() else value


def _as_float(value: Any, target: "pa.DataType") -> Any:
    if type(value) is int:
        if float(value) != value:
            raise CannotHold
        return float(value)
    if isinstance(value, Decimal):
        if value.is_snan() or (value.is_finite() and math.isinf(float(value))):
            raise CannotHold
        # A reader who chooses float64 for numerics accepts the nearest one; nobody chooses float32.
        if target.bit_width < _DOUBLE and value.is_finite() and float(value) != value:
            raise CannotHold
        return float(value)
    return value


def single(value: Any) -> Any:
    """Round a float4, alone or in a list, to single precision: psycopg loads the decimal text as a Python float."""
    if isinstance(value, list):
        return [single(item) for item in value]
    try:
        return struct.unpack("f", struct.pack("f", value))[0] if isinstance(value, float) else value
    except OverflowError as error:
        raise CannotHold from error


def _wider(one: "pa.DataType", other: "pa.DataType") -> "pa.DataType | None":
    """Return ``other``, or a decimal, if it can represent the values of both types; else None."""
    import pyarrow as pa

    is_type = pa.types
    for same_kind in (is_type.is_integer, is_type.is_floating):
        if same_kind(one) and same_kind(other):
            return max(one, other, key=lambda kind: kind.bit_width)
    if is_type.is_integer(one) and is_type.is_floating(other):
        return other if (one.bit_width, other.bit_width) in _EXACT_IN else None
    if not is_type.is_decimal(other):
        return None
    if is_type.is_integer(one):
        one = pa.decimal128(_DIGITS[one.bit_width], 0)
    return _wider_decimal(one, other) if is_type.is_decimal(one) else None


def _wider_decimal(one: "pa.DataType", other: "pa.DataType") -> "pa.DataType":
    import pyarrow as pa

    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return pa.decimal128(precision, scale) if precision <= _MAX_PRECISION else pa.string()


def _choose(name: str, words: str) -> "pa.DataType | None":
    import pyarrow as pa

    if name != "numeric":
        return None
    if words == "double":
        return pa.float64()
    decimal = _DECIMAL.fullmatch(words)
    precision, scale = (int(decimal[1]), int(decimal[2])) if decimal else (0, 0)
    return pa.decimal128(precision, scale) if 1 <= precision <= _MAX_PRECISION and scale <= precision else None


def _compiled() -> Mapping[str, Sequence[Compiled]]:
    import pyarrow as pa

    from pgoutput_construct.pgtypes.kernels import row_plan
    from pgoutput_construct.pgtypes.kernels.planned_casts import INTEGER_TEXT, PlannedCast, big_endian, parsed, within

    is_type = pa.types
    letters, byte = PlannedCast(row_plan.BOOLEAN, within(ord("t"), ord("f"))), PlannedCast(1, within(0, 1))
    floats = PlannedCast(row_plan.FLOAT, _exact_floats, rest=parsed)
    float32, float64 = pa.float32().equals, pa.float64().equals  # a kernel would round for the narrower one
    decimals = (PlannedCast(kind, _digits_of) for kind in (row_plan.NUMERIC_TEXT, row_plan.NUMERIC))
    return {
        "bool": [Compiled(is_type.is_boolean, letters, byte)],
        **{f"int{size}": [Compiled(is_type.is_integer, INTEGER_TEXT, big_endian(size))] for size in (2, 4, 8)},
        "float4": [Compiled(float32, floats, big_endian(4))],  # their bits
        "float8": [Compiled(float64, floats, big_endian(8))],
        "numeric": [Compiled(is_type.is_decimal, *decimals), Compiled(float64, floats, None)],
    }


def _exact_floats(target: "pa.DataType") -> tuple[int, int]:
    """Return the greatest integer, and the greatest power of ten, up to which a float represents all exactly."""
    return (1 << 53, 18) if target.bit_width == 64 else (1 << 24, 10)


def _digits_of(target: "pa.DataType") -> tuple[int, int]:
    return target.precision, target.scale


# Canonical texts, in SQL and in Spark.

_BITS_SQL: Final = "CASE WHEN {value} = 'NaN' THEN 'NaN' ELSE encode(KINDsend({value}::KIND), 'hex') END"
_DECIMAL_SQL: Final = (
    "CASE WHEN {value}::numeric <> 'NaN' AND abs({value}::numeric) < LIMIT "
    "AND {value}::numeric = trunc({value}::numeric, SCALE) "
    "THEN {value}::numeric(PRECISION, SCALE)::text ELSE concat({value}::numeric) END"
)
_ALL_FINITE_SQL: Final = (
    "NOT EXISTS (SELECT FROM unnest({value}) e WHERE e::numeric = 'NaN' OR abs(e::numeric) >= LIMIT "
    "OR e::numeric <> trunc(e::numeric, SCALE))"
)


def _sql(name: str, target: "pa.DataType") -> SqlText | None:
    """Return the canonical text of floats (bits in hexadecimal), and of decimals (with the Arrow type's scale)."""
    import pyarrow as pa

    if pa.types.is_floating(target):
        return SqlText(_BITS_SQL.replace("KIND", f"float{target.bit_width // 8}"))
    if not pa.types.is_decimal(target):
        return None
    numbers = {
        "PRECISION": target.precision,
        "SCALE": target.scale,
        "LIMIT": 10 ** (target.precision - target.scale),
    }
    text, condition = _DECIMAL_SQL, _ALL_FINITE_SQL
    for word, number in numbers.items():
        text, condition = text.replace(word, str(number)), condition.replace(word, str(number))
    return SqlText(text, condition)


def float_bits(values: "pa.Array") -> "pa.Array":
    """Return the bits of floats in hexadecimal digits, as float8send() sends them; any NaN is ``NaN``."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    digits = hexlify(numbers.astype(numbers.dtype.newbyteorder(">")).tobytes())
    texts = pa.array(np.frombuffer(digits, f"S{2 * numbers.itemsize}").astype("U"), pa.string())
    return pc.if_else(values.is_null(), None, pc.if_else(pa.array(np.isnan(numbers)), "NaN", texts))


def float_texts(values: "pa.Array") -> "pa.Array":
    """Return the texts of floating-point numbers, as float4out() and float8out() write them."""
    import numpy as np
    import pyarrow as pa

    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    size = numbers.itemsize
    data = numbers.astype(numbers.dtype.newbyteorder(">")).tobytes()
    layout = "!d" if size == 8 else "!f"
    written = map(partial(float_text, layout), (data[at : at + size] for at in range(0, len(data), size)))
    return pa.array(list(written), pa.string(), mask=np.asarray(values.is_null()))


def in_lists(of: "Callable[[pa.Array], pa.Array]", values: "pa.Array") -> "pa.Array":
    """Apply a function to the elements of lists."""
    import numpy as np
    import pyarrow as pa

    lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    return pa.ListArray.from_arrays(offsets, of(values.flatten()), mask=values.is_null())


def spark_floats(of: "Callable[[pa.Array], pa.Array]", value: "Column", kind: "T.DataType") -> "Column":
    """Return the texts of floating-point numbers in Spark, or those of lists of them.

    Args:
        of: Their texts: ``float_texts``, as PostgreSQL writes them, or ``float_bits``, as canonical texts have them.
        value: The number, or the list.
        kind: Its Spark type.
    """
    import pyarrow as pa
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql import types as T  # noqa: N812

    is_list = isinstance(kind, T.ArrayType)

    def write(values: pa.Array) -> pa.Array:  # Spark evaluates these annotations; strings would not work
        return in_lists(of, values) if is_list else of(values)

    # The UDF is created on each call, because Spark Connect and classic Spark need different ones.
    return F.arrow_udf(write, T.ArrayType(T.StringType()) if is_list else T.StringType())(value)


def _spark_boolean(value: "Column", kind: "T.DataType") -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    return F.when(value, "t").when(~value, "f")


def _spark_decimal(value: "Column", kind: "T.DecimalType") -> "Column":
    """Return the text of a decimal without an exponent, which Spark writes near zero unless in ANSI mode."""
    from pyspark.sql import functions as F  # noqa: N812

    text = value.cast("string")
    digits = F.regexp_replace(text, r"E.*\z|[-.]", "")
    sign = F.when(text.startswith("-"), "-").otherwise("")
    near_zero = F.concat(sign, F.lit("0."), F.lpad(digits, kind.scale, "0"))
    return F.when(text.contains("E"), near_zero).otherwise(text)


FAMILY: Final = Family(
    {
        "bool": Codec({b"\0": "f", b"\1": "t"}.__getitem__, lambda text: bytes(["ft".index(text)])),
        "int8": integer_codec("!q"),
        "int2": integer_codec("!h"),
        "int4": integer_codec("!i"),
        "numeric": Codec(_numeric_text, _numeric_binary),
        "float4": Codec(partial(float_text, "!f"), partial(_float_binary, "!f")),
        "float8": Codec(partial(float_text, "!d"), partial(_float_binary, "!d")),
    },
    without_codec=["money"],
    arrow=_arrow,
    compiled=_compiled,
    sql=_sql,
    spark={"BooleanType": _spark_boolean, "DecimalType": _spark_decimal},
)
