"""Runs of fixed fields, which the codec reads and writes by one struct each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.language import Field
from tools.language.model import Element
from tools.language.names import MACHINERY

__all__ = [
    "AHEAD",
    "INDENT",
    "Formats",
    "Lines",
    "Run",
    "code",
    "condition",
    "indented",
    "is_fixed",
    "runs",
    "variable",
]

Lines = Iterator[str]
INDENT = "    "
REJECT = f"{INDENT}raise Reject"


AHEAD = 256
"""Values shorter than this are read together with the head of the next one."""

CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
SIZES = {code: size for size, code in CODES.items()}


def indented(lines: Lines) -> Lines:
    """Return lines one step further in."""
    return (INDENT + line for line in lines)


def variable(name: str) -> str:
    """Return the variable that holds a field."""
    return f"{name}_" if name in MACHINERY else name


def is_fixed(element: Element) -> bool:
    """Whether an element always takes the same bytes, or none when it is absent."""
    if not isinstance(element, Field) or element.part:
        return False
    return isinstance(element.constant, bytes) or (element.type is not None and element.type.bytes is not None)


def code(field: Field) -> str:
    """Return the code of a fixed field in a struct format."""
    letter = CODES[1 if isinstance(field.constant, bytes) else field.type.bytes]  # type: ignore[union-attr, index]
    return letter.lower() if field.type is not None and field.type.signed else letter


def condition(field: Field) -> str:
    """Return the condition under which a field is there, as Python; empty when it always is."""
    version = [f"proto_version >= {field.since}"] if field.since else []
    return " and ".join([*version, *([field.when] if field.when else [])])


@dataclass(frozen=True)
class Run:
    """Fixed fields that follow each other, at most one condition among them."""

    fields: tuple[Field, ...]

    @property
    def condition(self) -> str:
        """The condition of those fields that have one."""
        return next((condition(field) for field in self.fields if condition(field)), "")

    def present(self, holds: bool) -> tuple[Field, ...]:
        """Return the fields that are there when the condition holds, or when it does not."""
        return tuple(field for field in self.fields if holds or not condition(field))


def runs(elements: Sequence[Element]) -> Iterator[Run | Element]:
    """Yield the elements, fixed fields gathered into runs."""
    gathered: list[Field] = []
    for element in elements:
        if is_fixed(element):
            assert isinstance(element, Field)
            conditions = {condition(f) for f in (*gathered, element)} - {""}
            if len(conditions) > 1:
                yield Run(tuple(gathered))
                gathered = []
            gathered.append(element)
            continue
        if gathered:
            yield Run(tuple(gathered))
            gathered = []
        yield element
    if gathered:
        yield Run(tuple(gathered))


class Formats:
    """The struct formats that the functions use, each compiled once."""

    def __init__(self) -> None:
        self.used: set[tuple[str, str]] = set()

    def unpack(self, codes: str) -> str:
        """Return the name of the function that reads a format at an offset."""
        self.used.add(("unpack_from", codes))
        return f"_unpack_{codes}"

    def ahead(self, codes: str) -> str:
        """Return the name of the functions that read a value of each short length, and a format behind it."""
        self.used.add(("ahead", codes))
        return f"_ahead_{codes}"

    def pack(self, codes: str) -> str:
        """Return the name of the function that writes a format."""
        self.used.add(("pack", codes))
        return f"_pack_{codes}"

    def constants(self) -> str:
        """Return the lines that define them."""
        return "\n".join(self._constant(kind, codes) for kind, codes in sorted(self.used))

    @staticmethod
    def _constant(kind: str, codes: str) -> str:
        if kind == "ahead":
            return f'_ahead_{codes} = [Struct(f">{{length}}s{codes}").unpack_from for length in range({AHEAD})]'
        return f'_{kind.removesuffix("_from")}_{codes} = Struct(">{codes}").{kind}'

    @staticmethod
    def size(codes: str) -> int:
        """Return the bytes that a format takes."""
        return sum(1 if letter == "x" else SIZES[letter.upper()] for letter in codes)
