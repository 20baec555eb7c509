"""Parts with a length of their own: they have that many bytes, and on build the length is that of their bytes."""

from io import SEEK_SET
from typing import IO, Any, NamedTuple, cast

from construct import Construct, Subconstruct

from pgoutput_construct.wire.primitives import FieldError, Number, take

__all__ = ["Area", "AreaSize"]


class _Blank(NamedTuple):
    """A length that the Area after it will write."""

    offset: int
    number: Number


class AreaSize(Subconstruct):
    """The length of an Area: read as a number; a build leaves it blank until the Area is built."""

    def __init__(self, number: Number) -> None:
        super().__init__(number)
        self.flagbuildnone = True

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> _Blank:
        offset = stream.tell()
        self.subcon._build(0, stream, context, path)
        return _Blank(offset, self.subcon)


class Area(Subconstruct):
    """A part that has as many bytes as the earlier AreaSize of this name: it is read as if nothing followed them."""

    def __init__(self, length: str, subcon: Construct) -> None:
        super().__init__(subcon)
        self.length = length

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> Any:
        size, start = context[self.length], stream.tell()
        try:
            take(stream, size, path)
        except FieldError:
            if recorder := context._params.get("recorder"):
                recorder.missing(path)
            raise
        stream.seek(start)
        return self.subcon._parsereport(cast("IO[bytes]", _Front(stream, start + size)), context, path)

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        start = stream.tell()
        self.subcon._build(obj, stream, context, path)
        end = stream.tell()
        blank: _Blank = context[self.length]
        stream.seek(blank.offset)
        blank.number._build(end - start, stream, context, f"{path.rpartition(' -> ')[0]} -> {self.length}")
        stream.seek(end)
        return obj


class _Front:
    """A stream that ends before another one does; offsets are those of the other one."""

    def __init__(self, stream: IO[bytes], end: int) -> None:
        self.stream = stream
        self.end = end

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most up to the end."""
        left = self.end - self.stream.tell()
        return self.stream.read(left if size < 0 else min(size, left))

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self.stream.tell()

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        """Go to an offset, from the first byte or from the next one; return it."""
        return self.stream.seek(offset, whence)
