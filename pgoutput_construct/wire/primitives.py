"""The primitives of the generated definitions: numbers, letters, strings, bytes, constants.

construct's own are not used, because their errors have no offset, an unterminated CString is read byte by byte, and a
text that contains a NUL is built without an error.
"""

import struct
from collections.abc import Callable, Iterable
from operator import index
from typing import IO, Any

from construct import Construct, ConstructError, SizeofError

from pgoutput_construct.wire.types import Float, Lsn, Timestamp

__all__ = [
    "Absent",
    "Bits",
    "Constant",
    "Data",
    "End",
    "FieldError",
    "Float64",
    "FloatNumber",
    "FullXid",
    "Letter",
    "Number",
    "Oid",
    "OneOf",
    "SInt8",
    "SInt16",
    "SInt32",
    "SInt64",
    "Since",
    "String",
    "TimestampTz",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "XLogRecPtr",
    "Xid",
    "as_int",
    "shown",
    "take",
]


class FieldError(ConstructError):
    """A field that cannot be parsed or built, with its path and offset."""

    def __init__(self, reason: str, path: str, offset: int | None) -> None:
        super().__init__(reason, path=path)
        self.reason = reason
        self.offset = offset


def take(stream: IO[bytes], size: int, path: str) -> bytes:
    """Read exactly ``size`` bytes; raise FieldError, at the offset where they start, if fewer are left."""
    offset = stream.tell()
    data = stream.read(size)
    if len(data) != size:
        left = f"{_plural(len(data))} {'is' if len(data) == 1 else 'are'} left"
        raise FieldError(f"needs {_plural(size)}, but only {left}", path, offset)
    return data


def shown(obj: object) -> str:
    """Return a short repr of any object, for error texts; also of one that is huge, or whose repr raises."""
    try:
        return f"{obj!r:.80}"
    except Exception:  # whatever a class of the user's raises, or the limit on an int's digits
        return f"an object of {type(obj).__name__}"


def as_int(obj: Any) -> int | None:
    """Return an integer, or an integer type of another library, as an int; None for anything else."""
    try:
        return index(obj)
    except Exception:  # also whatever a user's __index__ raises
        return None


def _plural(size: int) -> str:
    return f"{size} byte" if size == 1 else f"{size} bytes"


class Primitive(Construct):
    """A construct without parts. ``sizeof`` needs ``fixed_size``; a parameter ``recorder`` is passed what it reads."""

    fixed_size: int | None = None

    def _parsereport(self, stream: IO[bytes], context: Any, path: str) -> Any:
        recorder = context._params.get("recorder")
        if recorder is None:
            return self._parse(stream, context, path)
        return recorder.read(self, stream, context, path)

    def _sizeof(self, context: Any, path: str) -> int:
        if self.fixed_size is None:
            raise SizeofError("its size depends on the bytes", path=path)
        return self.fixed_size


class Number(Primitive):
    """A big-endian integer; ``code`` is its struct format character, ``convert`` is applied to parsed values."""

    def __init__(self, code: str, convert: Callable[[int], int] | None = None) -> None:
        super().__init__()
        self.packer = struct.Struct(">" + code)
        self.convert = convert
        self.fixed_size = self.packer.size
        bits = 8 * self.packer.size
        self.range = (-(1 << bits - 1), (1 << bits - 1) - 1) if code.islower() else (0, (1 << bits) - 1)

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> int:
        (value,) = self.packer.unpack(take(stream, self.packer.size, path))
        return value if self.convert is None else self.convert(value)

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        low, high = self.range
        value = as_int(obj)
        if value is None or not low <= value <= high:
            raise FieldError(f"must be an int from {low} to {high}, not {shown(obj)}", path, stream.tell())
        stream.write(self.packer.pack(value))
        return obj


class FloatNumber(Primitive):
    """A big-endian number in floating point, of 64 bits, in the format of IEEE 754."""

    fixed_size: int | None = 8
    packer = struct.Struct(">d")

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> Float:
        (value,) = self.packer.unpack(take(stream, self.packer.size, path))
        return Float(value)

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        try:
            data = self.packer.pack(obj)
        except Exception:  # also whatever a user's __float__ raises
            raise FieldError(f"must be a float of 64 bits, not {shown(obj)}", path, stream.tell()) from None
        stream.write(data)
        return obj


UInt8 = Number("B")
UInt16 = Number("H")
UInt32 = Number("I")
UInt64 = Number("Q")
SInt8 = Number("b")
SInt16 = Number("h")
SInt32 = Number("i")
SInt64 = Number("q")
Oid = Number("I")
Xid = Number("I")
FullXid = Number("Q")
XLogRecPtr = Number("Q", Lsn)
TimestampTz = Number("q", Timestamp)
Float64 = FloatNumber()


class OneOf(Primitive):
    """A number with a set of permitted values."""

    def __init__(self, number: Number, *values: int) -> None:
        super().__init__()
        self.number = number
        self.values = values
        self.fixed_size = number.fixed_size

    def _problem(self, value: int) -> str | None:
        return None if value in self.values else f"must be one of {self.values}, not {int(value)}"

    def _checked(self, value: int, path: str, offset: int) -> int:
        problem = self._problem(value)
        if problem is not None:
            raise FieldError(problem, path, offset)
        return value

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> int:
        offset = stream.tell()
        return self._checked(self.number._parse(stream, context, path), path, offset)

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        value = as_int(obj)
        if value is not None:
            self._checked(value, path, stream.tell())
        return self.number._build(obj, stream, context, path)


