"""Structs of Thrift's compact protocol, which Parquet's page headers and footers are.

Source: the Apache Thrift documents, "Thrift Compact protocol encoding".
"""

import io
from typing import Any, Final, TypeAlias

__all__ = ["Struct", "read_struct", "struct_bytes"]

Struct: TypeAlias = dict[int, tuple[int, Any]]
"""The fields of a struct by id: (type, value). A list is (type of its elements, elements)."""

_TRUE, _FALSE, _I8, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
_INTEGERS: Final = frozenset({_I16, _I32, _I64})
_LONG: Final = 15
_VARINT_BITS: Final = 64
_SIZES: Final = {_TRUE: 1, _FALSE: 1, _I8: 1, _DOUBLE: 8}
"""Of values that stay bytes here; a boolean is one byte in a list, and none as a field."""


def read_struct(file: io.BytesIO) -> Struct:
    """Parse a struct at the position of a file, which moves after it; raise ValueError for anything else."""
    try:
        return _read_struct(file)
    except RecursionError:
        raise ValueError("a struct of Thrift is nested too deeply") from None


def _read_struct(file: io.BytesIO) -> Struct:
    fields: Struct = {}
    number = 0
    while head := _take(file, 1)[0]:
        number = number + (head >> 4) if head >> 4 else _unfold(_read_varint(file))
        kind = head & _LONG
        fields[number] = kind, (b"" if kind in (_TRUE, _FALSE) else _read(file, kind))
    return fields


def struct_bytes(fields: Struct) -> bytes:
    """Return a struct as it is written."""
    out, before = bytearray(), 0
    for number, (kind, value) in fields.items():
        step = number - before
        out += bytes([step << 4 | kind]) if 0 < step <= _LONG else bytes([kind]) + _varint(_fold(number))
        out += _bytes(kind, value)
        before = number
    return bytes(out) + b"\0"


def _read(file: io.BytesIO, kind: int) -> Any:
    if kind in _INTEGERS:
        return _unfold(_read_varint(file))
    if kind == _BINARY:
        return _take(file, _read_varint(file))
    if kind in (_LIST, _SET):
        head = _take(file, 1)[0]
        size = head >> 4 if head >> 4 < _LONG else _read_varint(file)
        return head & _LONG, [_read(file, head & _LONG) for _ in range(size)]
    if kind == _STRUCT:
        return _read_struct(file)
    if kind not in _SIZES:
        raise ValueError(f"a value of type {kind} of Thrift")
    return _take(file, _SIZES[kind])


def _take(file: io.BytesIO, size: int) -> bytes:
    content = file.read(size)
    if len(content) < size:
        raise ValueError("a struct of Thrift is cut off")
    return content


def _bytes(kind: int, value: Any) -> bytes:
    if kind in _INTEGERS:
        return _varint(_fold(value))
    if kind == _BINARY:
        return _varint(len(value)) + bytes(value)
    if kind in (_LIST, _SET):
        element, values = value
        head = bytes([min(len(values), _LONG) << 4 | element]) + (_varint(len(values)) if len(values) >= _LONG else b"")
        return head + b"".join(_bytes(element, one) for one in values)
    return struct_bytes(value) if kind == _STRUCT else bytes(value)


def _read_varint(file: io.BytesIO) -> int:
    number = shift = 0
    while (byte := _take(file, 1)[0]) & 0x80:
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > _VARINT_BITS:
            raise ValueError("a number of Thrift has more than 64 bits")
    return number | byte << shift


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def _fold(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def _unfold(number: int) -> int:
    return number >> 1 if number % 2 == 0 else -(number + 1 >> 1)
