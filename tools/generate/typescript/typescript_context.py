"""What the parts of the emitter of TypeScript share: the writer, the types, conditions, and paths of errors."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Final, TypeAlias

from tools.generate.typed_layouts import Number, TypedLayouts, condition_text, is_optional, step
from tools.generate.typescript.typescript_names import camel
from tools.generate.writer import BraceWriter
from tools.language import Choice, Field, Spec
from tools.language.conditions import Term
from tools.language.elements import Element, Structure

__all__ = [
    "WIDTH",
    "Shape",
    "Source",
    "TypeScriptContext",
    "condition",
    "element_named",
    "presence",
    "tag_step",
    "under_step",
    "variant_blocks",
]

WIDTH: Final = 120
"""The longest line of code, as spec/typescript/package.json has it for prettier."""
_WIDTH: Final = 100

Source: TypeAlias = Callable[[str], str]
"""Returns the expression of a field's value, by the field's name."""

Shape: TypeAlias = Structure | Choice
"""What can have functions of its own."""


class _Writer(BraceWriter):
    """Writes blocks without content in one line, as prettier does."""

    @contextmanager
    def block(self, head: str, end: str = "}") -> Iterator[None]:
        with super().block(head, end):
            before = len(self.lines)
            yield
            is_empty = len(self.lines) == before
        if is_empty:
            self.lines[-2:] = [self.lines[-2] + end]


class TypeScriptContext:
    """What the parts of the emitter share: the specification, its types, and the writer of the module."""

    def __init__(self, spec: Spec, union: str) -> None:
        self.spec = spec
        self.union = union
        """The name of the type of all messages."""
        self.typed = TypedLayouts(spec)
        self.write = _Writer("  ")

    def about(self, *paragraphs: str) -> None:
        """Write a comment of documentation."""
        lines: list[str] = []
        for paragraph in paragraphs:
            lines += ["", *wrap(paragraph.replace("*/", "* /"), _WIDTH - 3)]
        if len(lines) == 2:
            self.write(f"/** {lines[1]} */")
        else:
            self.write("/**", *(f" * {line}".rstrip() for line in lines[1:]), " */")

    @contextmanager
    def declaration(self, head: str, end: str = "}") -> Iterator[None]:
        """Write a declaration around what is written inside, and an empty line after it."""
        with self.write.block(head, end):
            yield
        self.write("")

    def listed(self, head: str, texts: Sequence[str], end: str) -> None:
        """Write a declaration with a list of texts, in one line if that has room for it, and an empty line after it."""
        literals = [f'"{text}"' for text in texts]
        line = f"{head}{', '.join(literals)}{end}"
        self.write(*([line] if len(line) <= WIDTH else [head, *(f"  {each}," for each in literals), end]), "")

    @contextmanager
    def indented(self, head: str) -> Iterator[None]:
        """Write a line without braces, and indent what is written inside: the label of a case, say."""
        self.write(head)
        self.write.depth += 1
        yield
        self.write.depth -= 1

    def declared(self, shape: Shape) -> str:
        """Return the parameter for the layout, after others; empty for functions that do not need it."""
        return ", layout: Layout" if self._needs_layout(shape) else ""

    def passed(self, shape: Shape) -> str:
        """Return the argument for that parameter."""
        return ", layout" if self._needs_layout(shape) else ""

    def own_name(self, structure: Structure) -> str | None:
        """Return what the functions of a nested structure are called; None if it has none of its own."""
        if structure.single is None:
            return self.typed.record(structure).name
        return self.typed.nested.get(id(structure))

    def is_widened(self, field: Field, variant: Field) -> bool:
        """Return whether a variant's number becomes a bigint because another variant has 64 bits."""
        kind = self.typed.kind(field)
        return isinstance(kind, Number) and kind.size == 8 and (variant.size or 0) < 8

    def _needs_layout(self, shape: Shape) -> bool:
        return self.typed.needs(Structure((shape,)) if isinstance(shape, Choice) else shape)


def tag_step(structure: Structure, choice: Choice) -> str:
    """Return the step of a choice's tag in the path of an error."""
    return step(structure, choice) if choice.valued else choice.kind_name


def under_step(runtime: str, name: str, call: str) -> str:
    """Return a call under a step of the path of errors, if that has a name; ``runtime`` is the reader or the writer."""
    return f'{runtime}.inside("{name}", () => {call})' if name else call


def element_named(structure: Structure, name: str) -> Element:
    """Return the element of a structure that has a name."""
    return next(each for each in structure.elements if each.name == name)


def condition(term: Term | None, named: Source = str) -> str:
    """Return a condition; ``named`` gives the values of the fields whose bits it tests."""
    return condition_text(
        term, lambda name: f"layout.{camel(name)}", lambda field, bit: f"wire.hasBit({named(field)}, {bit})"
    )


def presence(structure: Structure, element: Element, named: Source) -> str:
    """Return the test for the presence of an element; empty for a choice, and for what is always present."""
    if element.term is None or isinstance(element, Choice):
        return ""

    def value(name: str) -> str:
        return f"({named(name)} ?? 0)" if is_optional(element_named(structure, name)) else named(name)

    return condition(element.term, value)


def variant_blocks(structure: Structure, field: Field, named: Source) -> Iterator[tuple[Field, str]]:
    """Yield the variants of a field, each with the head of the block for it."""
    for number, each in enumerate(field.variants):
        if field.complete and each is field.variants[-1]:
            yield each, "else {"
        else:
            yield each, f"{'else ' if number else ''}if ({presence(structure, each, named)}) {{"
