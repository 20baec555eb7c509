"""The functions of the TypeScript module that read values from the bytes of a message."""

from collections.abc import Iterator
from contextlib import contextmanager

from tools.generate.typed_layouts import (
    Branch,
    Record,
    Union,
    has_absence,
    is_optional,
    negated,
    step,
    version_condition,
)
from tools.generate.typescript.typescript_context import (
    Shape,
    TypeScriptContext,
    condition,
    element_named,
    presence,
    tag_step,
    under_step,
    variant_blocks,
)
from tools.generate.typescript.typescript_names import codes, letter_literal, letters, local, mask, property_of, type_of
from tools.language import Alternative, Choice, Field, Repeat
from tools.language.conditions import Not
from tools.language.elements import Element, Structure

__all__ = ["TypeScriptReading"]


class TypeScriptReading:
    """Writes the functions that read; ``r`` is the reader in them."""

    def __init__(self, context: TypeScriptContext) -> None:
        self.context, self.typed, self.write = context, context.typed, context.write

    def record(self, record: Record) -> None:
        """Write the function that reads a record."""
        properties = [f'message: "{record.name}"'] if record.message else []
        properties += [property_of(each.name) for each in record.attributes]
        with self._function(record.name, record.structure, record.name):
            self._elements(record.structure)
            self.write(f"return {{ {', '.join(properties)} }};" if properties else "return {};")

    def value(self, structure: Structure) -> None:
        """Write the function that reads a structure that is the value of its single element."""
        assert structure.single is not None
        kind = type_of(self.typed.inside(structure))
        with self._function(self.typed.nested[id(structure)], structure, kind):
            self._elements(structure)
            self.write(f"return {local(structure.single.name)};")

    def union(self, union: Union) -> None:
        """Write the function that reads a union: its tag, and what follows it."""
        choice, structure = union.choice, self.typed.owner(union.choice)
        path = tag_step(structure, choice)
        with self._function(union.name, choice, union.name), self.write.block(f'switch (r.uint8("{path}")) {{'):
            for each in union.branches:
                with self.context.indented(f"case {each.alternative.tag[0]}: // {each.alternative.letter}"):
                    self._refuse(each.alternative, path)
                    self.write(f"return {self._branch(each, step(structure, choice))};")
            with self.context.indented("default:"):
                self.write(f'return r.unknownKind("{path}");')

    @contextmanager
    def _function(self, name: str, shape: Shape, kind: str) -> Iterator[None]:
        declared = self.context.declared(shape)
        with self.context.declaration(f"function read{name}(r: wire.Reader{declared}): {kind} {{"):
            yield

    def _refuse(self, alternative: Alternative, path: str) -> None:
        """Write the refusal of a tag under parameters that do not have its branch."""
        if alternative.term is None:
            return
        versions = version_condition(alternative)
        is_old = condition(Not(versions)) if versions else "false"
        self.write(f'if ({negated(condition(alternative.term))}) r.refuse("{path}", {is_old});')

    def _branch(self, branch: Branch, own: str) -> str:
        """Return the object of a branch, whose content is read under the choice's own step."""
        kind = f"kind: {letter_literal(branch.alternative)}"
        if branch.kind is None:
            return f"{{ {kind} }}"
        return f"{{ {kind}, value: {under_step('r', own, self._inside(self.typed.then(branch)))} }}"

    def _elements(self, structure: Structure) -> None:
        """Write the statements that read each element into a variable."""
        for element in structure.elements:
            if isinstance(element, Field) and element.hidden:
                self._hidden(structure, element)
            elif isinstance(element, Field) and element.variants:
                self._variants(structure, element)
            else:
                self.write(f"const {local(element.name)} = {self._optional(structure, element)};")

    def _hidden(self, structure: Structure, field: Field) -> None:
        for each in field.variants or (field,):
            test, call = presence(structure, each, local), self._call(structure, each)
            self.write(f"if ({test}) {call};" if test else f"{call};")

    def _variants(self, structure: Structure, field: Field) -> None:
        """Write the statements that read a field with variants: the variant that is present."""
        name, optional = local(field.name), " | null" if is_optional(field) else ""
        self.write(f"let {name}: {type_of(self.typed.kind(field))}{optional};")
        for each, head in variant_blocks(structure, field, local):
            call = self._call(structure, each)
            with self.write.block(head):
                if each.hidden:
                    self.write(f"{call};", f"{name} = null;")
                else:
                    self.write(f"{name} = {f'BigInt({call})' if self.context.is_widened(field, each) else call};")
        if not field.complete:
            with self.write.block("else {"):
                self.write(f"{name} = null;")

    def _optional(self, structure: Structure, element: Element) -> str:
        """Return the expression that reads an element, null if it is absent."""
        call = self._call(structure, element)
        if isinstance(element, Choice) and element.optional:
            following = structure.elements[structure.elements.index(element) + 1]
            assert isinstance(following, Field)
            assert following.constant_bytes
            return f"r.next({following.constant_bytes[0]}) ? null : {call}"
        test = presence(structure, element, local)
        return f"{test} ? {call} : null" if test else call

    def _call(self, structure: Structure, element: Element) -> str:
        """Return the call that reads an element that is present."""
        own = step(structure, element)
        match element:
            case Choice():
                return f"read{self.typed.union(element).name}(r{self.context.passed(element)})"
            case Repeat():
                return self._repeat(element, own)
            case Field(part=str(part), length=str(length)):
                inside = self._inside(self.context.spec.part(part))
                return f'r.area("{own}", {_length(structure, length)}, () => {inside})'
            case Field(part=str(part)):
                return under_step("r", own, self._inside(self.context.spec.part(part)))
            case Field():
                return f"r.{self._field(structure, element, own)}"

    def _inside(self, structure: Structure) -> str:
        """Return the call that reads the value of a nested structure."""
        if name := self.context.own_name(structure):
            return f"read{name}(r{self.context.passed(structure)})"
        return self._call(structure, structure.elements[0])

    def _repeat(self, repeat: Repeat, own: str) -> str:
        item = self._inside(repeat.item)
        if repeat.count is not None or repeat.fixed:
            number = f"Number({local(repeat.count)})" if repeat.count else repeat.fixed
            return f'r.items("{own}", {number}, () => {item})'
        return f'r.{"itemsToEnd" if repeat.to_end else "itemsUntilZero"}("{own}", () => {item})'

    def _field(self, structure: Structure, field: Field, own: str) -> str:
        """Return the call of the reader's method for a field."""
        path = f'"{own}"'
        if field.constant_bytes is not None and len(field.constant_bytes) == 1:
            call = f"byte({path}, {field.constant_bytes[0]})"
        elif field.constant_bytes is not None:
            call = f"constant({path}, {list(field.constant_bytes)})"
        elif field.frames:
            call = f"length({path}, {field.size})"
        elif field.is_text:
            call = f"text({path})"
        elif field.is_block:
            call = f"bytes({path}, {field.size})"
        elif field.size is None:
            call = self._bytes(structure, field, path)
        elif field.is_letter:
            call = f"letter({path}, {letters(field)})"
        else:
            call = _number(field, field.size, path)
        return call

    def _bytes(self, structure: Structure, field: Field, path: str) -> str:
        if field.length is None:
            return f"rest({path})"
        length = _length(structure, field.length)
        return f"bytes({path}, {length})" if field.absent is None else f"nullable({path}, {length}, {field.absent})"


def _number(field: Field, size: int, path: str) -> str:
    kind = "float" if field.is_float else "int" if field.signed else "uint"
    call = f"{kind}{8 * size}({path})"
    if field.values:
        return f"oneOf({path}, {size}, r.{call}, {codes(field)})"
    if field.bits:
        return f"bits({path}, {size}, r.{call}, {mask(field)})"
    return call


def _length(structure: Structure, name: str) -> str:
    """Return the number in the variable of a length; numbers of 64 bits are bigint there."""
    size = element_named(structure, name)
    if not isinstance(size, Field) or size.width == 8:
        return f"Number({local(name)})"
    return f"({local(name)} ?? 0)" if has_absence(size) else local(name)
