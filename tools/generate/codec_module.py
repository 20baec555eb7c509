"""What both halves of the codec share: the constants of a generated module, and the frame of a function."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tools.generate.text import snake_case
from tools.generate.writer import Writer
from tools.language import Field, Spec, conditions
from tools.language.elements import Element, Structure
from tools.language.fields import Fields
from tools.language.names import MACHINERY

__all__ = ["AHEAD", "REJECT", "Function", "Module", "behind", "without_extension"]

AHEAD = 256
"""Values shorter than this are read together with the head of the next one."""

REJECT = "    raise Reject"


class Module:
    """What the functions of one module need at its top."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.arguments = "".join(f", {name}" for name in spec.arguments)
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

    def checked(self, class_name: str) -> str:
        """Return the class that an object must have; to mypy the object stays anything, as messages do."""
        self._constant(f"_class_{class_name}: Any", f"m.{class_name}")
        return f"_class_{class_name}"

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


class Function(ABC):
    """One generated function, whose fields of fixed size wait to be read or written by one struct."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.write = Writer()
        self._taken = MACHINERY | set(module.spec.arguments)

    def name(self, name: str) -> str:
        """Return a name for a variable, the one asked for where it is free."""
        while name in self._taken:
            name += "_"
        self._taken |= {name}
        return name

    def line(self, *lines: str) -> None:
        """Write lines, behind the fields that wait."""
        self.flush()
        self.write(*lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a block, behind the fields that wait; none waits beyond it."""
        self.flush()
        with self.write.block(head):
            yield
            self.flush()

    @abstractmethod
    def flush(self) -> None:
        """Write what reads or writes the fields that wait."""


def without_extension(structure: Structure) -> Structure:
    """Return an extended structure as it is where none of its conditions holds: known by its principal."""
    extension = [e for e in structure.exposed if conditions.outside(e.term) is not None]
    removed = {element.name for element in extension}
    removed |= {size for size, measured in structure.sizes.items() if measured in removed}
    return _structure(element for element in structure.elements if element.name not in removed)


def behind(structure: Structure, field: Field) -> Structure:
    """Return what of a structure follows a field."""
    return _structure(structure.elements[structure.elements.index(field) + 1 :])


def _structure(elements: Iterable[Element]) -> Structure:
    return Structure(tuple(Fields("body", (each,)) if isinstance(each, Field) else each for each in elements))
