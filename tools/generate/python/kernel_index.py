"""The walks of the columnar kernels: one for each structure, the index of a batch, the location of a row's values."""

from collections.abc import Iterator

from tools.generate.python.kernel_walk import Names, Steps, number_at, tag_name, uses
from tools.generate.text import docstring
from tools.generate.writer import Writer
from tools.language import Alternative, Choice, Field, Message, Part, Repeat, Spec
from tools.language.elements import Structure

__all__ = ["Walker", "row_fields", "row_messages"]


def row_messages(spec: Spec) -> list[Message]:
    """Return the messages with tuples."""
    names = {part.name for part in spec.rows}
    return [message for message in spec.messages if names & set(message.references())]


def row_fields(spec: Spec) -> dict[str, str]:
    """Return the fields of the index for messages with tuples, by name and numpy type: offsets (int64), and numbers.

    A number is not indexed if its name is that of an offset, or of a number in floating point, in another message.
    """
    elements = [element for message in row_messages(spec) for element in message.exposed]
    choices = [element for element in elements if isinstance(element, Choice) and not element.valued]
    fields = [element for element in elements if isinstance(element, Field)]
    positions = {*(choice.name for choice in choices), *(field.name for field in fields if field.part)}
    floats = {field.name for field in fields if field.is_float}
    sizes: dict[str, int] = {choice.kind_name: 1 for choice in choices}
    for field in fields:
        if field.width and field.name not in positions | floats:
            sizes[field.name] = max(field.width, sizes.get(field.name, 0))
    names = dict.fromkeys(name for element in elements for name in getattr(element, "names", (element.name,)))
    kept = {name: f"uint{8 * sizes[name]}" for name in names if name in sizes}
    return kept | {name: "int64" for name in names if name in positions}


class Walker:
    """Emits the walks."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.names = Names(spec)
        self.kept = row_fields(spec)
        self.row_messages = row_messages(spec)

    def functions(self) -> Iterator[str]:
        """Yield all functions, each after those that it calls."""
        for named in (*self.spec.parts_in_order, *self.spec.messages):
            yield from (self._walk(repeat.item) for repeat in named.records())
            yield self._walk(named)
        yield self._index()
        for part in self.spec.rows:
            yield self._finder(part)

    def _walk(self, structure: Structure) -> str:
        write = Writer()
        kept = self.kept if structure in self.row_messages else {}
        given = ["data: Any", "at: int", "end: int", *(["row: int"] if kept else []), *self.names.signature]
        with write.block(
            f"def walk_{self.names.of(str(structure.class_name))}({', '.join([*given, *_arrays(kept)])}) -> int:"
        ):
            steps = _Walk(self.names, structure, write, kept)
            if isinstance(structure, Message) and structure.needs:
                steps.refuse(f"proto_version < {structure.needs}")
            steps.all(structure.elements)
            write("return at")
        return f"@kernel\n{write}"

    def _index(self) -> str:
        write = Writer()
        given = ["data: Any", "starts: Any", "ends: Any", *self.names.batch_signature, "tags: Any", "valid: Any"]
        with write.block(f"def index({', '.join([*given, *_arrays(self.kept)])}) -> None:"):
            write('"""Index a batch: the tag of each payload, whether it is a message, and what is kept of rows."""')
            with write.block("for row in range(len(starts)):"):
                write("at, end = starts[row], ends[row]", "prefetch(data, at)")
                write(*(f"{p} = {p}_by_row[row]" for p in self.names.by_row))
                write(*(f"_{name}[row] = {-1 if kind == 'int64' else 0}" for name, kind in self.kept.items()))
                with write.block("if at >= end:"):
                    write("tags[row] = valid[row] = 0", "continue")
                write("tag = u8(data, at)", "tags[row] = tag")
                for position, message in enumerate(self.spec.messages):
                    with write.block(f"{'elif' if position else 'if'} tag == TAG_{message.class_name}:"):
                        write(f"at = walk_{self.names.of(message.class_name)}({', '.join(self._call(message))})")
                with write.block("else:"):
                    write("at = -1")
                write("valid[row] = at == end")
        return f"@kernel\n{write}"

    def _call(self, message: Message) -> list[str]:
        kept = self.kept if message in self.row_messages else {}
        return ["data", "at", "end", *(["row"] if kept else []), *self.names.arguments, *(f"_{name}" for name in kept)]

    def _finder(self, part: Part) -> str:
        body = Writer()
        steps = _Find(self.names, part, body, self.spec)
        steps.all(part.elements[: part.elements.index(steps.rows) + 1])
        write = Writer()
        given = ["data: Any", "rows: Any", "places: Any", *self.names.batch_signature, "columns: int", *_FOUND]
        head = f"def find_{self.names.of(part.name)}({', '.join(given)}) -> bool:"
        with write.block(head):
            write(docstring(["Find the values of rows (not those at -1), and count them.", "", *_FINDS], "").strip())
            write("fits = True", *(["end = len(data)"] if uses(str(body), "end") else []))
            with write.block("for row in range(len(places)):"):
                write("at = places[row]")
                with write.block("if at < 0:"):
                    write(*_NO_VALUES, "continue")
                write("prefetch(data, at)")
                write(*self.names.row_values(str(body), "rows[row]"), str(body))
            write("return fits")
        return f"@kernel\n{write}"


_FOUND = (
    *("plan: Any", "out: Any"),
    *("counts: Any", "tags: Any", "starts: Any", "lengths: Any", "seen: Any", "sizes: Any"),
)
_FINDS = (
    "``rows`` are the indexes of the payloads: the parameters by row are those of all payloads of the batch.",
    "Rows with another number of values than there are columns are counted only, and make the answer False.",
    "The values that ``plan`` knows are written to ``out``. Of the others it is noted where they are, and ``seen``",
    "counts each column's tags, ``sizes`` their bytes.",
)

_NO_VALUES = (
    "for column in range(columns):",
    "    put_nothing(plan, column, row, out)",
)


def _arrays(kept: dict[str, str]) -> list[str]:
    return [f"_{name}: Any" for name in kept]


class _Walk(Steps):
    """The walk over a structure, which stores indexed fields of messages with tuples."""

    def __init__(self, names: Names, structure: Structure, write: Writer, kept: dict[str, str]) -> None:
        super().__init__(names, structure, write)
        self.kept = kept

    def number(self, field: Field, offset: int) -> None:
        """Write the check of a field, and store its value; the index has checked a message's tag."""
        if self._keeps(field.name) and self.kept[field.name] != "int64" and field.constant is None:
            super().number(field, offset)
            self.write(f"_{field.name}[row] = {number_at(field, offset)}")
        elif not (isinstance(self.structure, Message) and field is self.structure.elements[0]):
            super().number(field, offset)

    def field(self, field: Field) -> None:
        """Store the offset of a part, and write the walk over it."""
        if field.part and self._keeps(field.name):
            self.write(f"_{field.name}[row] = at")
        super().field(field)

    def alternative(self, choice: Choice, alternative: Alternative) -> None:
        """Store the tag of the branch and the offset of its content, and write the walk over them."""
        if self._keeps(choice.name) and not choice.valued:
            self.write(f"_{choice.kind_name}[row] = kind")
            if isinstance(alternative.then, str):
                self.write(f"_{choice.name}[row] = at")
        super().alternative(choice, alternative)

    def _keeps(self, name: str) -> bool:
        return self.depth == 1 and name in self.kept


