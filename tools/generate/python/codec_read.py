"""Fields of fixed size in the parse half of the codec: consecutive ones are read by one struct."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import calcsize

from tools.generate.python.codec_module import REJECT, Function, Module
from tools.language import Field, conditions

__all__ = ["Fixed", "Reading", "size_of"]


@dataclass(frozen=True)
class Fixed:
    """A value of fixed size that is read or written together with its neighbours: its format code, and its variable."""

    code: str
    variable: str
    field: Field | None = None
    condition: str = ""
    """The condition under which it is present; empty: always."""


def size_of(fixed: Iterable[Fixed]) -> int:
    """Return their total size in bytes."""
    return calcsize(">" + "".join(each.code for each in fixed))


class Reading(Function):
    """A generated function that reads."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.waiting: list[Fixed] = []

    def fixed(self, field: Field, found: dict[str, str]) -> None:
        """Add a pending field; pending fields with another condition are read first."""
        condition = field.test(lambda earlier: found[earlier])
        flags = {found[bit.field] for bit in conditions.bits(field.term)}
        if {each.condition for each in self.waiting} - {"", condition} and condition:
            self.flush()
        if flags & {each.variable for each in self.waiting}:  # a condition needs the flags
            self.flush()
        found[field.name] = name = self.name(field.name)
        self.waiting.append(Fixed(field.code, name, field, condition))

    def flush(self) -> None:
        """Write the code that reads the pending fields, with at most one condition among them, and checks them."""
        fixed, self.waiting = self.waiting, []
        condition = next((each.condition for each in fixed if each.condition), "")
        always = [each for each in fixed if not each.condition]
        if condition:
            with self.write.block(f"if {condition}:"):
                self._unpack(fixed)
                self._check(each for each in fixed if each.condition)
            with self.write.block("else:"):
                self.write(" = ".join(each.variable for each in fixed if each.condition) + " = None")
                self._unpack(always)
        else:
            self._unpack(fixed)
        self._check(always)

    def _unpack(self, fixed: list[Fixed]) -> None:
        variables = [each.variable for each in fixed if each.code != "x"]
        if variables:
            unpack = self.module.unpack("".join(each.code for each in fixed))
            self.write(f"{', '.join(variables)}{',' * (len(variables) == 1)} = {unpack}(data, at)")
        if fixed:
            self.write(f"at += {size_of(fixed)}")

    def _check(self, fixed: Iterable[Fixed]) -> None:
        for each in fixed:
            if each.field is not None:
                self.write(*_checks(each.field, each.variable))


def _checks(field: Field, name: str) -> Iterator[str]:
    """Yield the code that checks and converts a number."""
    if field.constant_number is not None:
        yield f"if {name} != {field.constant_number}:"
        yield REJECT
    elif field.bits:
        yield f"if {name} & ~{field.mask:#x}:"
        yield REJECT
    elif field.values:
        yield f"if {name} not in {bytes(field.codes) if field.is_letter else field.codes!r}:"
        yield REJECT
        if field.is_letter:
            yield f"{name} = chr({name})"
    elif field.is_float:
        yield f"{name} = {field.python}({name})"
    elif field.python not in ("int", "bytes"):
        yield f"{name} = number({field.python}, {name})"
