"""The parse half of the codec. Where a position is not known before, it is the variable ``at``."""

from collections.abc import Callable, Generator, Iterator, Sequence

from tools.generate.codec_checks import checks, plain_number, shared_length
from tools.generate.codec_runs import (
    AHEAD,
    INDENT,
    REJECT,
    Formats,
    Lines,
    Run,
    code,
    condition,
    indented,
    runs,
    variable,
)
from tools.generate.text import docstring, snake_case
from tools.language import Alternative, Choice, Field, Message, Part, Repeat, Spec
from tools.language.model import Structure

__all__ = ["Parser"]


class Parser:
    """Emits parse functions."""

    def __init__(self, spec: Spec, formats: Formats) -> None:
        self.formats = formats
        self.parts = {part.name: part for part in spec.parts}
        self.taken: set[str] = set()
        self.parameters = "".join(f", {p.name}: {p.type}" for p in spec.parameters)
        self.arguments = "".join(f", {p.name}" for p in spec.parameters)
        self.classes: dict[str, tuple[str, ...]] = {}

    def setters(self) -> Lines:
        """Yield the lines that define the setters of the classes that were used."""
        for cls, names in self.classes.items():
            if names:
                yield f"{', '.join(_setter(cls, name) for name in names)}, = setters(m.{cls})"

    def message(self, message: Message) -> str:
        """Return the functions that parse one message and the items in it."""
        self.taken = {element.name for element in message.elements}
        head = f"def parse_{snake_case(message.class_name)}(data: bytes{self.parameters}) -> m.{message.class_name}:"
        lines = [docstring([f"Parse {message.class_name}."]).strip(), *self._message_body(message)]
        return "\n".join([*self._items(message), head, *indented(iter(lines))])

    def part(self, part: Part) -> str:
        """Return the functions that parse a part from a position on, and the items in it."""
        return "\n".join([*self._items(part), self._from_position(part, part.name)])

    def _items(self, structure: Structure) -> Lines:
        """Yield a function for each class of items: their fields may have the names of fields around them."""
        for inner in structure.inside():
            for element in inner.elements:
                if isinstance(element, Repeat) and element.item.single is None:
                    yield self._from_position(element.item, str(element.class_name)) + "\n\n"

    def _from_position(self, structure: Structure, name: str) -> str:
        self.taken = {element.name for element in structure.elements}
        head = f"def _parse_{snake_case(name)}(data: bytes, at: int{self.parameters}) -> tuple[Any, int]:"
        body = list(self._elements(structure, None))
        if structure.single is not None:
            body.append(f"return {variable(structure.single.name)}, at")
        else:
            body += [*self._object(structure, name, "item"), "return item, at"]
        return "\n".join([head, *indented(iter(body))])

    def _message_body(self, message: Message) -> Lines:
        if message.since and not message.unasked:
            yield f"if proto_version < {message.since}:"
            yield REJECT
        steps = list(runs(message.elements))
        if len(steps) == 1 and isinstance(steps[0], Run):
            yield from self._variants(steps[0], self._sized)
            yield from checks(steps[0])
        else:
            yield "size = len(data)"
            yield "data += PAD"
            yield from self._elements(message, 0)
            yield "if at != size:"
            yield REJECT
        yield from self._object(message, message.class_name, "message")
        yield "return message"

    def _sized(self, fields: Sequence[Field]) -> Lines:
        """Yield what reads a message of one run: its size is known, so it is compared once."""
        codes = _codes(fields, skip_tag=True)
        yield f"if len(data) != {self.formats.size(codes)}:"
        yield REJECT
        yield from self._unpack(fields, codes, "0")

    def _variants(self, run: Run, emit: Callable[[Sequence[Field]], Lines]) -> Lines:
        if not run.condition:
            yield from emit(run.fields)
            return
        yield f"if {run.condition}:"
        yield from indented(emit(run.present(True)))
        yield "else:"
        absent = [variable(field.name) for field in run.fields if field.conditional]
        yield f"{INDENT}{' = '.join(absent)} = None"
        yield from indented(emit(run.present(False)))

    def _unpack(self, fields: Sequence[Field], codes: str, at: str) -> Lines:
        names = [variable(field.name) for field in fields[1 if codes.startswith("x") else 0 :]]
        if names:
            yield f"{', '.join(names)}{',' if len(names) == 1 else ''} = {self.formats.unpack(codes)}(data, {at})"

    def _elements(self, structure: Structure, start: int | None) -> Lines:
        """Yield what reads a structure's elements; ``start`` is the position, None where ``at`` holds it."""
        for step in runs(structure.elements):
            if isinstance(step, Run):
                yield from self._run(step, start)
            elif isinstance(step, Repeat):
                yield from self._repeat(step)
            elif isinstance(step, Choice):
                yield from self._choice(step)
            else:
                yield from self._field(step)
            start = None

    def _run(self, run: Run, start: int | None) -> Lines:
        def emit(fields: Sequence[Field]) -> Lines:
            codes = _codes(fields, skip_tag=start == 0)
            yield from self._unpack(fields, codes, "at" if start is None else str(start))
            size = self.formats.size(codes)
            yield f"at += {size}" if start is None else f"at = {start + size}"

        yield from self._variants(run, emit)
        yield from checks(run)

    def _field(self, field: Field) -> Lines:
        """Yield what reads one field of no fixed size."""
        if not field.conditional:
            yield from self._content(field)
            return
        yield f"{variable(field.name)} = None"
        yield f"if {condition(field)}:"
        yield from indented(self._content(field))

    def _content(self, field: Field) -> Lines:
        name = variable(field.name)
        if field.part:
            yield from self._part_content(field.part, name)
        elif field.type is not None and field.type.notation == "String":
            yield 'end = data.index(b"\\0", at)'
            yield f'{name} = data[at:end].decode("utf-8", "surrogateescape")'
            yield "at = end + 1"
        elif field.length:
            yield f"end = at + {variable(field.length)}"
            yield f"{name} = data[at:end]"
            yield "at = end"
        else:
            yield "if at > size:"
            yield REJECT
            yield f"{name} = data[at:size]"
            yield "at = size"

    def _part_content(self, name: str, target: str) -> Lines:
        """Yield a part in place, which saves a call a row; by its function where names would meet."""
        part = self.parts[name]
        if part.single is None or self.taken & {element.name for element in part.elements}:
            yield f"{target}, at = _parse_{snake_case(name)}(data, at{self.arguments})"
            return
        yield from self._elements(part, None)
        yield f"{target} = {variable(part.single.name)}"

    def _repeat(self, repeat: Repeat) -> Lines:
        number = plain_number(repeat)
        if number is not None:
            yield from self._numbers(repeat, number)
            return
        name = variable(repeat.name)
        single = repeat.item.single
        shared = shared_length(single) if isinstance(single, Choice) and len(repeat.item.elements) == 1 else None
        if isinstance(single, Choice) and shared:
            yield from self._looking_ahead(repeat, single, shared)
            return
        yield f"{name}: Any = []"
        yield f"for _ in range({variable(repeat.count)}):"
        yield from indented(self._item(repeat, f"{name}.append"))
        yield f"{name} = tuple({name})"

    def _looking_ahead(self, repeat: Repeat, choice: Choice, shared: str) -> Lines:
        """Values whose branches all start with a length: one read takes a short value and the head of the next one.

        That is a sixth faster than a read for each head and a slice for each value.
        """
        name, head = variable(repeat.name), 1 + self.formats.size(shared)
        unpack, ahead = self.formats.unpack("B" + shared), self.formats.ahead("B" + shared)
        yield f"{name}: Any = []"
        yield f"kind, length = {unpack}(data, at)"
        yield f"at += {head}"
        yield f"for _ in range({variable(repeat.count)}):"
        for index, alternative in enumerate(sorted(choice.alternatives, key=lambda a: a.python != "bytes")):
            yield f"{INDENT}{'elif' if index else 'if'} {_taken(alternative)}"
            yield from indented(indented(_ahead(alternative, name, unpack, ahead, head)))
        yield f"{INDENT}else:"
        yield INDENT + REJECT
        yield f"at -= {head}"
        yield f"{name} = tuple({name})"

    def _numbers(self, repeat: Repeat, field: Field) -> Lines:
        """A repeat of plain numbers is read at once, after its size was compared with what is left."""
        name, count = variable(repeat.name), variable(repeat.count)
        yield f"end = at + {self.formats.size(code(field))} * {count}"
        yield "if end > len(data):"
        yield REJECT
        yield f'{name} = unpack_from(f">{{{count}}}{code(field)}", data, at)'
        if field.type is not None and field.type.python != "int":
            yield f"{name} = tuple([number({field.type.python}, value) for value in {name}])"
        yield "at = end"

    def _item(self, repeat: Repeat, put: str) -> Lines:
        single = repeat.item.single
        if single is None:
            yield f"item, at = _parse_{snake_case(str(repeat.class_name))}(data, at{self.arguments})"
            yield f"{put}(item)"
        elif isinstance(single, Choice) and len(repeat.item.elements) == 1:
            yield from self._valued(single, f"{put}(", ")")
        else:
            yield from self._elements(repeat.item, None)
            yield f"{put}({variable(single.name)})"

    def _valued(self, choice: Choice, before: str, after: str) -> Lines:
        """A choice whose branch shows in the value."""
        yield "kind = data[at]"
        ordered = sorted(choice.alternatives, key=lambda alternative: alternative.python != "bytes")
        for index, alternative in enumerate(ordered):
            yield f"{'elif' if index else 'if'} {_taken(alternative)}"
            yield from indented(self._branch(alternative, before, after))
        yield "else:"
        yield REJECT

    def _branch(self, alternative: Alternative, before: str, after: str) -> Lines:
        python = str(alternative.python)
        yield "at += 1"
        if alternative.then is None:
            yield f"{before}{python if python == 'None' else 'm.' + python}{after}"
            return
        value = yield from self._then(alternative, "value")
        yield f"{before}{value if python == 'bytes' else f'm.{python}({value})'}{after}"

    def _then(self, alternative: Alternative, target: str) -> Generator[str, None, str]:
        """Yield what reads the content of a branch; return the variable that holds it, the target where it can be."""
        if isinstance(alternative.then, str):
            yield f"{target}, at = _parse_{snake_case(alternative.then)}(data, at{self.arguments})"
            return target
        assert alternative.then is not None and alternative.then.single is not None
        yield from self._elements(alternative.then, None)
        return variable(alternative.then.single.name)

    def _choice(self, choice: Choice) -> Lines:
        name, kind = variable(choice.name), variable(choice.kind_name)
        if choice.valued:
            yield from self._valued(choice, f"{name} = ", "")
            return
        if choice.optional:
            yield f"{kind}: Any = None"
            yield f"{name}: Any = None"
        yield "kind = data[at]"
        for index, alternative in enumerate(choice.alternatives):
            yield f"{'elif' if index else 'if'} {_taken(alternative)}"
            yield f'{INDENT}{kind} = "{alternative.tag.decode()}"'
            yield f"{INDENT}at += 1"
            value = "None"
            if alternative.then is not None:
                value = yield from _indented(self._then(alternative, name))
            if value != name:
                yield f"{INDENT}{name} = {value}"
        if not choice.optional:
            yield "else:"
            yield REJECT

    def _object(self, structure: Structure, cls: str, target: str) -> Lines:
        """Yield what fills an object: setting the fields of a frozen class one by one is twice as fast as its init."""
        names = tuple(_object_fields(structure))
        self.classes[cls] = names
        yield f"{target} = new(m.{cls})"
        for name in names:
            yield f"{_setter(cls, name)}({target}, {variable(name)})"