class _Find(Steps):
    """The walk over a row that was validated before; it locates the row's values."""

    checked = False

    def __init__(self, names: Names, part: Part, write: Writer, spec: Spec) -> None:
        super().__init__(names, part, write)
        self.spec = spec
        self.in_value = False
        """Whether the walk is after the tag of a value."""
        rows, values = part.principal, part.values
        assert isinstance(rows, Repeat) and values is not None
        self.rows, self.values = rows, values

    def repeat(self, repeat: Repeat) -> None:
        """Write the loop over the values."""
        if repeat is not self.rows:
            super().repeat(repeat)
            return
        count = self.number_of_items(repeat)
        self.write(f"counts[row] = {count}")
        with self.write.block(f"if {count} != columns:"):
            self.write("fits = False", *_NO_VALUES, "continue")
        with self.write.block("for column in range(columns):"):
            self.inner(repeat.item)

    def choice(self, choice: Choice) -> None:
        """Write the code that stores the location of one value."""
        if choice is not self.values:
            super().choice(choice)
            return
        self.write("kind = u8(data, at)", "at += 1", "start, length = at, 0")
        by_size: dict[str, list[str]] = {}
        for alternative in choice.alternatives:
            size = alternative.length
            if size is not None:
                lines = f"length = {number_at(size)}\nstart = at + {size.size}\nat = start + length"
                by_size.setdefault(lines, []).append(tag_name(alternative))
            elif alternative.then is not None:
                with self.write.block(f"if kind == {tag_name(alternative)}:"):
                    self.in_value = True
                    self.alternative(choice, alternative)
                    self.in_value = False
        for lines, tags in by_size.items():
            with self.write.block(f"if {' or '.join(f'kind == {tag}' for tag in tags)}:"):
                self.write(lines)
        with self.write.block("if not read_value(kind, data, start, length, plan, column, row, out):"):
            self.write("tags[column, row], starts[column, row], lengths[column, row] = kind, start, length")
            self.write("seen[column, kind] += 1", "sizes[column] += length")
            self.write("put_nothing(plan, column, row, out)")

    def number(self, field: Field, offset: int) -> None:
        """Store the location of a value of fixed size."""
        if self.in_value and field.is_block:
            self.write(f"start, length = at + {offset}, {field.size}")
        super().number(field, offset)

    def part(self, name: str) -> None:
        """Write the walk over a part; that of a value is inlined."""
        if self.in_value:
            self.inner(self.spec.part(name))
        else:
            super().part(name)

    def field(self, field: Field) -> None:
        """Store the location of a value's bytes if more than a length precedes them, or something follows."""
        if self.in_value and field.length:
            self.write(f"start, length = at, {self.local(field.length)}")
        super().field(field)
