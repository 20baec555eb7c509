"""The walks of the columnar kernels over structures: validating walks, and reads of what was validated before."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.generate.text import snake_case
from tools.generate.writer import Writer
from tools.language import Alternative, Choice, Field, Repeat, Spec, conditions
from tools.language.elements import Element, Structure

__all__ = ["Names", "Run", "Steps", "number_at", "tag_name", "uses"]

WORDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
"""The function that reads a number of this many bytes."""


def number_at(field: Field, offset: int = 0) -> str:
    """Return the expression that reads a fixed field at an offset from ``at``."""
    return f"{WORDS[field.size or 0]}(data, at{f' + {offset}' if offset else ''})"


def tag_name(alternative: Alternative) -> str:
    """Return the constant for the tag of an alternative; alternatives with the same tag share it."""
    is_plain = alternative.letter.isalnum() and not alternative.numeric
    return f"LETTER_{alternative.letter}" if is_plain else f"BYTE_{alternative.tag[0]:#x}"


def uses(body: str, name: str) -> bool:
    """Return whether lines of code mention a variable."""
    return re.search(rf"\b{name}\b", body) is not None


class Names:
    """Names of functions and arguments in the kernels of one specification."""

    def __init__(self, spec: Spec) -> None:
        self.by_row = tuple(parameter.name for parameter in spec.state_parameters)
        """The parameters that states set: they have a value for each row of a batch, the others one for all rows."""
        shared = [f"{p.name}: {p.type}" for p in spec.parameters if p.name not in self.by_row]
        self.batch_signature = [*(f"{name}_by_row: Any" for name in self.by_row), *shared]
        """The parameters in the signature of functions over a batch."""
        self.signature, self.arguments = spec.signature, spec.arguments
        self._all = list(spec.class_names())

    def of(self, name: str) -> str:
        """Return the name of a class in function names: in snake case, unless that is ambiguous."""
        snake = snake_case(name)
        return snake if [snake_case(other) for other in self._all].count(snake) == 1 else name

    def row_values(self, body: str, row: str = "row") -> list[str]:
        """Return the lines that load the parameters of one row, as far as a body uses them."""
        return [f"{name} = {name}_by_row[{row}]" for name in self.by_row if uses(body, name)]


@dataclass(frozen=True)
class Run:
    """Consecutive fixed fields, with at most one condition among them."""

    fields: tuple[Field, ...]

    @property
    def conditional(self) -> Field | None:
        """The first of those fields that have a condition."""
        return next((field for field in self.fields if field.conditional), None)

    def present(self, holds: bool) -> tuple[Field, ...]:
        """Return the fields that are present if the condition holds, or if it does not."""
        return tuple(field for field in self.fields if holds or not field.conditional)


def runs(elements: Sequence[Element]) -> Iterator[Run | Element]:
    """Yield the elements, with fixed fields gathered into runs."""
    gathered: list[Field] = []
    for element in elements:
        fixed = isinstance(element, Field) and element.size is not None
        if gathered and (not fixed or _parted(gathered, element)):
            yield Run(tuple(gathered))
            gathered = []
        if isinstance(element, Field) and fixed:
            gathered.append(element)
        else:
            yield element
    if gathered:
        yield Run(tuple(gathered))


def _parted(gathered: Sequence[Field], element: Element) -> bool:
    """Return whether an element cannot join a run: it has another condition, or one on a field of the run."""
    flags = {bit.field for bit in conditions.bits(element.term)}
    return bool(flags & {field.name for field in gathered}) or len({f.term for f in (*gathered, element)} - {None}) > 1


class Steps:
    """Writes the walk over a structure; subclasses define what is checked, and what is done with each element."""

    checked = True
    """Whether the bytes are untrusted: walked for the first time."""

    def __init__(self, names: Names, structure: Structure, write: Writer) -> None:
        self.names = names
        self.structure = structure
        self.write = write
        self.depth = 1

    def local(self, name: str) -> str:
        """Return the variable of a count or a length; the kernels' own variables begin with a letter."""
        return "_" * self.depth + name

    def number_of_items(self, repeat: Repeat) -> str:
        """Return the number of a repeat's items; empty if they extend to the end of the message."""
        return self.local(repeat.count) if repeat.count else str(repeat.fixed or "")

    def flags(self, name: str) -> str:
        """Return the variable of a field of flags; names of arrays have no capitals."""
        return f"{self.local(name)}_FLAGS"

    def inner(self, structure: Structure) -> None:
        """Write the walk over a nested structure, which may have counts with the same names."""
        outer, self.structure, self.depth = self.structure, structure, self.depth + 1
        self.all(structure.elements)
        self.structure, self.depth = outer, self.depth - 1

    def all(self, elements: Sequence[Element]) -> None:
        """Write the walk over the elements of the structure."""
        for step in runs(elements):
            if isinstance(step, Run):
                self.run(step)
            elif isinstance(step, Choice):
                self.choice(step)
            elif isinstance(step, Field) and step.variants:
                self.variants(step)
            elif step.conditional:
                with self.write.block(f"if {step.test(self.flags)}:"):
                    self.repeat(step) if isinstance(step, Repeat) else self.field(step)
            elif isinstance(step, Repeat):
                self.repeat(step)
            else:
                self.field(step)

    def variants(self, field: Field) -> None:
        """Write the walk over a field with variants: over the variant that is present."""
        for number, each in enumerate(field.variants):
            last = each is field.variants[-1] and field.complete
            with self.write.block("else:" if last else f"{'elif' if number else 'if'} {each.test(self.flags)}:"):
                self.all([each.always])

    def refuse(self, test: str, field: str = "") -> None:
        """Write a check, if the walk checks; the field's name follows as a comment."""
        if self.checked:
            with self.write.block(f"if {test}:{f'  # {field}' if field else ''}"):
                self.write("return -1")

    def run(self, run: Run) -> None:
        """Write the walk over consecutive fixed fields."""
        first = run.conditional
        if first is None:
            self.fixed(run.fields)
            return
        with self.write.block(f"if {first.test(self.flags)}:"):
            self.fixed(run.present(True))
        if run.present(False):
            with self.write.block("else:"):
                self.fixed(run.present(False))

    def fixed(self, fields: Sequence[Field]) -> None:
        """Write the size check of fixed fields, the action for each, and the step over them."""
        total = sum(field.size or 0 for field in fields)
        self.refuse(f"end - at < {total}")
        offset = 0
        for field in fields:
            if field.name in self.structure.sizes:
                self.write(f"{self.local(field.name)} = {number_at(field, offset)}")
                if field.size == 8:  # words of eight bytes are signed here
                    self.refuse(f"{self.local(field.name)} < 0")
            else:
                if field.name in self.structure.flags:
                    self.write(f"{self.flags(field.name)} = {number_at(field, offset)}")
                self.number(field, offset)
            offset += field.size or 0
        self.write(f"at += {total}")

    def number(self, field: Field, offset: int) -> None:
        """Write the action for a fixed field."""
        test = "" if field.is_block else _test(field, number_at(field, offset))
        if test:
            self.refuse(test, field.name)

    def field(self, field: Field) -> None:
        """Write the walk over a field of variable size."""
        if field.is_area:
            self.area(str(field.part), self.local(str(field.length)))
        elif field.part:
            self.part(field.part)
        elif field.is_text:
            self.write(f"at = find_nul(data, at, end){'' if self.checked else ' + 1'}")
            if self.checked:
                self.refuse("at < 0")
                self.write("at += 1")
        elif field.length:
            self.refuse(f"{self.local(field.length)} > end - at")
            self.write(f"at += {self.local(field.length)}")
        else:
            self.write("at = end")

    def area(self, part: str, length: str) -> None:
        """Write the walk over a part with a length of its own, which takes all of its bytes."""
        self.refuse(f"{length} > end - at")
        self._call(part, f"at + {length}")

    def part(self, name: str) -> None:
        """Write the walk over a part, or over an item with a class of its own."""
        self._call(name, "end")

    def _call(self, part: str, end: str) -> None:
        self.write(f"at = walk_{self.names.of(part)}({', '.join(('data', 'at', end, *self.names.arguments))})")
        self.refuse("at < 0")

    def repeat(self, repeat: Repeat) -> None:
        """Write the walk over items. A count needs no bound of its own: each item takes a byte, or ends the walk."""
        number = self.number_of_items(repeat)
        loop = f"for _ in range({number}):" if number else "while at < end:"
        with self.write.block(loop):
            if repeat.item.single is None:
                self.part(str(repeat.class_name))
            else:
                self.inner(repeat.item)

    def choice(self, choice: Choice) -> None:
        """Write the walk over the branch of a choice."""
        if choice.optional:
            self.write("kind = u8(data, at) if at < end else 0")
        else:
            self.refuse("at >= end")
            self.write("kind = u8(data, at)")
        for index, alternative in enumerate(choice.alternatives):
            test = alternative.tested(f"kind == {tag_name(alternative)}")
            with self.write.block(f"{'elif' if index else 'if'} {test}:"):
                self.write("at += 1")
                self.alternative(choice, alternative)
        if not choice.optional and self.checked:
            with self.write.block("else:"):
                self.write("return -1")

    def alternative(self, choice: Choice, alternative: Alternative) -> None:
        """Write the walk after the tag of a branch."""
        if isinstance(alternative.then, str):
            self.part(alternative.then)
        elif alternative.then is not None:
            self.inner(alternative.then)


def _test(field: Field, value: str) -> str:
    """Return the expression that is true for a value that PostgreSQL does not define."""
    size = field.size or 0
    if field.constant_number is not None:
        return f"{value} != {_number(field.constant_number, size)}"
    if field.bits:
        return f"{value} & {_number(field.mask ^ (1 << 8 * size) - 1, size)}"
    codes = [str(_number(code, size)) for code in field.codes]
    return f"{value} not in ({', '.join(codes)}{',' if len(codes) == 1 else ''})" if codes else ""


def _number(number: int, size: int) -> int:
    """Return a number as the kernels read it: words of eight bytes are signed."""
    return number - (1 << 64) if size == 8 and number >> 63 else number