def _ahead(alternative: Alternative, name: str, unpack: str, ahead: str, head: int) -> Lines:
    python = str(alternative.python)
    if alternative.then is None:
        yield f"{name}.append({python if python == 'None' else 'm.' + python})"
        yield f"kind, length = {unpack}(data, at - {head - 1})"
        yield "at += 1"
        return
    yield "end = at + length"
    yield f"if length < {AHEAD}:"
    yield f"{INDENT}value, kind, length = {ahead}[length](data, at)"
    yield "else:"
    yield f"{INDENT}value = data[at:end]"
    yield f"{INDENT}kind, length = {unpack}(data, end)"
    yield f"{name}.append({'value' if python == 'bytes' else f'm.{python}(value)'})"
    yield f"at = end + {head}"


def _indented(lines: Generator[str, None, str]) -> Generator[str, None, str]:
    while True:
        try:
            yield INDENT + next(lines)
        except StopIteration as end:
            return str(end.value)


def _taken(alternative: Alternative) -> str:
    version = f" and proto_version >= {alternative.since}" if alternative.since else ""
    return f"kind == {alternative.tag[0]}{version}:  # {alternative.name}"


def _object_fields(structure: Structure) -> Iterator[str]:
    for element in structure.exposed:
        if isinstance(element, Choice) and not element.valued:
            yield element.kind_name
        yield element.name


def _setter(cls: str, name: str) -> str:
    return f"_{snake_case(cls)}_{name}"


def _codes(fields: Sequence[Field], skip_tag: bool) -> str:
    """Return the format of a run; the tag of a message was looked at before, so it is skipped."""
    codes = [code(field) for field in fields]
    if skip_tag and isinstance(fields[0].constant, bytes):
        codes[0] = "x"
    return "".join(codes)
