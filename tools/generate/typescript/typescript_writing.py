"""The functions of the TypeScript module that write values as the bytes of a message."""

from collections.abc import Iterator
from contextlib import contextmanager

from tools.generate.typed_layouts import Branch, Record, Union, has_absence, is_optional, step
from tools.generate.typescript.typescript_context import (
    Shape,
    Source,
    TypeScriptContext,
    condition,
    element_named,
    presence,
    tag_step,
    under_step,
    variant_blocks,
)
from tools.generate.typescript.typescript_names import camel, codes, letter_literal, letters, mask, tags, type_of
from tools.language import Choice, Field, Message, Repeat
from tools.language.elements import Element, Structure

__all__ = ["TypeScriptWriting"]


class TypeScriptWriting:
    """Writes the functions that write; ``w`` is the writer in them, and ``m`` the value."""

    def __init__(self, context: TypeScriptContext) -> None:
        self.context, self.typed, self.write = context, context.typed, context.write

    def record(self, record: Record) -> None:
        """Write the function that writes a record."""
        with self._function(record.name, record.structure, record.name, "m" if record.attributes else "_m"):
            self._elements(record.structure, lambda field: f"m.{camel(field)}")

    def value(self, structure: Structure) -> None:
        """Write the function that writes a structure that is the value of its single element."""
        kind = type_of(self.typed.inside(structure))
        with self._function(self.typed.nested[id(structure)], structure, kind):
            self._elements(structure, lambda _: "m")

    def union(self, union: Union) -> None:
        """Write the function that writes a union: its tag, and what follows it."""
        choice, structure = union.choice, self.typed.owner(union.choice)
        path = tag_step(structure, choice)
        checked = [each for each in union.branches if each.kind is not None or each.alternative.term]
        with self._function(union.name, choice, union.name):
            if choice.numeric:
                self.write(f'w.uint("{path}", 1, w.oneOf<number>("{path}", m.kind, {tags(choice)}));')
            else:
                self.write(f'w.letter("{path}", m.kind, {tags(choice)});')
            if checked:
                with self.write.block("switch (m.kind) {"):
                    for each in checked:
                        self._branch(each, path, step(structure, choice))

    @contextmanager
    def _function(self, name: str, shape: Shape, kind: str, argument: str = "m") -> Iterator[None]:
        declared = self.context.declared(shape)
        with self.context.declaration(f"function write{name}(w: wire.Writer, {argument}: {kind}{declared}): void {{"):
            yield

    def _branch(self, branch: Branch, path: str, own: str) -> None:
        """Write the case of a branch: the check that these parameters have it, and its content."""
        with self.context.indented(f"case {letter_literal(branch.alternative)}:"):
            if branch.alternative.term:
                self.write(f'w.possible("{path}", {condition(branch.alternative.term)});')
            if branch.kind is not None:
                self.write(f"{under_step('w', own, self._inside(self.typed.then(branch), 'm.value'))};")
            self.write("break;")

    def _elements(self, structure: Structure, source: Source) -> None:
        """Write the statements that write each element."""
        for element in structure.elements:
            self._element(structure, element, source)
        if isinstance(structure, Message) and structure.length:
            self.write(f"w.close({len(structure.tag)}, {structure.length.size});")

    def _element(self, structure: Structure, element: Element, source: Source) -> None:
        given, test = source(element.name), presence(structure, element, source)
        if isinstance(element, Field) and element.variants:
            self._variants(structure, element, source)
        elif isinstance(element, Choice) and element.optional:
            with self.write.block(f"if ({given} !== null) {{"):
                self._present(structure, element, given, source)
        elif test and element in structure.exposed:
            with self.write.block(f"if ({test}) {{"):
                self.write(f"const value = {_checked(element, given)};")
                self._present(structure, element, "value", source)
            with self.write.block("else {"):
                self.write(f"{_refused(element, given)};")
        elif test:
            with self.write.block(f"if ({test}) {{"):
                self._present(structure, element, given, source)
        else:
            self._present(structure, element, given, source)

    def _variants(self, structure: Structure, field: Field, source: Source) -> None:
        """Write the statements that write a field with variants: the variant that is present."""
        given, exposed = source(field.name), field in structure.exposed
        for each, head in variant_blocks(structure, field, source):
            with self.write.block(head):
                if not exposed:
                    self._present(structure, each, given, source)
                elif each.hidden:
                    self.write(f"{_refused(field, given)};")
                    self._present(structure, each, given, source)
                else:
                    self.write(f"const value = {self._variant(field, each, given)};")
                    self._present(structure, each, "value", source)
        if exposed and not field.complete:
            with self.write.block("else {"):
                self.write(f"{_refused(field, given)};")

    def _variant(self, field: Field, variant: Field, given: str) -> str:
        """Return the value of a field as that of one of its variants."""
        value = _checked(field, given) if is_optional(field) else given
        return f"Number({value})" if self.context.is_widened(field, variant) else value

    def _present(self, structure: Structure, element: Element, given: str, source: Source) -> None:
        """Write the statements that write an element that is present."""
        self.write(f"{self._call(structure, element, given, source)};")
        if isinstance(element, Repeat) and element.terminated:
            self.write("w.raw([0]);")

    def _call(self, structure: Structure, element: Element, given: str, source: Source) -> str:
        """Return the call that writes an element; ``source`` gives the values of the others."""
        own = step(structure, element)
        match element:
            case Choice():
                return f"write{self.typed.union(element).name}(w, {given}{self.context.passed(element)})"
            case Repeat():
                terminated = ", true" if element.terminated else ""
                number = str(element.fixed or "")
                if first := structure.alike.get(element.name):
                    number = _length(element_named(structure, first), source(first))
                if number:
                    given = f'w.counted("{own}", {given}, {number})'
                return f'w.items("{own}", {given}, (item) => {self._inside(element.item, "item")}{terminated})'
            case Field(part=str(part), length=str(length)):
                return f'w.area("{own}", "{length}", () => {self._inside(self.context.spec.part(part), given)})'
            case Field(part=str(part)):
                return under_step("w", own, self._inside(self.context.spec.part(part), given))
            case Field():
                return f"w.{_field(structure, element, given, source)}"

    def _inside(self, structure: Structure, given: str) -> str:
        """Return the call that writes the value of a nested structure."""
        if name := self.context.own_name(structure):
            return f"write{name}(w, {given}{self.context.passed(structure)})"
        return self._call(structure, structure.elements[0], given, str)


