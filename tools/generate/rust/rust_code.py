"""What all parts of a Rust module share: its specification, its types, its lines, and the frame of a function."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Final, TypeVar

from tools.generate.rust.rust_names import RustTypes
from tools.generate.text import snake_case
from tools.generate.typed_layouts import TypedLayouts, pascal, step
from tools.generate.writer import BraceWriter
from tools.language import Choice, Spec
from tools.language.elements import Structure

__all__ = ["COPIED", "WIDTH", "RustCode"]

WIDTH: Final = 100
"""The width of a line, by rustfmt's default."""
COPIED: Final = "Clone, Copy, Debug, PartialEq, Eq"
"""What a type implements whose values are copied."""

_Content = TypeVar("_Content")


class RustCode:
    """A Rust module that is being written; ``union`` is the name of the enum of all messages."""

    def __init__(self, spec: Spec, union: str) -> None:
        self.spec, self.union = spec, union
        self.typed = TypedLayouts(spec)
        self.types = RustTypes(self.typed, union)
        self.write = BraceWriter()

    def about(self, *paragraphs: str) -> None:
        """Write a comment for the documentation."""
        for number, paragraph in enumerate(paragraphs):
            if number:
                self.write("///")
            self.write(*(f"/// {line}" for line in wrap(paragraph, WIDTH - len("/// ") - 4 * self.write.depth)))

    def derived(self, *paragraphs: str, traits: str = "Clone, Debug, PartialEq, Eq") -> None:
        """Write what comes before a type: its comment, and what the compiler implements for it."""
        self.about(*paragraphs)
        self.write(f"#[derive({traits})]")

    def plain_enum(self, name: str, about: str, members: Iterable[tuple[str, str]]) -> None:
        """Write an enum without contents; ``members`` are names with comments, that of the default first."""
        self.derived(about, traits="Clone, Copy, Debug, Default, PartialEq, Eq")
        with self.write.block(f"pub enum {name} {{"):
            for number, (member, said) in enumerate(members):
                self.about(said)
                if number == 0:
                    self.write("#[default]")
                self.write(f"{pascal(member)},")
        self.write("")

    @contextmanager
    def function(self, head: str, parameters: Sequence[str], result: str) -> Iterator[None]:
        """Write the frame of a function as rustfmt does; its body goes inside."""
        returned = f") -> rt::Result<{result}> {{"
        line = f"{head}({', '.join(parameters)}{returned}"
        if len(line) + 4 * self.write.depth > WIDTH:
            self.write(f"{head}(", *(f"    {each}," for each in parameters))
            line = returned
        with self.write.block(line):
            yield

    @contextmanager
    def implementation(self, name: str) -> Iterator[None]:
        """Write the frame of the functions of a type; they go inside."""
        with self.write.block(f"impl{self.types.generic(name)} {self.types.named(name)} {{"):
            yield

    def branches(self, cases: Iterable[tuple[str, _Content]], start: str = "", end: str = "}") -> Iterator[_Content]:
        """Yield the content of each case, and write the frame of an if expression around what its loop writes.

        Args:
            cases: A test for each content; an empty one for what is left.
            start: What comes before the first test.
            end: What comes after the last content.
        """
        for test, content in cases:
            self.write(f"{start}if {test} {{" if test else "} else {")
            self.write.depth += 1
            yield content
            self.write.depth -= 1
            start = "} else "
        self.write(end)

    def layout(self, owner: Structure | Choice) -> str:
        """Return the last argument for a function of a structure or a choice; empty if no parameter matters there."""
        return ", layout" if self._needs_layout(owner) else ""

    def layout_parameter(self, owner: Structure | Choice) -> list[str]:
        """Return the last parameter of such a function; none if it has no such argument."""
        return ["layout: &Layout"] if self._needs_layout(owner) else []

    def _needs_layout(self, owner: Structure | Choice) -> bool:
        return self.typed.needs(Structure((owner,)) if isinstance(owner, Choice) else owner)

    def nested_name(self, structure: Structure) -> str:
        """Return the name in the functions of a structure that is no record; empty if it has none of its own."""
        return snake_case(self.typed.nested.get(id(structure), ""))

    def tag_path(self, choice: Choice) -> str:
        """Return the path of a choice's tag in an error."""
        return self._step(choice) if choice.valued else choice.kind_name

    def inside(self, choice: Choice, content: str) -> str:
        """Return the Result of the content of a choice, whose errors are inside of it."""
        path = self._step(choice)
        return f'rt::inside("{path}", {content})' if path else content

    def _step(self, choice: Choice) -> str:
        return step(self.typed.owner(choice), choice)
