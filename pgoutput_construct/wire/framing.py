"""The constructs of messages that say how long they are: those of a connection, which follow each other on a socket."""

from io import SEEK_CUR, SEEK_END
from typing import IO, Any

from pgoutput_construct.wire.primitives import FieldError, Number, Primitive

__all__ = ["Closed", "Length"]


class Length(Primitive):
    """How many bytes the message takes from this number's own first one on; ``Closed`` writes it."""

    def __init__(self, number: Number) -> None:
        super().__init__()
        self.number = number
        self.fixed_size = number.fixed_size
        self.flagbuildnone = True

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> int:
        start = stream.tell()
        length = self.number._parse(stream, context, path)
        behind = stream.tell()
        left = stream.seek(0, SEEK_END) - start
        stream.seek(behind)
        if length != left:
            raise FieldError(f"says that {length} bytes follow from here on, but {left} do", path, start)
        return length

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        self.number._build(0, stream, context, path)


class Closed(Primitive):
    """The end of a message whose Length is at an offset."""

    def __init__(self, offset: int, number: Number) -> None:
        super().__init__()
        self.offset = offset
        self.number = number
        self.fixed_size = 0
        self.flagbuildnone = True

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> None:
        if left := len(stream.read()):
            stream.seek(-left, SEEK_CUR)
            raise FieldError(f"ends here, but {left} more byte{'s' * (left > 1)} belong to it", path, stream.tell())

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        size = stream.tell()
        stream.seek(self.offset)
        self.number._build(size - self.offset, stream, context, path)
        stream.seek(size)
