"""The build half of the codec: functions that append to ``pieces``, which the caller joins."""

from collections.abc import Callable
from itertools import groupby

from tools.generate.python.codec_module import REJECT, Function, Module, elements_after, without_extension
from tools.generate.text import docstring
from tools.language import Alternative, Choice, Field, Message, Part, Repeat, conditions
from tools.language.elements import Element, Structure

__all__ = ["build_message", "build_part"]

Source = Callable[[str], str]
"""The expression of each field's value."""


def build_message(module: Module, message: Message) -> str:
    """Return the function that builds one message.

    For mypy the message is Any: it cannot know under which parameters and bits a field is present.
    """
    build, cls = _Function(module), message.class_name
    signature = ", ".join(["message: Any", *module.spec.signature])
    with build.block(f"def {module.function('build', cls)}({signature}) -> bytes:"):
        build.write(docstring([f"Build {cls}."], "").strip())
        if message.needs:
            build.write(f"if proto_version < {message.needs}:", REJECT)
        build.write("pieces: list[bytes] = []")
        build.message(message)
    return str(build.write)


def build_part(module: Module, part: Part) -> str:
    """Return the function that appends a part to the pieces."""
    build = _Function(module)
    signature = ", ".join(["value: Any", "pieces: list[bytes]", *module.spec.signature])
    with build.block(f"def {module.function('_build', part.name)}({signature}) -> None:"):
        build.value(part, "value")
    return str(build.write)


