"""What the parts of the emitter of Go share: the lines of the file, and the types and names in it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from textwrap import wrap
from typing import Final

from tools.generate.go.go_names import bytes_literal, condition, exported
from tools.generate.typed_layouts import Branch, Kind, TypedLayouts, Union, is_optional, step
from tools.generate.writer import BraceWriter
from tools.language import Choice, Field, Spec
from tools.language.elements import Element, Structure

__all__ = ["GoLines", "GoModule", "branches_with_more", "is_exposed", "kind_type", "shared_kind", "tags_literal"]

_WIDTH: Final = 97
"""The longest line of a comment, without its slashes."""


class GoLines(BraceWriter):
    """Collects the lines of a file, as gofmt formats them."""

    def __init__(self) -> None:
        super().__init__("\t")

    def about(self, *paragraphs: str) -> None:
        """Add a comment."""
        for number, paragraph in enumerate(paragraphs):
            if number:
                self("//")
            self(*(f"// {line}" for line in wrap(paragraph, _WIDTH)))

    @contextmanager
    def definition(self, head: str) -> Iterator[None]:
        """Add a definition, which the head begins and a brace ends, and an empty line after it."""
        with self.block(head):
            yield
        self("")

    def struct(self, name: str, fields: Iterable[tuple[str, str]]) -> None:
        """Add a struct; each of its fields is a comment and a declaration."""
        rows = list(fields)
        if not rows:
            self(f"type {name} struct{{}}", "")
            return
        with self.definition(f"type {name} struct {{"):
            for number, (about, declared) in enumerate(rows):
                if number:
                    self("")
                self.about(about)
                self(declared)

    def constant(self, about: str, declared: str, value: object) -> None:
        """Add a constant with its comment: ``declared`` is its name and type."""
        self.about(about)
        self(f"const {declared} = {value}", "")

    def case(self, label: str) -> None:
        """Add a label of the switch whose block encloses this: it stands as far out as the switch."""
        self.depth -= 1
        self(f"{label}:")
        self.depth += 1

    @contextmanager
    def branch(self, head: str) -> Iterator[None]:
        """Add a branch of an if statement without its end: another branch follows, or a brace."""
        self(head)
        self.depth += 1
        yield
        self.depth -= 1

    @contextmanager
    def within(self, path: str, name: str) -> Iterator[None]:
        """Add the statements that put a step into the path of errors while what is inside is done; "" is no step."""
        if name:
            self(f'{path}.Push("{name}")')
        yield
        if name:
            self(f"{path}.Pop()")


class GoModule:
    """A file that is being written: its specification, types and lines."""

    def __init__(self, spec: Spec, union: str) -> None:
        self.spec, self.union = spec, union
        self.typed = TypedLayouts(spec)
        self.write = GoLines()

    def argument(self, inside: Structure | Choice) -> str:
        """Return the further argument with which something is read and written; empty if it needs none."""
        return ", layout" if self._needs_layout(inside) else ""

    def parameter(self, inside: Structure | Choice) -> str:
        """Return the declaration of that argument."""
        return ", layout *Layout" if self._needs_layout(inside) else ""

    def _needs_layout(self, inside: Structure | Choice) -> bool:
        return self.typed.needs(Structure((inside,)) if isinstance(inside, Choice) else inside)

    def place(self, structure: Structure, name: str) -> str:
        """Return where a structure's own functions have the value of an element."""
        return "value" if id(structure) in self.typed.nested else f"m.{exported(name)}"

    def test(self, structure: Structure, element: Element) -> str:
        """Return the condition of an element; empty if it is always present, or if its tag says whether it is."""
        if element.term is None or isinstance(element, Choice):
            return ""

        def value(name: str) -> str:
            field = next(each for each in structure.elements if each.name == name)
            return self.place(structure, name) + ".V" * is_optional(field)

        return condition(element.term, value)

    def variants(self, structure: Structure, field: Field) -> Iterator[tuple[str, Field]]:
        """Yield the variants of a field, each with the head of its branch of an if statement."""
        for number, each in enumerate(field.variants):
            if number and field.complete and each is field.variants[-1]:
                yield "} else {", each
            else:
                yield f"{'} else ' * bool(number)}if {self.test(structure, each)} {{", each

    def tag_step(self, choice: Choice) -> str:
        """Return the name of a choice's tag in the path of an error."""
        return step(self.typed.owner(choice), choice) if choice.valued else choice.kind_name

    def content(self, union: Union, branch: Branch) -> str:
        """Return where a union's own functions have the content of a branch."""
        return f"m.{exported(branch.name)}" if shared_kind(union) is None else "m.Value"


def shared_kind(union: Union) -> Kind | None:
    """Return the kind that the contents of all branches have; None if they differ."""
    kinds = {branch.kind for branch in union.branches if branch.kind is not None}
    return kinds.pop() if len(kinds) == 1 else None


def branches_with_more(union: Union) -> list[Branch]:
    """Return the branches with more than a tag: they have content or a condition."""
    return [each for each in union.branches if each.kind is not None or each.alternative.term is not None]


def kind_type(choice: Choice) -> str:
    """Return the type of the tags of a choice."""
    return "uint8" if choice.numeric else "wire.Letter"


def tags_literal(choice: Choice) -> str:
    """Return the literal of a string with the tags of a choice."""
    return bytes_literal(b"".join(each.tag for each in choice.alternatives))


def is_exposed(structure: Structure, element: Element) -> bool:
    """Return whether an object has the value of an element: constants, counts and lengths are on the wire only."""
    return any(each is element for each in structure.exposed)