class Bits(OneOf):
    """Flags: a number whose set bits are all in the mask."""

    def __init__(self, number: Number, mask: int) -> None:
        super().__init__(number)
        self.mask = mask

    def _problem(self, value: int) -> str | None:
        return f"must have no bits beyond {self.mask:#x}, not {int(value):#x}" if value & ~self.mask else None


class Letter(Primitive):
    """One byte that is one of a few ASCII letters; a str of one character in Python."""

    fixed_size: int | None = 1

    def __init__(self, letters: Iterable[str]) -> None:
        super().__init__()
        self.letters = tuple(letters)
        self.choices = ", ".join(self.letters)

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> Any:
        offset = stream.tell()
        return self._checked(take(stream, 1, path).decode("latin-1"), context, path, offset)

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        stream.write(self._checked(obj, context, path, stream.tell()).encode("ascii"))
        return obj

    def _checked(self, letter: Any, context: Any, path: str, offset: int) -> str:
        if not isinstance(letter, str) or letter not in self.letters:
            raise FieldError(f"must be one of {self.choices}, not {shown(letter)}", path, offset)
        return letter


class Constant(Primitive):
    """Fixed bytes: tags and reserved flags. Building needs no value."""

    def __init__(self, value: bytes) -> None:
        super().__init__()
        self.value = value
        self.fixed_size = len(value)
        self.flagbuildnone = True

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> bytes:
        offset = stream.tell()
        data = take(stream, len(self.value), path)
        if data != self.value:
            raise FieldError(f"must be {self.value!r}, not {data!r}", path, offset)
        return data

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        if obj is not None and obj != self.value:
            raise FieldError(f"is always {self.value!r}, not {shown(obj)}", path, stream.tell())
        stream.write(self.value)
        return self.value


class _String(Primitive):
    """Bytes up to a NUL, read as UTF-8; bytes that are not UTF-8 survive as surrogate escapes."""

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> str:
        offset = stream.tell()
        data = bytearray()
        while chunk := stream.read(256):
            end = chunk.find(0)
            if end >= 0:
                data += chunk[:end]
                stream.seek(offset + len(data) + 1)
                return data.decode("utf-8", "surrogateescape")
            data += chunk
        raise FieldError("has no NUL at its end", path, offset)

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        try:
            data = obj.encode("utf-8", "surrogateescape")
            faithful = b"\0" not in data and data.decode("utf-8", "surrogateescape") == obj
        except (AttributeError, UnicodeEncodeError):
            faithful = False
        if not faithful:
            problem = "must be a str without NUL that UTF-8 with surrogateescape gives back"
            raise FieldError(f"{problem}, not {shown(obj)}", path, stream.tell())
        stream.write(data + b"\0")
        return obj


String = _String()


class Data(Primitive):
    """Bytes: as many as an earlier field gives, a fixed number, or all that are left.

    ``absent`` is the length that stands for None, such as -1 for NULL.
    """

    def __init__(self, length: Callable[[Any], int] | int | None = None, absent: int | None = None) -> None:
        super().__init__()
        self.fixed_size = length if isinstance(length, int) else None
        self.length = length
        self.absent = absent
        self.flagbuildnone = absent is not None

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> bytes | None:
        if self.length is None:
            return stream.read()
        length = self.length if isinstance(self.length, int) else self.length(context)
        if self.absent is not None and length < 0:
            if length != self.absent:
                problem = f"has the length {length}: it must be {self.absent}, or at least 0"
                raise FieldError(problem, path, stream.tell())
            return None
        return take(stream, length, path)

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        if obj is None and self.absent is not None:
            return None
        if not isinstance(obj, bytes):
            raise FieldError(f"must be bytes, not {shown(obj)}", path, stream.tell())
        if self.fixed_size is not None and len(obj) != self.fixed_size:
            raise FieldError(f"must be {_plural(self.fixed_size)}, not {len(obj)}", path, stream.tell())
        stream.write(obj)
        return obj


class _Nothing(Primitive):
    """No bytes."""

    fixed_size = 0

    def __init__(self) -> None:
        super().__init__()
        self.flagbuildnone = True

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> None:
        return None

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        return None


class _Absent(_Nothing):
    """Nothing on the wire, None in Python. Unlike construct's Pass it refuses to build another value."""

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        if obj is not None:
            problem = "must be None: these options, or this tag, do not carry it"
            raise FieldError(f"{problem}; got {shown(obj)}", path, stream.tell())


Absent = _Absent()


class _End(_Nothing):
    """The end of the message: trailing bytes are an error, unless the parameter ``open_end`` is set."""

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> None:
        if context._params.get("open_end"):
            return
        offset = stream.tell()
        left = len(stream.read())
        if left:
            raise FieldError(f"ends here, but {_plural(left)} follow{'s' * (left == 1)}", path, offset)


End = _End()


class Since(_Nothing):
    """A check that the protocol version is at least the message's first one."""

    def __init__(self, version: int) -> None:
        super().__init__()
        self.version = version

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> None:
        asked = context._params.get("proto_version", 1)
        if asked < self.version:
            problem = f"belongs to protocol version {self.version} and newer, not to version {asked}"
            raise FieldError(f"{problem}: pass proto_version={self.version}", path, stream.tell())

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        self._parse(stream, context, path)