class _Function(Function):
    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.waiting: list[tuple[str, str]] = []
        """Format codes and values."""
        self.absent: set[str] = set()
        """Fields of bits that may be absent, which mypy sees as None: conditions on their bits need a cast."""
        self.areas: dict[str, str] = {}
        """The variables with the bytes of parts that have a length, by the expressions of the parts."""

    def flush(self) -> None:
        """Write the code that packs the pending numbers."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            pack = self.module.pack("".join(code for code, _ in waiting))
            self.write(f"pieces.append({pack}({', '.join(value for _, value in waiting)}))")

    def message(self, message: Message) -> None:
        """Write the code that builds a message with a length, which is inserted before what follows it."""
        if message.length is None:
            self.structure(message, "message.{}".format)
            self.line('return b"".join(pieces)')
            return
        self.structure(elements_after(message, message.length), "message.{}".format)
        content = self.name("content")
        self.line(f'{content} = b"".join(pieces)')
        pack = self.module.pack("B" * len(message.tag) + message.length.code)
        tag = "".join(f"{byte}, " for byte in message.tag)
        self.write(f"return {pack}({tag}len({content}) + {message.length.size}) + {content}")

    def structure(self, structure: Structure, source: Source) -> None:
        """Write the code that builds the elements of a structure; elements with the same condition share a block."""
        self.absent |= {each.name for each in structure.elements if each.name in structure.flags and each.conditional}
        nullable = {field.length: field for field in structure.elements if isinstance(field, Field) and field.absent}

        def value(name: str) -> str:
            if name in structure.areas:
                return f"len({self.areas[source(structure.areas[name])]})"
            if name in nullable:
                measured = source(nullable[name].name)
                return f"{nullable[name].absent} if {measured} is None else len({measured})"
            return f"len({source(structure.sizes[name])})" if name in structure.sizes else source(name)

        for part in structure.areas.values():
            self.areas[source(part)] = self.name(f"{part}_bytes")
        for condition, elements in groupby(structure.elements, lambda element: self._condition(element, value)):
            if condition:
                self._conditional(condition, list(elements), structure, value)
            else:
                for element in elements:
                    self._element(structure, element, value)

    def _condition(self, element: Element, source: Source) -> str:
        """Return the condition of an element, without what the enclosing block has tested."""
        inside = isinstance(element, Choice) or (isinstance(element, Field) and bool(element.variants))
        return "" if inside else self._test(element, source)

    def _test(self, element: Element, source: Source) -> str:
        return element.test(lambda name: f"({source(name)} or 0)" if name in self.absent else source(name))

    def _conditional(self, condition: str, elements: list[Element], structure: Structure, source: Source) -> None:
        with self.block(f"if {condition}:"):
            for element in elements:
                self._element(structure, element, source)
        absent = [f"{source(element.name)} is not None" for element in elements if element in structure.exposed]
        if absent:
            self.write(f"elif {' or '.join(absent)}:", REJECT)

    def _variants(self, structure: Structure, field: Field, source: Source) -> None:
        """Write the code that builds a field with variants: the variant that is present."""
        value = source(field.name)
        for number, each in enumerate(field.variants):
            last = each is field.variants[-1] and field.complete
            with self.block("else:" if last else f"{'elif' if number else 'if'} {self._test(each, source)}:"):
                if each.hidden and not field.hidden:
                    self.write(f"if {value} is not None:", REJECT)
                self._element(structure, each.always, source)
        if not (field.complete or field.hidden):
            self.write(f"elif {value} is not None:", REJECT)

    def _element(self, structure: Structure, element: Element, source: Source) -> None:
        value = source(element.name)
        if element.name in structure.areas and isinstance(element, Field) and not element.variants:
            self._area(structure, source, structure.areas[element.name])
        if isinstance(element, Field) and element.variants:
            self._variants(structure, element, source)
        elif isinstance(element, Repeat):
            self._repeat(element, value, self._number_of_items(structure, element, source))
        elif isinstance(element, Choice):
            self._choice(element, value, source(element.kind_name))
        elif element.size is not None:
            self._number(element, value)
        elif element.is_area:
            self.line(f"pieces.append({self.areas[value]})")
        elif element.part:
            self.line(f"{self.module.function('_build', element.part)}({value}, pieces{self.module.arguments})")
        elif element.is_text:
            self.line(f"pieces.append(string_bytes({value}))")
        elif element.absent is not None:
            with self.block(f"if {value} is not None:"):
                self._bytes(value)
        else:
            self._bytes(value)

    def _area(self, structure: Structure, source: Source, name: str) -> None:
        """Write the code that builds a part before its length, which is that of its bytes."""
        part = next(each.part for each in structure.elements if each.name == name and isinstance(each, Field))
        build, value = self.module.function("_build", str(part)), source(name)
        self.write(f"{self.areas[value]} = part_bytes({build}, {value}{self.module.arguments})")

    def _bytes(self, value: str) -> None:
        self.write(f"if not isinstance({value}, bytes):", REJECT)
        self.line(f"pieces.append({value})")

    def _number(self, field: Field, value: str) -> None:
        if field.constant_number is not None:
            value = str(field.constant_number)
        elif field.is_block:
            self.write(f"if not isinstance({value}, bytes) or len({value}) != {field.size}:", REJECT)
        elif field.bits:
            absent = f"{value} is None or " * field.conditional
            self.write(f"if {absent}{value} & ~{field.mask:#x}:", REJECT)
        elif field.values:
            self.write(f"if {value} not in {tuple(field.values)!r}:", REJECT)
        self.waiting.append((field.code, f"ord({value})" if field.is_letter else value))

    def value(self, structure: Structure, value: str) -> None:
        """Write the code that builds a nested structure: its field, an object of its class, or either of them."""
        if structure.extended:
            with self.block(f"if {conditions.text(structure.extension)}:"):
                self._object(structure, value)
            with self.block("else:"):
                self.value(without_extension(structure), value)
        elif structure.single is not None:
            self.structure(structure, lambda _: value)
        else:
            self._object(structure, value)

    def _object(self, structure: Structure, value: str) -> None:
        self.write(f"if not isinstance({value}, {self.module.checked(str(structure.class_name))}):", REJECT)
        self.structure(structure, f"{value}.{{}}".format)

    def _number_of_items(self, structure: Structure, repeat: Repeat, source: Source) -> str:
        """Return the number of items that a repeat must have; empty if that is its own affair."""
        if repeat.name in structure.alike:
            return f"len({source(structure.alike[repeat.name])})"
        return str(repeat.fixed or "")

    def _repeat(self, repeat: Repeat, value: str, number: str) -> None:
        wrong = f" or len({value}) != {number}" if number else ""
        self.write(f"if not isinstance({value}, (tuple, list)){wrong}:", REJECT)
        item = self.name(f"{repeat.name}_item")
        if not repeat.terminated:
            with self.block(f"for {item} in {value}:"):
                self.value(repeat.item, item)
            return
        first = self.name(f"{repeat.name}_first")
        with self.block(f"for {item} in {value}:"):
            self.write(f"{first} = len(pieces)")
            self.value(repeat.item, item)
            self.line(f"if not pieces[{first}][0]:  # as if it were the end", REJECT)
        self.line(r'pieces.append(b"\0")')

    def _choice(self, choice: Choice, value: str, kind: str) -> None:
        for number, each in enumerate(sorted(choice.alternatives, key=lambda a: a.python != "bytes")):
            test = _shows(each, value) if choice.valued else f"{kind} == {each.key!r}"
            with self.block(f"{'elif' if number else 'if'} {each.tested(test)}:"):
                self.waiting.append(("B", str(each.tag[0])))
                self._branch(each, value, choice.valued)
        self.write(f"elif {kind} is not None or {value} is not None:" if choice.optional else "else:", REJECT)

    def _branch(self, alternative: Alternative, value: str, valued: bool) -> None:
        if isinstance(alternative.then, str):
            self.line(f"{self.module.function('_build', alternative.then)}({value}, pieces{self.module.arguments})")
        elif alternative.content is not None and alternative.then is not None:
            content = alternative.content.name
            self.structure(alternative.then, lambda name: value if name == content else f"{value}.{name}")
        elif alternative.then is not None:
            self.value(alternative.then, value)
        elif not valued:
            self.write(f"if {value} is not None:", REJECT)


def _shows(alternative: Alternative, value: str) -> str:
    """Return the test for a branch that is implied by the value."""
    return f"{value} is {alternative.value}" if alternative.then is None else f"type({value}) is {alternative.value}"
