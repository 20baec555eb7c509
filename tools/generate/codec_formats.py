"""What both halves of the codec share: the names of a generated module, and its precompiled structs."""

from collections.abc import Iterable
from dataclasses import dataclass

from tools.generate.text import snake_case
from tools.language import Choice, Field, Spec
from tools.language.model import Fields, Structure
from tools.language.names import MACHINERY

__all__ = ["AHEAD", "Fixed", "Module", "Names", "length_code", "size_of", "without_extension"]

AHEAD = 256
"""Values shorter than this are read together with the head of the next one."""

SIZES = {"X": 1, "B": 1, "H": 2, "I": 4, "Q": 8}


@dataclass(frozen=True)
class Fixed:
    """Something of a fixed size that is read or written together with its neighbours: its code, and its variable."""

    code: str
    variable: str
    field: Field | None = None

    @property
    def condition(self) -> str:
        """When it is there; empty when it always is."""
        return self.field.condition if self.field else ""


def size_of(fixed: Iterable[Fixed]) -> int:
    """Return the bytes that they take together."""
    return sum(SIZES[each.code.upper()] for each in fixed)


class Names:
    """Gives the variables of one function their names: no name twice, and none that the function needs itself."""

    def __init__(self, spec: Spec) -> None:
        self.taken = MACHINERY | set(spec.arguments)

    def __call__(self, name: str) -> str:
        """Return a free name, the one asked for where it is free."""
        while name in self.taken:
            name += "_"
        self.taken |= {name}
        return name


class Module:
    """What the functions of one module need at its top."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.signature = ", ".join(spec.signature)
        self.arguments = "".join(f", {name}" for name in spec.arguments)
        self.looking_ahead: set[str] = set()
        """The parts and messages whose functions read ahead."""
        self._constants: dict[str, str] = {}
        self._functions: dict[str, str] = {}

    def unpack(self, codes: str) -> str:
        """Return the function that reads a format at an offset."""
        return self._constant(f"_unpack_{codes}", f'Struct(">{codes}").unpack_from')

    def ahead(self, codes: str) -> str:
        """Return the functions that read a value of each short length, and a format behind it."""
        functions = f'[Struct(f">{{length}}s{codes}").unpack_from for length in range({AHEAD})]'
        return self._constant(f"_ahead_{codes}", functions)

    def pack(self, codes: str) -> str:
        """Return the function that writes a format."""
        return self._constant(f"_pack_{codes}", f'Struct(">{codes}").pack')

    def draft(self, class_name: str) -> str:
        """Return the class of the objects that are filled before they become objects of a message class."""
        return self._constant(f"_{class_name}", f"draft(m.{class_name})")

    def function(self, verb: str, class_name: str) -> str:
        """Return the name of a function for a class; classes whose names differ in capitals alone get their own."""
        name = f"{verb}_{snake_case(class_name)}"
        while self._functions.setdefault(name, class_name) != class_name:
            name += "_"
        return name

    def constants(self) -> str:
        """Return the lines that define all of them."""
        return "\n".join(f"{name} = {value}" for name, value in sorted(self._constants.items()))

    def _constant(self, name: str, value: str) -> str:
        self._constants[name] = value
        return name


def without_extension(structure: Structure) -> Structure:
    """Return an extended structure as it is where none of its conditions holds: known by its principal."""
    extension = [element for element in structure.exposed if element.conditional]
    kept = [element for element in structure.elements if element not in extension]
    return Structure(tuple(Fields("body", (each,)) if isinstance(each, Field) else each for each in kept))


def length_code(choice: Choice) -> str | None:
    """Return the code of the length that every branch with a content starts with, None where they differ."""
    found = {_length_code(a.then) for a in choice.alternatives if a.then is not None}
    return found.pop() if len(found) == 1 else None


def _length_code(then: Structure | str) -> str | None:
    match then.elements if isinstance(then, Structure) else ():
        case [Field(name=name, code=code), Field(length=length)] if length == name:
            return code
    return None
