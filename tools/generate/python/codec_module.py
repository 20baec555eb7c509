"""What both halves of the codec share: the constants of a generated module, and the skeleton of a function."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain

from tools.generate.text import snake_case
from tools.generate.writer import Writer
from tools.language import Field, Spec
from tools.language.elements import Element, Structure
from tools.language.fields import Fields
from tools.language.names import MACHINERY

__all__ = ["AHEAD", "REJECT", "Function", "Module", "elements_after", "without_extension"]

AHEAD = 256
"""Values shorter than this are read by one unpack, together with the head of the next one."""

REJECT = "    raise Reject"


class Module:
    """The constants and helpers that the functions of a module need."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.arguments = "".join(f", {name}" for name in spec.arguments)
        self._constants: dict[str, str] = {}
        self._functions: dict[str, str] = {}

    def unpack(self, codes: str) -> str:
        """Return the name of the function that reads a format at an offset."""
        return self._constant(f"_unpack_{codes}", f'Struct(">{codes}").unpack_from')

    def ahead(self, codes: str) -> str:
        """Return the name of the table of functions that read a value of each short length and a format after it."""
        functions = f'[Struct(f">{{length}}s{codes}").unpack_from for length in range({AHEAD})]'
        return self._constant(f"_ahead_{codes}", functions)

    def pack(self, codes: str) -> str:
        """Return the name of the function that packs a format."""
        return self._constant(f"_pack_{codes}", f'Struct(">{codes}").pack')

    def draft(self, class_name: str) -> str:
        """Return the name of the unfrozen class with which a message class is filled (``codec_runtime.draft``)."""
        return self._constant(f"_{class_name}", f"draft(m.{class_name})")

    def checked(self, class_name: str) -> str:
        """Return the class for an isinstance check; for mypy the object stays Any, as messages do."""
        self._constant(f"_class_{class_name}: Any", f"m.{class_name}")
        return f"_class_{class_name}"

    def function(self, verb: str, class_name: str) -> str:
        """Return the function name for a class; classes whose names differ in case alone get names of their own."""
        name = f"{verb}_{snake_case(class_name)}"
        while self._functions.setdefault(name, class_name) != class_name:
            name += "_"
        return name

    def constants(self) -> str:
        """Return the lines that define all constants."""
        return "\n".join(f"{name} = {value}" for name, value in sorted(self._constants.items()))

    def _constant(self, name: str, value: str) -> str:
        self._constants[name] = value
        return name


class Function(ABC):
    """A generated function; consecutive fields of fixed size are pending until one struct reads or writes them."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.write = Writer()
        self._taken = MACHINERY | set(module.spec.arguments)

    def name(self, name: str) -> str:
        """Return a name for a variable: ``name`` itself if it is free."""
        while name in self._taken:
            name += "_"
        self._taken |= {name}
        return name

    def line(self, *lines: str) -> None:
        """Write lines, after the pending fields."""
        self.flush()
        self.write(*lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a block, after the pending fields; none stays pending after it."""
        self.flush()
        with self.write.block(head):
            yield
            self.flush()

    @abstractmethod
    def flush(self) -> None:
        """Write the code that reads or writes the pending fields."""


def without_extension(structure: Structure) -> Structure:
    """Return an extended structure if none of its conditions holds: its principal value, and what no object has.

    That may be a constant that older versions have where newer ones have a field.
    """
    removed = {element.name for element in structure.additions}
    removed |= {size for size, measured in structure.sizes.items() if measured in removed}
    return _structure(chain.from_iterable(_rest(each, each.name in removed) for each in structure.elements))


def _rest(element: Element, is_removed: bool) -> Iterator[Element]:
    if not is_removed:
        yield element
    elif isinstance(element, Field) and (hidden := tuple(each for each in element.variants if each.hidden)):
        yield replace(element, variants=hidden, complete=False)


def elements_after(structure: Structure, field: Field) -> Structure:
    """Return the elements of a structure after a field."""
    return _structure(structure.elements[structure.elements.index(field) + 1 :])


def _structure(elements: Iterable[Element]) -> Structure:
    return Structure(tuple(Fields("body", (each,)) if isinstance(each, Field) else each for each in elements))
