"""The build half of the codec: pieces of bytes, joined at the end."""

from collections.abc import Callable, Sequence

from tools.generate.codec_runs import (
    INDENT,
    REJECT,
    Formats,
    Lines,
    Run,
    code,
    condition,
    indented,
    is_fixed,
    runs,
    variable,
)
from tools.generate.text import docstring, snake_case
from tools.language import Alternative, Choice, Field, Message, Part, Repeat, Spec
from tools.language.model import Element, Structure

__all__ = ["Builder"]

Source = Callable[[str], str]
"""Where the value of a field is."""


class Builder:
    """Emits build functions; ``pieces`` is the list that they fill."""

    def __init__(self, spec: Spec, formats: Formats) -> None:
        self.formats = formats
        self.parameters = "".join(f", {p.name}: {p.type}" for p in spec.parameters)
        self.arguments = "".join(f", {p.name}" for p in spec.parameters)

    def message(self, message: Message) -> str:
        """Return the function that builds one message."""
        name = snake_case(message.class_name)
        head = f"def build_{name}(message: m.{message.class_name}{self.parameters}) -> bytes:"
        lines = [docstring([f"Build {message.class_name}."]).strip(), *self._message_body(message)]
        return "\n".join([head, *indented(iter(lines))])

    def _message_body(self, message: Message) -> Lines:
        if message.since and not message.unasked:
            yield f"if proto_version < {message.since}:"
            yield REJECT
        yield "pieces: list[bytes] = []"
        yield from self._structure(message, "message.")
        yield 'return b"".join(pieces)'

    def part(self, part: Part) -> str:
        """Return the function that builds a part into the pieces."""
        head = f"def _build_{snake_case(part.name)}(value: Any, pieces: list[bytes]{self.parameters}) -> None:"
        single = part.single
        if single is None:
            body = list(self._record(part, part.name, "value"))
        else:
            body = list(self._structure(part, "", {single.name: "value"}))
        return "\n".join([head, *indented(iter(body))])

    def _record(self, structure: Structure, cls: str, source: str) -> Lines:
        yield f"if not isinstance({source}, m.{cls}):"
        yield REJECT
        yield from self._structure(structure, f"{source}.")

    def _structure(self, structure: Structure, prefix: str, names: dict[str, str] | None = None) -> Lines:
        """Yield what builds a structure; ``prefix`` or ``names`` say where each field's value is."""
        known = dict(names or {})
        for name, measured in structure.sizes.items():
            yield f"{variable(name)} = len({known.get(measured, prefix + measured)})"
            known[name] = variable(name)

        def source(name: str) -> str:
            return known.get(name, prefix + name)

        for step in runs(structure.elements):
            if isinstance(step, Run):
                yield from self._run(step, source)
            elif isinstance(step, Repeat):
                yield from self._repeat(step, source(step.name))
            elif isinstance(step, Choice):
                yield from self._choice(step, source(step.name), source(step.kind_name))
            else:
                yield from self._field(step, source(step.name))

    def _run(self, run: Run, source: Source) -> Lines:
        for field in run.fields:
            yield from _check(field, source(field.name))
        if not run.condition:
            yield self._pack(run.fields, source)
            return
        yield f"if {run.condition}:"
        yield INDENT + self._pack(run.present(True), source)
        yield "else:"
        for field in run.fields:
            if field.conditional:
                yield f"{INDENT}if {source(field.name)} is not None:"
                yield f"{INDENT * 2}raise Reject"
        if run.present(False):
            yield INDENT + self._pack(run.present(False), source)

    def _pack(self, fields: Sequence[Field], source: Source) -> str:
        codes = "".join(code(field) for field in fields)
        values = ", ".join(_packed(field, source(field.name)) for field in fields)
        return f"pieces.append({self.formats.pack(codes)}({values}))"

    def _field(self, field: Field, value: str) -> Lines:
        if not field.conditional:
            yield from self._content(field, value)
            return
        yield f"if {condition(field)}:"
        yield from indented(self._content(field, value))
        yield f"elif {value} is not None:"
        yield REJECT

    def _content(self, field: Field, value: str) -> Lines:
        if field.part:
            yield f"_build_{snake_case(field.part)}({value}, pieces{self.arguments})"
        elif field.type is not None and field.type.notation == "String":
            yield f"pieces.append(string_bytes({value}))"
        else:
            yield f"if not isinstance({value}, bytes):"
            yield REJECT
            yield f"pieces.append({value})"

    def _repeat(self, repeat: Repeat, value: str) -> Lines:
        item = f"{repeat.name}_item"
        yield f"if not isinstance({value}, (tuple, list)):"
        yield REJECT
        yield f"for {item} in {value}:"
        single = repeat.item.single
        if single is None:
            yield from indented(self._record(repeat.item, str(repeat.class_name), item))
        else:
            yield from indented(self._structure(repeat.item, "", {single.name: item}))

    def _choice(self, choice: Choice, value: str, kind: str) -> Lines:
        if choice.valued:
            yield from self._valued(choice, value)
            return
        for index, alternative in enumerate(choice.alternatives):
            version = f" and proto_version >= {alternative.since}" if alternative.since else ""
            yield f'{"elif" if index else "if"} {kind} == "{alternative.tag.decode()}"{version}:'
            yield f"{INDENT}pieces.append({alternative.tag!r})"
            yield from indented(self._then(alternative, value))
        if choice.optional:
            yield f"elif {kind} is not None or {value} is not None:"
        else:
            yield "else:"
        yield REJECT

    def _then(self, alternative: Alternative, value: str) -> Lines:
        if alternative.then is None:
            yield f"if {value} is not None:"
            yield REJECT
        elif isinstance(alternative.then, str):
            yield f"_build_{snake_case(alternative.then)}({value}, pieces{self.arguments})"
        else:
            yield from self._single(alternative.then, value)

    def _single(self, structure: Structure, value: str) -> Lines:
        assert structure.single is not None
        yield from self._structure(structure, "", {structure.single.name: value})

    def _valued(self, choice: Choice, value: str) -> Lines:
        ordered = sorted(choice.alternatives, key=lambda a: a.python != "bytes")
        for index, alternative in enumerate(ordered):
            python = str(alternative.python)
            name = python if python in ("None", "bytes") else f"m.{python}"
            test = f"{value} is {name}" if alternative.then is None else f"type({value}) is {name}"
            version = f" and proto_version >= {alternative.since}" if alternative.since else ""
            yield f"{'elif' if index else 'if'} {test}{version}:"
            yield from indented(self._tagged(alternative, value))
        yield "else:"
        yield REJECT

    def _tagged(self, alternative: Alternative, value: str) -> Lines:
        """Yield the tag and what follows it; a length is packed together with the tag."""
        then = alternative.then
        sized = isinstance(then, Structure) and len(then.elements) == 2 and is_fixed(then.elements[0])
        if isinstance(then, Structure) and sized and len(then.sizes) == 1:
            pack = self.formats.pack("B" + code(_first(then.elements)))
            yield f"pieces.append({pack}({alternative.tag[0]}, len({value})))"
            yield f"pieces.append({value})"
            return
        yield f"pieces.append({alternative.tag!r})"
        if then is not None:
            yield from self._then(alternative, value)


def _first(elements: Sequence[Element]) -> Field:
    first = elements[0]
    assert isinstance(first, Field)
    return first


def _check(field: Field, value: str) -> Lines:
    if field.constant is not None:
        return
    if field.bits:
        test = f"{value} & ~{sum(field.bits):#x}"
    elif field.values:
        test = f"{value} not in {tuple(field.values)!r}"
    else:
        return
    yield f"if {f'{value} is not None and ' if field.conditional else ''}{test}:"
    yield REJECT


def _packed(field: Field, value: str) -> str:
    if field.constant is not None:
        return str(field.constant[0] if isinstance(field.constant, bytes) else field.constant)
    letters = field.values and all(isinstance(v, str) for v in field.values)
    return f"ord({value})" if letters else value
