"""The table of notations: each row agrees with the primitive that reads its bytes, and with itself."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from tools.language.fields import Type
from tools.language.source import Source

__all__ = ["NUMBERS", "TEXTS", "notations"]

NUMBERS: Final[Mapping[str, tuple[int, bool, str]]] = {
    "UInt8": (1, False, "int"),
    "SInt8": (1, True, "int"),
    "UInt16": (2, False, "int"),
    "SInt16": (2, True, "int"),
    "UInt32": (4, False, "int"),
    "SInt32": (4, True, "int"),
    "UInt64": (8, False, "int"),
    "SInt64": (8, True, "int"),
    "Oid": (4, False, "int"),
    "Xid": (4, False, "int"),
    "FullXid": (8, False, "int"),
    "XLogRecPtr": (8, False, "Lsn"),
    "TimestampTz": (8, True, "Timestamp"),
    "Float64": (8, False, "Float"),
}
"""The primitives that read numbers: of each the number of bytes, whether it has a sign, and the type in Python."""
TEXTS: Final[Mapping[str, tuple[str, str]]] = {"String": ("str", "string"), "Data": ("bytes", "binary")}
"""The others: of each the type in Python, and in Arrow."""

Words = tuple[str, str]
"""A problem and its remedy."""


def notations(source: Source) -> tuple[Type, ...]:
    """Return the rows of the table, whose shape has been checked; raise SpecError for one that contradicts itself."""
    types: list[Type] = []
    for index, row in enumerate(source.data["types"]):
        kind, place = Type(**row), ("types", index)
        if any((each.notation, each.signed) == (kind.notation, kind.signed) for each in types):
            raise source.error(place, f"{kind.notation} occurs twice", "Keep one of them.")
        for problem, remedy in _problems(kind):
            raise source.error(place, f"{kind.notation}: {problem}", remedy)
        types.append(kind)
    return tuple(types)


def _problems(kind: Type) -> Iterator[Words]:
    if (kind.bytes is None) != (kind.python in ("str", "bytes")):
        problem = f"{kind.python} {'has no' if kind.bytes else 'needs a'} number of bytes"
        yield problem, "Write bytes of numbers, of text and bytes none."
    elif kind.bytes is None:
        yield from _problems_of_text(kind)
    else:
        yield from _problems_of_number(kind, kind.bytes)


def _problems_of_text(kind: Type) -> Iterator[Words]:
    if kind.construct not in TEXTS:
        yield (
            f"{kind.construct} reads a number, and {kind.python} is not a number",
            f"Write construct: one of {[*TEXTS]}.",
        )
    elif (kind.python, kind.arrow) != TEXTS[kind.construct]:
        python, arrow = TEXTS[kind.construct]
        problem = f"{kind.construct} reads {python} and Arrow's {arrow}, not {kind.python} and {kind.arrow}"
        yield problem, f"Write python: {python} and arrow: {arrow}."
    elif kind.signed:
        yield f"{kind.python} has no sign", "Remove signed."


def _problems_of_number(kind: Type, size: int) -> Iterator[Words]:
    arrow = f"float{8 * size}" if kind.python == "Float" else f"{'' if kind.signed else 'u'}int{8 * size}"
    fitting = [name for name, facts in NUMBERS.items() if facts == (size, kind.signed, kind.python)]
    if kind.arrow != arrow and (kind.python == "Float" or not kind.arrow.endswith(f"int{8 * size}")):
        yield f"a number of {size} bytes is not Arrow's {kind.arrow}", f"Write arrow: {arrow}."
    elif kind.arrow != arrow:
        yield f"a number {_sign(kind.signed)} is not Arrow's {kind.arrow}", f"Write arrow: {arrow}, or change signed."
    elif kind.construct not in fitting:
        found = NUMBERS.get(kind.construct)
        reads = f"{found[0]} bytes {_sign(found[1])} as {found[2]}" if found else "no number"
        problem = f"{kind.construct} reads {reads}, not {size} bytes {_sign(kind.signed)} as {kind.python}"
        others = f"Write construct: one of {fitting}, or" if fitting else "Write"
        yield problem, f"{others} the bytes, signed and python of {kind.construct}."
    elif (bits := re.match(r"(?:Int|Float)([0-9]+)", kind.notation)) and int(bits[1]) != 8 * size:
        yield (
            f"its name says {bits[1]} bits, and it has {size} bytes",
            f"Call it {kind.notation[: bits.start(1)]}{8 * size}, or change bytes.",
        )


def _sign(signed: bool) -> str:
    return "with a sign" if signed else "without a sign"
