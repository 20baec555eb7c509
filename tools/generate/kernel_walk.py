"""The walks of the columnar kernels: one over each structure, and the index over all messages of a batch."""

from collections.abc import Iterator, Sequence

from tools.generate.codec_runs import INDENT, Lines, Run, code, indented, runs
from tools.generate.codec_runs import condition as condition_of
from tools.generate.text import docstring, snake_case
from tools.language import Alternative, Choice, Field, Message, Part, Repeat, Spec
from tools.language.model import Structure

__all__ = ["READ", "Walker", "number_at", "row_fields", "tuple_parts", "values_of"]

MALFORMED = f"{INDENT}return -1"
READ = {1: "u8(data, {at})", 2: "u16(data, {at})", 4: "u32(data, {at})", 8: "u64(data, {at})"}
"""How a number of so many bytes is read."""
DTYPES = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}


def number_at(field: Field, at: str) -> str:
    """Return the expression that reads a fixed field."""
    return READ[_size(field)].format(at=at)


def _size(field: Field) -> int:
    return 1 if isinstance(field.constant, bytes) else (field.type.bytes or 0) if field.type else 0


def tuple_parts(spec: Spec) -> list[Part]:
    """Return the parts that are rows: repeats of values that are sent in one of several ways."""
    return [part for part in spec.parts if values_of(part) is not None]


def values_of(part: Part) -> Choice | None:
    """Return how the values of a row are sent, None for a part that is no row."""
    single = part.single
    if not isinstance(single, Repeat):
        return None
    value = single.item.single
    return value if isinstance(value, Choice) and value.valued else None


def row_fields(spec: Spec) -> dict[str, str]:
    """Return what the index keeps: the fields of messages that hold rows, each with its numpy type."""
    kept: dict[str, str] = {}
    for message in row_messages(spec):
        for element in message.exposed:
            if isinstance(element, Choice):
                kept[element.kind_name] = "uint8"
                kept[element.name] = "int64"
            elif isinstance(element, Field) and element.part:
                kept[element.name] = "int64"
            elif isinstance(element, Field) and element.type is not None and element.type.bytes:
                kept[element.name] = DTYPES[element.type.bytes]
    return kept


def row_messages(spec: Spec) -> list[Message]:
    """Return the messages that hold rows."""
    names = {part.name for part in tuple_parts(spec)}
    return [message for message in spec.messages if names & set(message.references())]


