"""How structures are read in Rust: functions that take fields from a reader ``r``."""

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from tools.generate.rust.rust_code import RustCode
from tools.generate.rust.rust_names import (
    byte_literal,
    bytes_literal,
    condition,
    earlier_value,
    presence,
    rust_local,
    rust_name,
    struct_literal,
    variant_tests,
)
from tools.generate.typed_layouts import (
    Branch,
    Kind,
    Named,
    Number,
    Record,
    Union,
    is_optional,
    step,
    version_condition,
)
from tools.language import Alternative, Choice, Field, Message, Repeat
from tools.language.conditions import Not
from tools.language.elements import Element, Structure

__all__ = ["RustReading"]

_ARGUMENTS: Final = 60
"""The width of the arguments of a call on one line, by rustfmt's default."""
_COMMA: Final = re.compile(r", (?![^\[(]*[\])])")
"""What separates arguments: a comma outside of brackets."""


class RustReading:
    """Writes the functions that read records, unions, and values inside of them."""

    def __init__(self, code: RustCode) -> None:
        self.code, self.typed, self.types, self.write = code, code.typed, code.types, code.write

    def record(self, record: Record) -> None:
        """Write the function that reads a record."""
        with self._function("fn read", Named(record.name), record.structure, "Self"):
            self._elements(record.structure)
            self.write(*struct_literal("Ok(Self", [_field_value(each.name) for each in record.attributes], ")"))

    def union(self, union: Union) -> None:
        """Write the function that reads a choice."""
        choice = union.choice
        tags = bytes_literal(bytes(each.tag[0] for each in choice.alternatives))
        with (
            self._function("fn read", Named(union.name), choice, "Self"),
            self.write.block(f'Ok(match r.tag("{self.code.tag_path(choice)}", {tags})? {{', "})"),
        ):
            for each in union.branches:
                self._branch(union, each)

    def nested(self, structure: Structure) -> None:
        """Write the function that reads the value of a structure that is no record."""
        kind, single = self.typed.inside(structure), structure.single
        assert single is not None
        generic = "<'a>" if self.types.borrows(kind) else ""
        with self._function(
            f"fn read_{self.code.nested_name(structure)}{generic}", kind, structure, self.types.of(kind)
        ):
            self._elements(structure)
            self.write(f"Ok({rust_local(single.name)})")

    @contextmanager
    def parse(self, data: str, *parameters: str) -> Iterator[None]:
        """Write the frame of the function that parses a message; what declares ``message`` goes inside."""
        union = self.code.union
        generic = self.types.generic(union)
        reference = "&'a [u8]" if generic else "&[u8]"
        signature = [f"{data}: {reference}", *parameters]
        with self.code.function(f"pub fn parse{generic}", signature, self.types.named(union)):
            yield
            self.write("rt::inside(message.name(), r.end())?;", "Ok(message)")
        self.write("")

    def message(self, message: Message) -> None:
        """Write the code that reads a message, as a value of the enum of all messages."""
        name = message.class_name
        self.write(f"let found = {name}::read(&mut r{self.code.layout(message)});")
        self.write(f'let message = rt::inside("{name}", found)?;', f"{self.code.union}::{name}(message)")

    def _function(self, head: str, kind: Kind, owner: Structure | Choice, result: str) -> AbstractContextManager[None]:
        """Return the frame of a function that reads a value of a kind."""
        lifetime = "'a" if self.types.borrows(kind) else "'_"
        parameters = [f"r: &mut rt::Reader<{lifetime}>", *self.code.layout_parameter(owner)]
        return self.code.function(head, parameters, result)

    # The branches of a choice.

    def _branch(self, union: Union, branch: Branch) -> None:
        alternative = branch.alternative
        pattern = "_" if branch is union.branches[-1] else byte_literal(alternative.tag[0])
        value = f"Self::{branch.name}{self._branch_content(union, branch)}"
        if alternative.term is None:
            self.write(f"{pattern} => {value},")
            return
        with self.write.block(f"{pattern} => {{"):
            self._refusal(union, alternative)
            self.write(value)

    def _branch_content(self, union: Union, branch: Branch) -> str:
        """Return the content of a branch in parentheses; empty if it has none."""
        if branch.kind is None:
            return ""
        return f"({self.code.inside(union.choice, self._value(self.typed.then(branch)))}?)"

    def _refusal(self, union: Union, alternative: Alternative) -> None:
        """Write the code that refuses a branch unless its condition holds."""
        versions = version_condition(alternative)
        is_old = condition(Not(versions)) if versions else "false"
        with self.write.block(f"if !({condition(alternative.term)}) {{"):
            self.write(f'return Err(r.refused("{self.code.tag_path(union.choice)}", {is_old}));')

    # The elements of a structure.

    def _elements(self, structure: Structure) -> None:
        for element in structure.elements:
            self._element(structure, element)

    def _element(self, structure: Structure, element: Element) -> None:
        if isinstance(element, Field) and element.hidden:
            self._hidden(structure, element)
        elif isinstance(element, Field) and element.variants:
            self._variants(structure, element)
        elif isinstance(element, Choice) and element.optional:
            self._optional(structure, element)
        elif test := presence(structure, element, rust_local):
            self._let_if(element.name, [(test, f"Some({self._result(structure, element)}?)"), ("", "None")])
        else:
            self._let(element.name, f"{self._result(structure, element)}?")

    def _hidden(self, structure: Structure, field: Field) -> None:
        """Write the code that reads what no object has, and checks it."""
        for each in field.variants or (field,):
            line = f"{self._result(structure, each)}?;"
            if test := presence(structure, each, rust_local):
                with self.write.block(f"if {test} {{"):
                    self.write(line)
            else:
                self.write(line)

    def _variants(self, structure: Structure, field: Field) -> None:
        tests = variant_tests(structure, field, rust_local)
        values = [self._variant(structure, field, each) for each in field.variants]
        cases = [*zip(tests, values, strict=True)]
        self._let_if(field.name, cases if field.complete else [*cases, ("", "None")])

    def _variant(self, structure: Structure, field: Field, variant: Field) -> str:
        """Return the expression that reads a variant, as a value of the field."""
        value = f"{self._result(structure, variant)}?"
        if variant.hidden:
            return f"{value};\nNone"
        given, wanted = self.typed.kind(variant), self.typed.kind(field)
        if isinstance(given, Number) and isinstance(wanted, Number) and given != wanted:
            value = f"{self.types.of(wanted)}::from({value})"
        return f"Some({value})" if is_optional(field) else value

    def _optional(self, structure: Structure, choice: Choice) -> None:
        """Write the code that reads a choice unless the constant after it comes next."""
        following = structure.elements[structure.elements.index(choice) + 1]
        assert isinstance(following, Field) and following.constant_bytes
        is_absent = f"r.peek() == Some({byte_literal(following.constant_bytes[0])})"
        self._let_if(choice.name, [(is_absent, "None"), ("", f"Some({self._result(structure, choice)}?)")])

    def _let(self, name: str, value: str) -> None:
        """Write a declaration; in a call whose arguments are too long for its line, each has its own line.

        A closure, which is the last argument, becomes a block instead.
        """
        line = f"let {rust_local(name)} = {value};"
        head, closure, body = line.rpartition("|r| ")
        callee, _, rest = line.partition("(")
        arguments = rest.removesuffix(")?;")
        if len(arguments) <= _ARGUMENTS:
            self.write(line)
        elif closure:
            with self.write.block(f"{head}{closure}{{", "})?;"):
                self.write(body.removesuffix(")?;"))
        else:
            with self.write.block(f"{callee}(", ")?;"):
                self.write(*(f"{each}," for each in _COMMA.split(arguments)))

    def _let_if(self, name: str, cases: Iterable[tuple[str, str]]) -> None:
        """Write a declaration whose value depends on tests."""
        for value in self.code.branches(cases, f"let {rust_local(name)} = ", "};"):
            self.write(value)

    # Expressions.

    def _result(self, structure: Structure, element: Element) -> str:
        """Return the expression that reads an element, as a Result."""
        match element:
            case Choice():
                return f"{self.typed.union(element).name}::read(r{self.code.layout(element)})"
            case Repeat():
                return self._repeat(structure, element)
            case Field(part=str(part), length=str(length)):
                size, read = earlier_value(structure, length), _closure(self._value(self.code.spec.part(part)))
                return f'r.area("{step(structure, element)}", {size}, {read})'
            case Field(part=str(part)):
                return f'rt::inside("{step(structure, element)}", {self._value(self.code.spec.part(part))})'
            case Field():
                return f"r.{self._call(structure, element)}"

    def _value(self, structure: Structure) -> str:
        """Return the expression that reads the value of a nested structure, as a Result."""
        if structure.single is None:
            return f"{self.typed.record(structure).name}::read(r{self.code.layout(structure)})"
        if name := self.code.nested_name(structure):
            return f"read_{name}(r{self.code.layout(structure)})"
        return self._result(structure, structure.elements[0])

    def _repeat(self, structure: Structure, repeat: Repeat) -> str:
        path, read = f'"{step(structure, repeat)}"', _closure(self._value(repeat.item))
        if repeat.to_end:
            return f"r.items_to_end({path}, {read})"
        if repeat.terminated:
            return f"r.items_until_zero({path}, {read})"
        number = earlier_value(structure, repeat.count) if repeat.count else f"{repeat.fixed}u64"
        return f"r.items({path}, {number}, {read})"

    def _call(self, structure: Structure, field: Field) -> str:
        """Return the call of the reader that reads a field."""
        path = f'"{step(structure, field)}"'
        if field.constant_bytes is not None:
            call = f"constant({path}, {bytes_literal(field.constant_bytes)})"
        elif field.frames:
            call = f"length::<{self.types.wire(field)}>({path})"
        elif field.is_text:
            call = f"text({path})"
        elif field.is_block:
            call = f"block::<{field.size}>({path})"
        elif field.size is None:
            call = self._bytes(structure, field)
        elif field.is_letter:
            call = f"letter({path}, {bytes_literal(bytes(field.codes))})"
        elif field.values:
            call = f"one_of::<{self.types.wire(field)}>({path}, &{list(field.codes)})"
        elif field.bits:
            call = f"bits::<{self.types.wire(field)}>({path}, {field.mask:#x})"
        else:
            call = f"number::<{self.types.wire(field)}>({path})"
        return call

    def _bytes(self, structure: Structure, field: Field) -> str:
        """Return the call that reads bytes whose number an earlier field holds, or all that are left."""
        if field.length is None:
            return "rest()"
        path, length = f'"{step(structure, field)}"', earlier_value(structure, field.length)
        if field.absent is not None:
            return f"nullable({path}, i64::from({length}), {field.absent})"
        return f"bytes({path}, {length})"


def _closure(read: str) -> str:
    """Return the function of a reader for an expression that reads."""
    return read.removesuffix("(r)") if read.endswith("(r)") else f"|r| {read}"


def _field_value(name: str) -> str:
    """Return a field of a struct literal, whose value is the variable of that name."""
    return rust_name(name) if rust_local(name) == rust_name(name) else f"{rust_name(name)}: {rust_local(name)}"
