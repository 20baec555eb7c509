"""Lines of generated code, indented by their enclosing blocks."""

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import indent

__all__ = ["BraceWriter", "Writer"]


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


class BraceWriter(Writer):
    """The same for languages whose blocks have braces."""

    def __init__(self, indentation: str = "    ") -> None:
        super().__init__()
        self.indentation = indentation

    def __call__(self, *lines: str) -> None:
        """Add lines at this depth; an empty one stays empty."""
        for each in lines:
            self.lines += [indent(line, self.indentation * self.depth) for line in each.split("\n")]

    @contextmanager
    def block(self, head: str, end: str = "}") -> Iterator[None]:
        """Add a head with what opens a block, unless that is there, indent what is written inside, and add its end.

        An ``else`` follows the brace of the block before it.
        """
        if head.startswith("else "):
            self.lines[-1] += f" {head}"
        elif head:
            self(head)
        self.depth += 1
        yield
        self.depth -= 1
        self(end)