class Walker:
    """Emits the walks."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.kept = row_fields(spec)
        self.row_messages = {message.name for message in row_messages(spec)}
        self.parameters = "".join(f", {p.name}: {p.type}" for p in spec.parameters)
        self.arguments = "".join(f", {p.name}" for p in spec.parameters)

    def functions(self) -> Iterator[str]:
        """Yield all functions, those that others call first."""
        for part in self.spec.parts_in_order:
            yield from self._items(part)
            yield self._function(part, part.name, kept=False)
        for message in self.spec.messages:
            yield from self._items(message)
            yield self._function(message, message.class_name, kept=message.name in self.row_messages)
        yield self._index()
        for part in tuple_parts(self.spec):
            yield self._finder(part)

    def _items(self, structure: Structure) -> Iterator[str]:
        for inner in structure.inside():
            for element in inner.elements:
                if isinstance(element, Repeat) and element.item.single is None:
                    yield self._function(element.item, str(element.class_name), kept=False)

    def _function(self, structure: Structure, name: str, kept: bool) -> str:
        extra = "".join(f", {field}: Any" for field in self.kept) if kept else ""
        row = ", row: int" if kept else ""
        head = (
            f"@kernel\ndef _walk_{snake_case(name)}(data: Any, at: int, end: int{row}{self.parameters}{extra}) -> int:"
        )
        body = []
        if isinstance(structure, Message) and structure.since and not structure.unasked:
            body += [f"if proto_version < {structure.since}:", MALFORMED]
        body += [*self._elements(structure, kept), "return at"]
        return "\n".join([head, *indented(iter(body))])

    def _elements(self, structure: Structure, kept: bool) -> Lines:
        for step in runs(structure.elements):
            if isinstance(step, Run):
                yield from self._run(step, structure, kept)
            elif isinstance(step, Repeat):
                yield from self._repeat(step)
            elif isinstance(step, Choice):
                yield from self._choice(step, structure, kept)
            else:
                yield from self._field(step, kept)

    def _run(self, run: Run, structure: Structure, kept: bool) -> Lines:
        if not run.condition:
            yield from self._fixed(run.fields, structure, kept)
            return
        yield f"if {run.condition}:"
        yield from indented(self._fixed(run.present(True), structure, kept))
        if run.present(False):
            yield "else:"
            yield from indented(self._fixed(run.present(False), structure, kept))

    def _fixed(self, fields: Sequence[Field], structure: Structure, kept: bool) -> Lines:
        """Yield the size check of a run, then what is checked and kept of it, then the step over it."""
        total = sum(_size(field) for field in fields)
        yield f"if end - at < {total}:"
        yield MALFORMED
        offset = 0
        for field in fields:
            at = f"at + {offset}" if offset else "at"
            yield from self._seen(field, at, structure, kept)
            offset += _size(field)
        yield f"at += {total}"

    def _seen(self, field: Field, at: str, structure: Structure, kept: bool) -> Lines:
        value = number_at(field, at)
        test = _test(field, value)
        if test:
            yield f"if {test}:"
            yield MALFORMED
        if field.name in structure.sizes:
            yield f"{field.name} = {value}"
        elif kept and field.name in self.kept and field.constant is None:
            yield f"{field.name}[row] = {value}"

    def _field(self, field: Field, kept: bool) -> Lines:
        if field.conditional:
            yield f"if {condition_of(field)}:"
            yield from indented(self._content(field, kept))
        else:
            yield from self._content(field, kept)

    def _content(self, field: Field, kept: bool) -> Lines:
        if field.part:
            yield from self._part(field.part, field.name, kept)
        elif field.type is not None and field.type.notation == "String":
            yield "at = find_nul(data, at, end) + 1"
            yield "if at == 0:"
            yield MALFORMED
        elif field.length:
            yield f"if {field.length} > end - at:"
            yield MALFORMED
            yield f"at += {field.length}"
        else:
            yield "at = end"

    def _part(self, part: str, name: str, kept: bool) -> Lines:
        if kept and name in self.kept:
            yield f"{name}[row] = at"
        yield f"at = _walk_{snake_case(part)}(data, at, end{self.arguments})"
        yield "if at < 0:"
        yield MALFORMED

    def _repeat(self, repeat: Repeat) -> Lines:
        """A count needs no bound of its own: an item takes a byte at least, or ends the walk."""
        yield f"for _ in range({repeat.count}):"
        single = repeat.item.single
        if single is None:
            body = self._part(str(repeat.class_name), "", kept=False)
        else:
            body = self._elements(repeat.item, kept=False)
        yield from indented(body)

    def _choice(self, choice: Choice, structure: Structure, kept: bool) -> Lines:
        if not choice.optional:
            yield "if at >= end:"
            yield MALFORMED
        yield "kind = u8(data, at) if at < end else 0" if choice.optional else "kind = u8(data, at)"
        for index, alternative in enumerate(choice.alternatives):
            version = f" and proto_version >= {alternative.since}" if alternative.since else ""
            yield f"{'elif' if index else 'if'} kind == {alternative.tag[0]}{version}:  # {alternative.name}"
            if kept and choice.kind_name in self.kept:
                yield f"{INDENT}{choice.kind_name}[row] = kind"
            yield f"{INDENT}at += 1"
            yield from indented(self._branch(alternative, choice.name, kept))
        if not choice.optional:
            yield "else:"
            yield MALFORMED

    def _branch(self, alternative: Alternative, name: str, kept: bool) -> Lines:
        if isinstance(alternative.then, str):
            yield from self._part(alternative.then, name, kept)
        elif alternative.then is not None:
            yield from self._elements(alternative.then, kept=False)

    def _index(self) -> str:
        kept = ", ".join(self.kept)
        shared = [p for p in self.spec.parameters if p.name != "in_stream"]
        head = "".join(f", {p.name}: {p.type}" for p in shared)
        columns = "".join(f", {name}: Any" for name in self.kept)
        arguments = f"data: Any, starts: Any, ends: Any, streams: Any{head}, tags: Any, valid: Any{columns}"
        lines = [
            f"@kernel\ndef index({arguments}) -> None:",
            docstring(["Index a batch: the kind of each payload, whether it is a message, and what is kept of rows."]),
            "    for row in range(len(starts)):",
            "        at, end, in_stream = starts[row], ends[row], streams[row]",
            "        if at >= end:",
            "            continue",
            "        kind = u8(data, at)",
            "        tags[row] = kind",
        ]
        for position, message in enumerate(self.spec.messages):
            arguments = f"data, at, end{', row' if message.name in self.row_messages else ''}{self.arguments}"
            arguments += f", {kept}" if message.name in self.row_messages else ""
            call = f"_walk_{snake_case(message.class_name)}({arguments})"
            lines.append(f"        {'elif' if position else 'if'} kind == {message.tag[0]}:")
            lines.append(f"            at = {call}")
        lines += ["        else:", "            at = -1", "        valid[row] = at == end"]
        return "\n".join(lines)

    def _finder(self, part: Part) -> str:
        """Return the function that finds the values of rows that were walked before, so that nothing is checked."""
        repeat, choice = part.single, values_of(part)
        assert isinstance(repeat, Repeat) and choice is not None
        count = next(e for e in part.elements if isinstance(e, Field) and e.name == repeat.count)
        text = "Find the values of rows (not those at -1); return the first with another number of columns, or -1."
        body = [
            docstring([text]).strip(),
            "for row in range(len(places)):",
            "    at = places[row]",
            "    if at < 0:",
            "        continue",
            f"    if {number_at(count, 'at')} != columns:",
            "        return row",
            f"    at += {_size(count)}",
            "    for column in range(columns):",
            "        kind = u8(data, at)",
            "        at += 1",
            "        length = 0",
            *(f"        {line}" for line in self._found(choice)),
            "        tags[column, row] = kind",
            "        starts[column, row] = at",
            "        lengths[column, row] = length",
            "        at += length",
            "return -1",
        ]
        arguments = "data: Any, places: Any, columns: int, tags: Any, starts: Any, lengths: Any"
        head = f"@kernel\ndef values_{snake_case(part.name)}({arguments}) -> int:"
        return "\n".join([head, *indented(iter(body))])

    def _found(self, choice: Choice) -> Lines:
        sized = [a for a in choice.alternatives if isinstance(a.then, Structure)]
        by_size: dict[str, list[int]] = {}
        for alternative in sized:
            assert isinstance(alternative.then, Structure)
            size = alternative.then.elements[0]
            assert isinstance(size, Field)
            by_size.setdefault(code(size), []).append(alternative.tag[0])
        for form, tags in by_size.items():
            width = {"B": 1, "H": 2, "I": 4, "Q": 8}[form]
            yield f"if {' or '.join(f'kind == {tag}' for tag in tags)}:"
            yield f"    length = {READ[width].format(at='at')}"
            yield f"    at += {width}"


def _test(field: Field, value: str) -> str:
    """Return the expression that is true for a value that PostgreSQL does not define."""
    if field.constant is not None:
        return f"{value} != {field.constant[0] if isinstance(field.constant, bytes) else field.constant}"
    if field.bits:
        return f"{value} & ~{sum(field.bits):#x}"
    if field.values:
        codes = [ord(v) if isinstance(v, str) else v for v in field.values]
        return f"{value} not in ({', '.join(map(str, codes))},)"
    return ""
