"""Lines of generated Python, indented by their enclosing blocks."""

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import indent

__all__ = ["Writer"]


class Writer:
    """Collects lines: ``write("at += 1")``, and those of a block under ``with write.block("if found:")``."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, *lines: str) -> None:
        """Add lines at this depth; a line may contain several, which keep their own indentation."""
        self.lines += [indent(line, "    " * self.depth) for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a head, and indent what is written inside; a block without lines gets a ``pass``."""
        self(head)
        self.depth += 1
        before = len(self.lines)
        try:
            yield
            if len(self.lines) == before:
                self("pass")
        finally:
            self.depth -= 1

    def __str__(self) -> str:
        return "\n".join(self.lines)
