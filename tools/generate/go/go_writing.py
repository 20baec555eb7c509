"""How structures and unions are written in Go: the statements of functions that have a writer ``w``."""

from tools.generate.go.go_module import GoModule, branches_with_more, is_exposed, shared_kind, tags_literal
from tools.generate.go.go_names import bytes_literal, condition, number_method, number_type, type_name
from tools.generate.typed_layouts import Data, Kind, Letter, ListOf, Number, Text, Union, has_absence, is_optional, step
from tools.language import Choice, Field, Message, Repeat
from tools.language.elements import Element, Structure

__all__ = ["GoWriting"]


class GoWriting:
    """Writes how a structure is written; in its methods a value is the expression of one."""

    def __init__(self, module: GoModule, structure: Structure) -> None:
        self.module, self.structure = module, structure
        self.write, self.typed = module.write, module.typed

    def elements(self) -> None:
        """Write the statements that write all elements of the structure."""
        structure = self.structure
        for each in structure.elements:
            self._element(each, self.module.place(structure, each.name))
        if isinstance(structure, Message) and structure.length:
            self.write(f"w.Close({len(structure.tag)}, {structure.length.size})")

    def union(self, union: Union) -> None:
        """Write the statements that write the union ``m``, whose choice is in the structure."""
        write, choice, path = self.write, union.choice, self.module.tag_step(union.choice)
        kind = "wire.Letter(m.Kind)" if choice.numeric else "m.Kind"
        write(f'w.Letter("{path}", {kind}, {tags_literal(choice)})')
        branches = branches_with_more(union)
        if not branches:
            return
        with write.block("switch m.Kind {"):
            for each in branches:
                write.case(f"case {union.name}{each.name}")
                if each.alternative.term:
                    write(f'w.Possible("{path}", {condition(each.alternative.term)})')
                if each.kind is not None:
                    with write.within("w", step(self.structure, choice)):
                        self._value(self.typed.then(each), self.module.content(union, each))
            content = _has_content(shared_kind(union), "m.Value")
            if content and len(branches) < len(union.branches):
                write.case("default")
                write(f'w.Absent("{path}", {content})')

    def _element(self, element: Element, value: str) -> None:
        test = self.module.test(self.structure, element)
        if isinstance(element, Field) and element.variants:
            self._variants(element, value)
        elif isinstance(element, Choice) and element.optional:
            with self.write.branch(f"if {value}.Valid {{"):
                self._statement(element, f"{value}.V")
            with self.write.block("} else {"):
                self.write(f'w.Absent("{element.name}", {value}.V.Kind != 0)')
        elif not test:
            self._statement(element, value)
        elif is_exposed(self.structure, element):
            with self.write.branch(f"if {test} {{"):
                self._present(element, value)
                self._statement(element, f"{value}.V")
            with self.write.block("} else {"):
                self._absent(element, value)
        else:
            with self.write.block(f"if {test} {{"):
                self._statement(element, value)

    def _present(self, element: Element, value: str) -> None:
        """Write the statement that checks that a value is present."""
        self.write(f'w.Present("{element.name}", {value}.Valid)')

    def _absent(self, element: Element, value: str) -> None:
        """Write the statement that checks that a value is absent, and that no content would be lost."""
        content = _has_content(self.typed.kind(element), f"{value}.V")
        self.write(f'w.Absent("{element.name}", {value}.Valid{f" || {content}" if content else ""})')

    def _variants(self, field: Field, value: str) -> None:
        """Write the statement that writes the variant that is to be present."""
        write, exposed = self.write, is_exposed(self.structure, field)
        for head, each in self.module.variants(self.structure, field):
            with write.branch(head):
                if exposed:
                    self._variant(field, each, value)
                else:
                    self._statement(each, value)
        if exposed and not field.complete:
            with write.block("} else {"):
                self._absent(field, value)
        else:
            write("}")

    def _variant(self, field: Field, variant: Field, value: str) -> None:
        """Write the statements that check and write a variant."""
        kind, wanted = self.typed.kind(variant), self.typed.kind(field)
        if variant.hidden:
            self._absent(field, value)
            self._statement(variant, value)
            return
        if is_optional(field):
            self._present(field, value)
            value = f"{value}.V"
        if isinstance(kind, Number) and kind != wanted:
            value = f'wire.Narrowed[{type_name(kind)}](w, "{field.name}", {value})'
        self._statement(variant, value)

    def _statement(self, element: Element, value: str) -> None:
        """Write the statement that writes an element, whatever its condition."""
        match element:
            case Choice():
                self.write(f"{value}.write(w{self.module.argument(element)})")
            case Repeat():
                self._repeat(element, value)
            case Field(part=str(part), length=str(length)):
                head = f'w.Area("{step(self.structure, element)}", "{length}", func() {{'
                with self.write.block(head, "})"):
                    self._value(self.module.spec.part(part), value)
            case Field(part=str(part)):
                with self.write.within("w", step(self.structure, element)):
                    self._value(self.module.spec.part(part), value)
            case Field():
                self.write(self._call(element, value))

    def _value(self, structure: Structure, value: str) -> None:
        """Write the statement that writes the value of a nested structure."""
        if structure.single is None:
            self.write(f"{value}.write(w{self.module.argument(structure)})")
        elif id(structure) in self.typed.nested:
            self.write(f"write{self.typed.nested[id(structure)]}({value}, w{self.module.argument(structure)})")
        else:
            GoWriting(self.module, structure)._statement(structure.elements[0], value)

    def _repeat(self, repeat: Repeat, value: str) -> None:
        write = self.write
        write(f'w.Push("{step(self.structure, repeat)}")')
        number = str(repeat.fixed or "")
        if first := self.structure.alike.get(repeat.name):
            number = self._length(first)
        if number:
            write(f'w.Possible("", len({value}) == {number})')
        with write.block(f"for i := range {value} {{"):
            write("w.Index(i)")
            if repeat.terminated:
                write("start := w.Len()")
            self._value(repeat.item, f"{value}[i]")
            if repeat.terminated:
                write("w.NotZeroAt(start)")
        write("w.Pop()")
        if repeat.terminated:
            write(r'w.String("\x00")')

    def _call(self, field: Field, value: str) -> str:
        """Return the call that checks a field and writes it."""
        path = f'"{step(self.structure, field)}"'
        match field:
            case Field(constant_bytes=bytes(constant)):
                call = f"w.String({bytes_literal(constant)})"
            case Field(frames=True):
                call = f"w.{number_method(field)}(0)"  # until the message is complete
            case Field(name=name) if name in self.structure.sizes:
                call = self._size(field, path)
            case Field(is_text=True):
                call = f"w.Text({path}, {value})"
            case Field(absent=int()):
                call = f"w.Bytes({value}.V)"
            case Field(is_block=True):
                call = f"w.Bytes({value}[:])"
            case Field(size=None):
                call = f"w.Bytes({value})"
            case Field(is_letter=True):
                call = f"w.Letter({path}, {value}, {bytes_literal(bytes(field.codes))})"
            case _:
                call = _number(field, value, path)
        return call

    def _size(self, field: Field, path: str) -> str:
        """Return the call that writes a count or a length: that of what it measures."""
        structure = self.structure
        if field.name in structure.areas:
            return f"w.Blank({path}, {field.size})"
        measured = next(each for each in structure.elements if each.name == structure.sizes[field.name])
        value = self.module.place(structure, measured.name)
        if isinstance(measured, Field) and measured.absent is not None:
            return f"w.NullableSize({path}, {field.size}, len({value}.V), {value}.Valid, {measured.absent})"
        return f"w.Size({path}, {field.size}, {self._length(measured.name)})"

    def _length(self, name: str) -> str:
        """Return the number of bytes or items that an element has; zero if it is absent."""
        measured = next(each for each in self.structure.elements if each.name == name)
        return f"len({self.module.place(self.structure, name)}{'.V' * has_absence(measured)})"


def _has_content(kind: Kind | None, value: str) -> str:
    """Return the test for whether a value is another than that of its type by default; empty if none is cheap."""
    match kind:
        case Number() | Letter():
            return f"{value} != 0"
        case Text() | Data() | ListOf():
            return f"len({value}) > 0"
    return ""


def _number(field: Field, value: str, path: str) -> str:
    """Return the call that writes a number."""
    if field.values:
        value = f"wire.CheckOneOf(w, {path}, {value}, {', '.join(map(str, field.codes))})"
    elif field.bits:
        value = f"wire.CheckBits(w, {path}, {value}, {field.mask:#x})"
    method = number_method(field)
    if number_type(field).startswith("wire."):
        value = f"{method.lower()}({value})"
    return f"w.{method}({value})"
