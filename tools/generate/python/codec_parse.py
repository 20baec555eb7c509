"""The parse half of the codec: functions that read ``data`` from the offset ``at``."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from tools.generate.python.codec_module import AHEAD, REJECT, Module, without_extension
from tools.generate.python.codec_read import Fixed, Reading, size_of
from tools.language import Alternative, Choice, Field, Message, Part, Repeat, conditions
from tools.language.elements import Element, Structure

__all__ = ["read_message", "read_part"]


def read_message(module: Module, message: Message) -> str:
    """Return the function that reads one message, and returns it with the offset after it."""
    read, cls = _Function(module), message.class_name
    with read.head(cls, f"m.{cls}"):
        if message.needs:
            read.write(f"if proto_version < {message.needs}:", REJECT)
        tag = len(message.tag)
        read.waiting += [Fixed("x", "")] * tag  # the caller has read the tag, to select this function
        found = read.elements(message.elements[tag:])
        if message.length:
            read.line(f"if {found[message.length.name]} != size{f' - {tag}' * bool(tag)}:", REJECT)
        read.line(f"return {read.object(message, found, 'message')}, at")
    return str(read.write)


def read_part(module: Module, part: Part) -> str:
    """Return the function that reads a part, and returns it with the offset after it."""
    read = _Function(module)
    with read.head(part.name, "Any"):
        value = read.value(part)
        read.line(f"return {value}, at")
    return str(read.write)


class _Function(Reading):
    @contextmanager
    def head(self, class_name: str, returns: str) -> Iterator[None]:
        """Write the head of the function; its body goes inside."""
        name = self.module.function("_read", class_name)
        signature = ", ".join(["data: bytes", "at: int", "size: int", *self.module.spec.signature])
        with self.block(f"def {name}({signature}) -> tuple[{returns}, int]:"):
            yield

    def elements(self, elements: Iterable[Element]) -> Mapping[str, str]:
        """Write the code that reads elements; return the expressions of their values by name."""
        found: dict[str, str] = {}
        for element in elements:
            self._element(element, found)
        return found

    def _element(self, element: Element, found: dict[str, str]) -> None:
        if isinstance(element, Choice):
            self._choice(element, found)
        elif isinstance(element, Field) and element.variants:
            self._variants(element, found)
        elif isinstance(element, Field) and element.size is not None:
            self.fixed(element, found)
        elif element.conditional:
            name = self.name(element.name)
            self.line(f"{name}: Any = None")
            with self.block(f"if {element.test(lambda earlier: found[earlier])}:"):
                value = self._content(element, found)
                self.line(f"{name} = {value}")
            found[element.name] = name
        else:
            found[element.name] = self._content(element, found)

    def _variants(self, field: Field, found: dict[str, str]) -> None:
        """Write the code that reads a field with variants: the variant that is present."""
        name = self.name(field.name)
        for number, each in enumerate(field.variants):
            last = each is field.variants[-1] and field.complete
            test = each.test(lambda earlier: found[earlier])
            with self.block("else:" if last else f"{'elif' if number else 'if'} {test}:"):
                inside = dict(found)
                self._element(each.always, inside)
                self.line(f"{name} = {'None' if each.hidden else inside[field.name]}")
        if not field.complete:
            self.write("else:", f"    {name} = None")
        found[field.name] = name

    def _content(self, field: Field | Repeat, found: Mapping[str, str]) -> str:
        """Write the code that reads a repeat, or a field of variable size; return its value."""
        if isinstance(field, Repeat):
            fixed = str(field.fixed) if field.fixed else None
            return self._repeat(field, found[field.count] if field.count else fixed)
        if field.is_area:
            return self._area(str(field.part), found[str(field.length)])
        if field.part:
            return self._part(field.part)
        name = self.name(field.name)
        if field.is_text:
            self.line('end = data.index(b"\\0", at)', f'{name} = data[at:end].decode("utf-8", "surrogateescape")')
            self.line("at = end + 1")
        elif field.absent is not None:
            self._nullable(name, found[str(field.length)], field.absent)
        elif field.length:
            self.line(f"end = at + {found[field.length]}", f"{name} = data[at:end]", "at = end")
        else:
            self.line("if at > size:", REJECT, f"{name} = data[at:size]", "at = size")
        return name

    def _nullable(self, name: str, length: str, absent: int) -> None:
        self.line(f"{name}: Any = None")
        with self.block(f"if {length} != {absent}:"):
            self.write(f"if {length} < 0:", REJECT)
            self.write(f"end = at + {length}", f"{name} = data[at:end]", "at = end")

    def _area(self, part: str, length: str) -> str:
        """Write the code that reads a part with a length of its own, which ends where that says."""
        value, end = self.name("part"), self.name("end_of_part")
        self.line(f"{end} = at + {length}", f"if {end} > size:", REJECT)
        self.line(f"{value}, at = {self._call(part, end)}", f"if at != {end}:", REJECT)
        return value

    def _part(self, name: str) -> str:
        """Write the code that reads a part with a single value inline, which saves a call for each row."""
        part = self.module.spec.part(name)
        if part.single is not None:
            return self.value(part)
        value = self.name("part")
        self.line(f"{value}, at = {self._call(name)}")
        return value

    def _call(self, part: str, end: str = "size") -> str:
        return f"{self.module.function('_read', part)}(data, at, {end}{self.module.arguments})"

    def value(self, structure: Structure) -> str:
        """Write the code that reads a nested structure; return its value: a single field, or an object of its class."""
        if structure.extended:
            return self._extended(structure)
        if structure.single is not None:
            return self.elements(structure.elements)[structure.single.name]
        return self._record(structure)

    def _record(self, structure: Structure) -> str:
        found = self.elements(structure.elements)
        return self.object(structure, found, self.name("item"))

    def _extended(self, structure: Structure) -> str:
        name = self.name("value_or_item")
        with self.block(f"if {conditions.text(structure.extension)}:"):
            value = self._record(structure)
            self.line(f"{name} = {value}")
        with self.block("else:"):
            value = self.value(without_extension(structure))
            self.line(f"{name} = {value}")
        return name

    def object(self, structure: Structure, found: Mapping[str, str], name: str) -> str:
        """Write the code that creates an object of a class (``codec_runtime.draft``) as ``name``; return that."""
        self.line(f"{name} = {self.module.draft(str(structure.class_name))}()")
        self.line(*(f"{name}.{field} = {found[field]}" for field in structure.field_names))
        self.line(f"{name}.__class__ = m.{structure.class_name}")
        return name

    def _repeat(self, repeat: Repeat, count: str | None) -> str:
        item = repeat.item
        if count is None:
            items = self._appended(item, repeat, "while at < size:" if repeat.to_end else "while data[at]:")
            if repeat.terminated:
                self.line("at += 1")
            return items
        if not item.extended:
            return self._items(item, repeat, count)
        name = self.name(repeat.name)
        with self.block(f"if {conditions.text(item.extension)}:"):
            items = self._appended(item, repeat, f"for _ in range({count}):", self._record)
            self.line(f"{name} = {items}")
        with self.block("else:"):
            items = self._items(without_extension(item), repeat, count)
            self.line(f"{name} = {items}")
        return name

    def _items(self, item: Structure, repeat: Repeat, count: str) -> str:
        """Write the code that reads the items of a repeat, in the fastest way for its single field."""
        alone = item.single if len(item.elements) == 1 else None
        if isinstance(alone, Choice) and (code := _length_code(alone)):
            return self._looking_ahead(alone, code, repeat, count)
        return self._appended(item, repeat, f"for _ in range({count}):")

    def _appended(
        self, item: Structure, repeat: Repeat, loop: str, read: Callable[[Structure], str] | None = None
    ) -> str:
        name = self.name(repeat.name)
        self.line(f"{name}: Any = []")
        with self.block(loop):
            value = (read or self.value)(item)
            self.line(f"{name}.append({value})")
        return f"tuple({name})"

    def _looking_ahead(self, choice: Choice, code: str, repeat: Repeat, count: str) -> str:
        """Write the code that reads values whose branches all start with a length.

        One unpack reads a short value together with the tag and length of the next one: that is a sixth faster than one
        unpack for each head and one slice for each value.
        """
        name = self.name(repeat.name)
        head = (Fixed("B", "tag"), Fixed(code, "length"))
        self.waiting += head
        self.line(
            f"if {count} > size:  # each takes a byte at least",
            REJECT,
            f"{name} = NOTHING * {count}  # reading ahead: see PAD",
        )
        with self.block(f"for index in range({count}):"):
            for number, each in enumerate(_likely_first(choice)):
                with self.block(f"{'elif' if number else 'if'} {_taken(each)}"):
                    self._ahead(each, f"{name}[index]", code, size_of(head))
            self.write("else:", REJECT)
        self.line(f"at -= {size_of(head)}")
        return f"tuple({name})"

    def _ahead(self, alternative: Alternative, target: str, code: str, head: int) -> None:
        unpack, ahead = self.module.unpack("B" + code), self.module.ahead("B" + code)
        if alternative.then is None:
            if alternative.python != "None":
                self.line(f"{target} = {alternative.value}")
            self.line(f"tag, length = {unpack}(data, at - {head - 1})", "at += 1")
            return
        value = target if alternative.python == "bytes" else "value"
        self.line("end = at + length")
        with self.block(f"if length < {AHEAD}:"):
            self.line(f"{value}, tag, length = {ahead}[length](data, at)")
        with self.block("else:"):
            self.line(f"{value} = data[at:end]", f"tag, length = {unpack}(data, end)")
        if value != target:
            self.line(f"{target} = {alternative.value}(value)")
        self.line(f"at = end + {head}")

    def _choice(self, choice: Choice, found: dict[str, str]) -> None:
        for name in choice.names:
            found[name] = self.name(name)
            self.line(f"{found[name]}: Any = None")
        self.line("tag = data[at]")
        for number, each in enumerate(_likely_first(choice)):
            with self.block(f"{'elif' if number else 'if'} {_taken(each)}"):
                self.line("at += 1")
                if not choice.valued:
                    self.line(f"{found[choice.kind_name]} = {each.key!r}")
                self._branch(each, found[choice.name])
        if not choice.optional:
            self.write("else:", REJECT)

    def _branch(self, alternative: Alternative, target: str) -> None:
        if alternative.then is None:
            value = "None" if alternative.python is None else alternative.value
        elif isinstance(alternative.then, str):
            self.line(f"{target}, at = {self._call(alternative.then)}")
            value = target
        elif alternative.content is not None:
            inside = self.elements(alternative.then.elements)
            extras = ", ".join(f"{each.name}={inside[each.name]}" for each in alternative.extras)
            self.line(f"{target} = {alternative.value}({inside[alternative.content.name]}, {extras})")
            return
        else:
            value = self.value(alternative.then)
        if alternative.then is not None and alternative.python not in (None, "None", "bytes"):
            value = f"{alternative.value}({value})"
        if value not in ("None", target):
            self.line(f"{target} = {value}")


def _length_code(choice: Choice) -> str | None:
    """Return the format of the length with which every branch with content starts, None if they differ."""
    found = {a.length.code if a.length else None for a in choice.alternatives if a.then is not None}
    return found.pop() if len(found) == 1 else None


def _likely_first(choice: Choice) -> list[Alternative]:
    """Return the alternatives in the order in which they are tested: most values are text, or else all are binary."""
    return sorted(choice.alternatives, key=lambda each: (choice.valued and each.then is None, each.python != "bytes"))


def _taken(alternative: Alternative) -> str:
    return f"{alternative.tested(f'tag == {alternative.tag[0]}')}:  # {alternative.name}"