def _checked(element: Element, given: str) -> str:
    """Return a value after the check that it is present."""
    return f'w.present("{element.name}", {given})'


def _refused(element: Element, given: str) -> str:
    """Return the check that a value is absent."""
    return f'w.absent("{element.name}", {given})'


def _field(structure: Structure, field: Field, given: str, source: Source) -> str:
    """Return the call of the writer's method for a field."""
    path = f'"{step(structure, field)}"'
    if field.constant_bytes is not None:
        call = f"raw({list(field.constant_bytes)})"
    elif field.frames:
        call = f"raw({[0] * (field.size or 0)})"
    elif field.name in structure.sizes:
        call = _size(structure, field, source, path)
    elif field.is_text:
        call = f"text({path}, {given})"
    elif field.absent is not None:
        call = f"bytes({path}, {given} ?? [])"
    elif field.is_block:
        call = f"bytes({path}, {given}, {field.size})"
    elif field.size is None:
        call = f"bytes({path}, {given})"
    elif field.is_letter:
        call = f"letter({path}, {given}, {letters(field)})"
    elif field.is_float:
        call = f"float64({path}, {given})"
    else:
        call = f"{'int' if field.signed else 'uint'}({path}, {field.size}, {_number(field, given, path)})"
    return call


def _size(structure: Structure, field: Field, source: Source, path: str) -> str:
    """Return the call for a count or a length: it follows from what it measures."""
    if field.name in structure.areas:
        return f"blank({path}, {field.size})"
    measured = element_named(structure, structure.sizes[field.name])
    value = source(measured.name)
    if isinstance(measured, Field) and measured.absent is not None:
        return f"int({path}, {field.size}, {value}?.length ?? {measured.absent})"
    return f"uint({path}, {field.size}, {_length(measured, value)})"


def _length(measured: Element, value: str) -> str:
    """Return the number of bytes or items that an element has; zero if it is absent."""
    return f"{value}?.length ?? 0" if has_absence(measured) else f"{value}.length"


def _number(field: Field, given: str, path: str) -> str:
    """Return a number after the check that a field may have it."""
    if field.values:
        return f"w.oneOf({path}, {given}, {codes(field)})"
    if field.bits:
        return f"w.bits({path}, {given}, {mask(field)})"
    return given
