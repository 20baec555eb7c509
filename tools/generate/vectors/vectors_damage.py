"""Damages the bytes of a message for the vectors: truncated, extended, and with values that a field must not have."""

from collections.abc import Iterator

from tools.generate.vectors.vectors_reader import Piece
from tools.language import Choice, Field

__all__ = ["damaged"]

Damaged = tuple[str, bytes]
"""A description of the damage, and the bytes."""


def damaged(data: bytes, pieces: list[Piece]) -> Iterator[Damaged]:
    """Yield the bytes of a message, damaged in one place each; some may be another valid message."""
    for piece in pieces:
        if piece.start:
            yield f"ends before {piece.path}", data[: piece.start]
        if piece.end - piece.start > 1:
            yield f"ends inside {piece.path}", data[: piece.end - 1]
        for value in _values(data[piece.start : piece.end], piece):
            yield f"{piece.path} is {value.hex()}", data[: piece.start] + value + data[piece.end :]
    yield "a byte follows", data + b"\0"
    yield "the same message follows", data + data


def _values(value: bytes, piece: Piece) -> Iterator[bytes]:
    """Yield values that a field must not have."""
    size, number = len(value), int.from_bytes(value, "big")
    last = (1 << 8 * size) - 1
    wrong: tuple[int, ...] = ()
    if piece.size:
        wrong = (number + 1, number - 1, last >> 1, (last >> 1) + 1, last)
    elif isinstance(piece.element, Choice) or (isinstance(piece.element, Field) and _is_constant(piece.element)):
        wrong = (number ^ 0x20, number + 1, 0, last)
    elif isinstance(piece.element, Field) and piece.element.bits:
        wrong = (*(1 << bit for bit in range(8 * size) if not 1 << bit & piece.element.mask), last)
    elif isinstance(piece.element, Field) and piece.element.values:
        wrong = (number ^ 0x20, max(piece.element.codes) + 1, 0, last)
    for each in dict.fromkeys(wrong):
        if 0 <= each <= last and each != number:
            yield each.to_bytes(size, "big")


def _is_constant(field: Field) -> bool:
    return field.constant_bytes is not None
