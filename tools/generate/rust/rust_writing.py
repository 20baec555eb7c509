"""How structures are written in Rust: functions that give fields to a writer ``w``."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tools.generate.rust.rust_code import RustCode
from tools.generate.rust.rust_names import bytes_literal, condition, presence, rust_name, variant_tests
from tools.generate.typed_layouts import Branch, Number, Record, Union, is_optional, negated, step
from tools.language import Choice, Field, Message, Repeat
from tools.language.elements import Element, Structure

__all__ = ["RustWriting"]


@dataclass(frozen=True)
class _Place:
    """The expression of a value, or of a reference to it."""

    text: str
    is_reference: bool = True

    @property
    def reference(self) -> str:
        """The expression of a reference to the value."""
        return self.text if self.is_reference else f"&{self.text}"

    @property
    def copied(self) -> str:
        """The expression of the value itself, which is copied."""
        return f"*{self.text}" if self.is_reference else self.text


_Source = Callable[[str], _Place]
"""Returns the place of a field's value by the field's name."""


def _from_self(name: str) -> _Place:
    return _Place(f"self.{rust_name(name)}", is_reference=False)


def _from_value(_: str) -> _Place:
    return _Place("value")


class RustWriting:
    """Writes the functions that write records, unions, and values inside of them."""

    def __init__(self, code: RustCode) -> None:
        self.code, self.typed, self.types, self.write = code, code.typed, code.types, code.write

    def record(self, record: Record) -> None:
        """Write the function that writes a record."""
        with self._function("fn write", "&self", record.structure):
            self._elements(record.structure, _from_self)
            self.write("Ok(())")

    def union(self, union: Union) -> None:
        """Write the function that writes a choice."""
        with self._function("fn write", "&self", union.choice):
            with self.write.block("match self {"):
                for each in union.branches:
                    self._branch(union, each)
            self.write("Ok(())")

    def nested(self, structure: Structure) -> None:
        """Write the function that writes the value of a structure that is no record."""
        value = f"value: {self.types.reference(self.typed.inside(structure))}"
        with self._function(f"fn write_{self.code.nested_name(structure)}", value, structure):
            self._elements(structure, _from_value)
            self.write("Ok(())")

    def _function(self, head: str, value: str, owner: Structure | Choice) -> AbstractContextManager[None]:
        """Return the frame of a function that writes its first parameter."""
        return self.code.function(head, [value, "w: &mut rt::Writer", *self.code.layout_parameter(owner)], "()")

    # The branches of a choice.

    def _branch(self, union: Union, branch: Branch) -> None:
        alternative = branch.alternative
        pattern = f"Self::{branch.name}(value)" if branch.kind else f"Self::{branch.name}"
        tag = f"w.bytes({bytes_literal(alternative.tag)})?"
        if branch.kind is None and alternative.term is None:
            self.write(f"{pattern} => {tag},")
            return
        with self.write.block(f"{pattern} => {{"):
            if alternative.term is not None:
                with self.write.block(f"if {negated(condition(alternative.term))} {{"):
                    self.write(f'return Err(rt::Error::not_sent("{self.code.tag_path(union.choice)}"));')
            self.write(f"{tag};")
            if branch.kind is not None:
                content = self._value(self.typed.then(branch), _Place("value"))
                self.write(f"{self.code.inside(union.choice, content)}?;")

    # The elements of a structure.

    def _elements(self, structure: Structure, source: _Source) -> None:
        for element in structure.elements:
            self._element(structure, element, source)
        if isinstance(structure, Message) and structure.length:
            self.write(f"w.close::<{self.types.wire(structure.length)}>({len(structure.tag)})?;")

    def _element(self, structure: Structure, element: Element, source: _Source) -> None:
        if isinstance(element, Field) and element.variants:
            self._variants(structure, element, source)
        elif isinstance(element, Choice) and element.optional:
            with self.write.block(f"if let Some(value) = &{source(element.name).text} {{"):
                self._content(structure, element, _from_value)
        elif test := presence(structure, element, lambda name: source(name).text):
            self._conditional(structure, element, test, source)
        else:
            self._content(structure, element, source)

    def _conditional(self, structure: Structure, element: Element, test: str, source: _Source) -> None:
        """Write the code that writes an element under a condition, and without it checks that there is no value."""
        if element not in structure.exposed:
            with self.write.block(f"if {test} {{"):
                self._content(structure, element, source)
            return
        given = source(element.name).text
        with self.write.block(f"if {test} {{", "} else {"):
            self.write(f'let value = rt::present("{element.name}", &{given})?;')
            self._content(structure, element, _from_value)
        with self.write.block(""):
            self._absent(element, given)

    def _absent(self, element: Element, given: str) -> None:
        self.write(f'rt::absent("{element.name}", &{given})?;')

    def _variants(self, structure: Structure, field: Field, source: _Source) -> None:
        tests = variant_tests(structure, field, lambda name: source(name).text)
        cases = [*zip(tests, field.variants, strict=True)]
        if field not in structure.exposed:
            for variant in self.code.branches(cases):
                self._content(structure, variant, source)
            return
        given = source(field.name).text
        for each in self.code.branches(cases if field.complete else [*cases, ("", None)]):
            if each is None:
                self._absent(field, given)
            elif each.hidden:
                self._absent(field, given)
                self._content(structure, each, source)
            else:
                self._variant_value(field, each, given)
                self._content(structure, each, _from_value)

    def _variant_value(self, field: Field, variant: Field, given: str) -> None:
        """Write the declaration of ``value``, a reference to the value of a field as its variant has it."""
        reference = given if given == "value" else f"&{given}"
        found = f'rt::present("{field.name}", {reference})?' if is_optional(field) else reference
        self.write(f"let value = {found};")
        kind, wanted = self.typed.kind(variant), self.typed.kind(field)
        if isinstance(kind, Number) and kind != wanted:
            types = f"{self.types.of(wanted)}, {self.types.of(kind)}"
            self.write(f'let value = &rt::narrowed::<{types}>("{field.name}", *value)?;')

    def _content(self, structure: Structure, element: Element, source: _Source) -> None:
        """Write the code that writes an element that is there."""
        if isinstance(element, Repeat):
            self._repeat(structure, element, source(element.name))
        elif isinstance(element, Field) and element.part:
            value = self._value(self.code.spec.part(element.part), source(element.name))
            if element.is_area:
                self.write(f'w.area("{step(structure, element)}", "{element.length}", |w| {value})?;')
                return
            self.write(f'rt::inside("{step(structure, element)}", {value})?;')
        else:
            self.write(f"{self._result(structure, element, source)}?;")

    def _repeat(self, structure: Structure, repeat: Repeat, place: _Place) -> None:
        path = f'"{step(structure, repeat)}"'
        number = str(repeat.fixed or "")
        if first := structure.alike.get(repeat.name):
            number = self._length(structure, first, _from_self)  # only records have several lists
        if number:
            self.write(f"w.count({path}, {place.text}.len(), {number})?;")
        with self.write.block(f"for (index, item) in {place.text}.iter().enumerate() {{"):
            if repeat.terminated:
                self.write("let start = w.len();")
            self.write(f"rt::item({path}, index, {self._value(repeat.item, _Place('item'))})?;")
            if repeat.terminated:
                self.write(f"rt::item({path}, index, w.not_zero_at(start))?;")
        if repeat.terminated:
            self.write("w.bytes(&[0])?;")

    # Expressions.

    def _value(self, structure: Structure, place: _Place) -> str:
        """Return the expression that writes the value of a nested structure, as a Result."""
        if structure.single is None:
            return f"{place.text}.write(w{self.code.layout(structure)})"
        if name := self.code.nested_name(structure):
            return f"write_{name}({place.reference}, w{self.code.layout(structure)})"
        element = structure.elements[0]
        if isinstance(element, Field) and element.part:
            return self._value(self.code.spec.part(element.part), place)
        assert not isinstance(element, Repeat)
        return self._result(structure, element, lambda _: place)

    def _result(self, structure: Structure, element: Field | Choice, source: _Source) -> str:
        """Return the expression that writes a choice, or a field that is no part, as a Result."""
        if isinstance(element, Choice):
            return f"{source(element.name).text}.write(w{self.code.layout(element)})"
        return f"w.{self._call(structure, element, source)}"

    def _call(self, structure: Structure, field: Field, source: _Source) -> str:
        """Return the call of the writer that writes a field."""
        path, place = f'"{step(structure, field)}"', source(field.name)
        if field.constant_bytes is not None:
            call = f"bytes({bytes_literal(field.constant_bytes)})"
        elif field.frames:
            call = f"number::<{self.types.wire(field)}>(0)"
        elif field.name in structure.sizes:
            call = self._size(structure, field, source)
        elif field.is_text:
            call = f"text({path}, {place.reference})"
        elif field.absent is not None:
            call = f"nullable({place.copied})"
        elif field.is_block:
            call = f"bytes({place.reference})"
        elif field.size is None:
            call = f"bytes({place.text})"
        elif field.is_letter:
            call = f"letter({path}, {place.copied}, {bytes_literal(bytes(field.codes))})"
        elif field.values:
            call = f"one_of({path}, {place.copied}, &{list(field.codes)})"
        elif field.bits:
            call = f"bits({path}, {place.copied}, {field.mask:#x})"
        else:
            call = f"number({place.copied})"
        return call

    def _size(self, structure: Structure, field: Field, source: _Source) -> str:
        """Return the call that writes a count or a length: the size of what it measures."""
        path, wire = f'"{step(structure, field)}"', self.types.wire(field)
        if field.name in structure.areas:
            return f"blank::<{wire}>({path})"
        measured = next(each for each in structure.elements if each.name == structure.sizes[field.name])
        value = source(measured.name).text
        if isinstance(measured, Field) and measured.absent is not None:
            return f"nullable_size::<{wire}>({path}, {value}.map(<[u8]>::len), {measured.absent})"
        return f"size::<{wire}>({path}, {self._length(structure, measured.name, source)})"

    def _length(self, structure: Structure, name: str, source: _Source) -> str:
        """Return the number of bytes or items that an element has; zero if it is absent."""
        measured = next(each for each in structure.elements if each.name == name)
        value = source(name).text
        return f"{value}.as_ref().map_or(0, |each| each.len())" if measured.conditional else f"{value}.len()"
