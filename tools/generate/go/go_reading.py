"""How structures and unions are read in Go: the statements of functions that have a reader ``r``."""

from tools.generate.go.go_module import GoModule, branches_with_more, is_exposed, tags_literal
from tools.generate.go.go_names import (
    bytes_literal,
    condition,
    letter_literal,
    local,
    number_method,
    number_type,
    type_name,
)
from tools.generate.typed_layouts import Branch, Number, Union, is_optional, negated, step, version_condition
from tools.language import Choice, Field, Repeat
from tools.language.conditions import Not
from tools.language.elements import Element, Structure

__all__ = ["GoReading"]


class GoReading:
    """Writes how a structure is read.

    In its methods a target is where a value goes; that of a constant, a count or a length is empty.
    """

    def __init__(self, module: GoModule, structure: Structure) -> None:
        self.module, self.structure = module, structure
        self.write, self.typed = module.write, module.typed

    def elements(self) -> None:
        """Write the statements that read all elements of the structure."""
        for each in self.structure.elements:
            target = self.module.place(self.structure, each.name) if is_exposed(self.structure, each) else ""
            self._element(each, target)

    def union(self, union: Union) -> None:
        """Write the statements that read a union, whose choice is in the structure, into ``m``."""
        write, choice, path = self.write, union.choice, self.module.tag_step(union.choice)
        read = f'r.Tag("{path}", {tags_literal(choice)})'
        write(f"m.Kind = {f'uint8({read})' if choice.numeric else read}")
        branches = branches_with_more(union)
        if not branches:
            return
        with write.block("switch m.Kind {"):
            for each in branches:
                write.case(f"case {union.name}{each.name}")
                if each.alternative.term:
                    self._refusal(each, path)
                if each.kind is not None:
                    with write.within("r", step(self.structure, choice)):
                        self._value(self.typed.then(each), self.module.content(union, each))

    def _refusal(self, branch: Branch, path: str) -> None:
        """Write the statement that refuses the tag of a branch under other parameters."""
        versions = version_condition(branch.alternative)
        is_old = condition(Not(versions)) if versions else "false"
        with self.write.block(f"if {negated(condition(branch.alternative.term))} {{"):
            self.write(f'r.Refuse("{path}", {is_old})')

    def _element(self, element: Element, target: str) -> None:
        test = self.module.test(self.structure, element)
        if isinstance(element, Field) and element.variants:
            self._variants(element, target)
        elif isinstance(element, Choice) and element.optional:
            self._optional_choice(element, target)
        elif isinstance(element, Field) and not target and not element.hidden:
            self._size(element, test)
        elif test:
            with self.write.block(f"if {test} {{"):
                self._statement(element, f"{target}.V" if target else "")
                if target:
                    self.write(f"{target}.Valid = true")
        else:
            self._statement(element, target)

    def _optional_choice(self, choice: Choice, target: str) -> None:
        following = self.structure.elements[self.structure.elements.index(choice) + 1]
        assert isinstance(following, Field) and following.constant_bytes
        with self.write.block(f"if !r.Next({letter_literal(chr(following.constant_bytes[0]))}) {{"):
            self._statement(choice, f"{target}.V")
            self.write(f"{target}.Valid = true")

    def _size(self, field: Field, test: str) -> None:
        """Write the statement that reads a count or a length into a local variable."""
        write, name, call = self.write, local(field.name), self._call(field)
        if test:
            write(f"var {name} {number_type(field)}")
            with write.block(f"if {test} {{"):
                write(f"{name} = {call}")
        else:
            write(f"{name} := {call}")

    def _variants(self, field: Field, target: str) -> None:
        """Write the statement that reads the variant that is present."""
        write, is_size = self.write, not target and not field.hidden
        place = f"{target}.V" if target and is_optional(field) else target
        if is_size:
            place = local(field.name)
            write(f"var {place} {type_name(self.typed.kind(field))}")
        for head, each in self.module.variants(self.structure, field):
            with write.branch(head):
                if each.hidden:
                    write(self._call(each))
                else:
                    self._variant(field, each, place)
                    if target and is_optional(field):
                        write(f"{target}.Valid = true")
        write("}")

    def _variant(self, field: Field, variant: Field, target: str) -> None:
        """Write the statement that reads a variant; a number gets the type that suits all variants."""
        kind, wanted = self.typed.kind(variant), self.typed.kind(field)
        if isinstance(kind, Number) and kind != wanted:
            self.write(f"{target} = {type_name(wanted)}({self._call(variant)})")
        else:
            self._statement(variant, target)

    def _statement(self, element: Element, target: str) -> None:
        """Write the statement that reads an element, whatever its condition."""
        match element:
            case Choice():
                self.write(f"{target}.read(r{self.module.argument(element)})")
            case Repeat():
                self._repeat(element, target)
            case Field(part=str(part), length=str(length)):
                head = f'r.Area("{step(self.structure, element)}", uint64({local(length)}), func() {{'
                with self.write.block(head, "})"):
                    self._value(self.module.spec.part(part), target)
            case Field(part=str(part)):
                with self.write.within("r", step(self.structure, element)):
                    self._value(self.module.spec.part(part), target)
            case Field():
                call = self._call(element)
                self.write(f"{target} = {call}" if target else call)

    def _value(self, structure: Structure, target: str) -> None:
        """Write the statement that reads the value of a nested structure."""
        if structure.single is None:
            self.write(f"{target}.read(r{self.module.argument(structure)})")
        elif id(structure) in self.typed.nested:
            self.write(f"{target} = read{self.typed.nested[id(structure)]}(r{self.module.argument(structure)})")
        else:
            GoReading(self.module, structure)._statement(structure.elements[0], target)

    def _repeat(self, repeat: Repeat, target: str) -> None:
        write, item = self.write, type_name(self.typed.inside(repeat.item))
        append = (f"var item {item}", f"{target} = append({target}, item)")
        write(f'r.Push("{step(self.structure, repeat)}")')
        is_counted = bool(repeat.count or repeat.fixed)
        if is_counted:
            count = f"uint64({local(repeat.count) if repeat.count else repeat.fixed})"
            write(f"{target} = make([]{item}, r.Room({count}))")
            head = f"for i := 0; uint64(i) < {count} && r.OK(); i++ {{"
        else:
            write(f"{target} = []{item}{{}}")
            head = f"for i := 0; r.{'More' if repeat.to_end else 'MoreBeforeZero'}(); i++ {{"
        with write.block(head):
            write("r.Index(i)")
            if is_counted:
                with write.block(f"if i == len({target}) {{"):
                    write(*append)
            else:
                write(*append)
            self._value(repeat.item, f"{target}[i]")
        write("r.Pop()")

    def _call(self, field: Field) -> str:
        """Return the call that reads a field and checks it."""
        path = f'"{step(self.structure, field)}"'
        match field:
            case Field(constant_bytes=bytes(constant)):
                call = f"r.Constant({path}, {bytes_literal(constant)})"
            case Field(frames=True):
                call = f"r.Length({path}, {field.size})"
            case Field(is_text=True):
                call = f"r.Text({path})"
            case Field(is_block=True):
                call = f"[{field.size}]byte(r.Block({path}, {field.size}))"
            case Field(size=None, length=None):
                call = "r.Rest()"
            case Field(size=None, length=str(length), absent=None):
                call = f"r.Bytes({path}, uint64({local(length)}))"
            case Field(size=None, length=str(length)):
                call = f"r.Nullable({path}, int64({local(length)}), {field.absent})"
            case Field(is_letter=True):
                call = f"r.Letter({path}, {bytes_literal(bytes(field.codes))})"
            case _:
                call = _number(field, path)
        return call


def _number(field: Field, path: str) -> str:
    """Return the call that reads a number, in its own type."""
    call, kind = f"r.{number_method(field)}({path})", number_type(field)
    if kind.startswith("wire."):
        call = f"{kind}({call})"
    if field.values:
        call = f"wire.OneOf(r, {path}, {call}, {', '.join(map(str, field.codes))})"
    elif field.bits:
        call = f"wire.Bits(r, {path}, {call}, {field.mask:#x})"
    return call
