"""Geometric types: points, and shapes that consist of points (geo_ops.c)."""

import re
import struct
from collections.abc import Sequence
from typing import Final

from pgoutput_construct.pgtypes.family import Family
from pgoutput_construct.pgtypes.numbers import float_text
from pgoutput_construct.pgtypes.value_codec import Codec

__all__ = ["FAMILY"]

_FLOAT, _FLOAT_BYTES = "!d", 8
_FLOATS = re.compile(r"[^()\[\]{}<>,]+")
_OPEN, _CLOSED = b"\0", b"\1"


def _floats_text(data: bytes) -> list[str]:
    if len(data) % _FLOAT_BYTES:
        raise ValueError(f"{len(data)} bytes are not a multiple of {_FLOAT_BYTES}")
    return [float_text(_FLOAT, data[at : at + _FLOAT_BYTES]) for at in range(0, len(data), _FLOAT_BYTES)]


def _floats_binary(text: str) -> bytes:
    return b"".join(struct.pack(_FLOAT, float(word)) for word in _FLOATS.findall(text))


def _points(floats: Sequence[str]) -> str:
    return ",".join(f"({x},{y})" for x, y in zip(floats[::2], floats[1::2], strict=True))


def _fixed(count: int, before: str, after: str, points: bool = True) -> Codec:
    """Return the codec of values that consist of ``count`` floats."""

    def text(data: bytes) -> str:
        floats = _floats_text(data)
        if len(floats) != count:
            raise ValueError(f"{len(floats)} floats instead of {count}")
        return f"{before}{_points(floats) if points else ','.join(floats)}{after}"

    return Codec(text, _floats_binary)


def _circle_text(data: bytes) -> str:
    x, y, radius = _floats_text(data)
    return f"<({x},{y}),{radius}>"


def _counted_text(data: bytes) -> str:
    (count,) = struct.unpack_from("!i", data)
    floats = _floats_text(data[4:])
    if len(floats) != 2 * count:
        raise ValueError(f"{len(floats)} coordinates where the count of points is {count}")
    return _points(floats)


def _counted_binary(text: str) -> bytes:
    floats = _floats_binary(text)
    return struct.pack("!i", len(floats) // (2 * _FLOAT_BYTES)) + floats


def _path_text(data: bytes) -> str:
    # path_send(): whether the path is closed, the number of points, the points.
    points = _counted_text(data[1:])
    return f"({points})" if data[:1] != _OPEN else f"[{points}]"


def _path_binary(text: str) -> bytes:
    return (_OPEN if text.startswith("[") else _CLOSED) + _counted_binary(text)


FAMILY: Final = Family(
    {
        "point": _fixed(2, "", ""),
        "lseg": _fixed(4, "[", "]"),
        "box": _fixed(4, "", ""),
        "line": _fixed(3, "{", "}", points=False),
        "circle": Codec(_circle_text, _floats_binary),
        "path": Codec(_path_text, _path_binary),
        "polygon": Codec(lambda data: f"({_counted_text(data)})", _counted_binary),
    }
)
