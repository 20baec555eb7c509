"""Runs of fixed fields, whose size is checked once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.language import Field
from tools.language.model import Element

__all__ = ["Run", "runs"]


@dataclass(frozen=True)
class Run:
    """Fixed fields that follow each other, at most one condition among them."""

    fields: tuple[Field, ...]

    @property
    def condition(self) -> str:
        """The condition of those fields that have one."""
        return next((field.condition for field in self.fields if field.condition), "")

    def present(self, holds: bool) -> tuple[Field, ...]:
        """Return the fields that are there when the condition holds, or when it does not."""
        return tuple(field for field in self.fields if holds or not field.condition)


def runs(elements: Sequence[Element]) -> Iterator[Run | Element]:
    """Yield the elements, fixed fields gathered into runs."""
    gathered: list[Field] = []
    for element in elements:
        fixed = isinstance(element, Field) and element.size is not None
        if gathered and (not fixed or len({f.condition for f in (*gathered, element)} - {""}) > 1):
            yield Run(tuple(gathered))
            gathered = []
        if isinstance(element, Field) and fixed:
            gathered.append(element)
        else:
            yield element
    if gathered:
        yield Run(tuple(gathered))
