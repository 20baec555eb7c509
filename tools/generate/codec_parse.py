"""The parse half of the codec: functions that read ``data`` from the position ``at`` on."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from tools.generate.codec_formats import AHEAD, Fixed, Module, Names, length_code, size_of, without_extension
from tools.generate.text import docstring
from tools.generate.writer import Writer
from tools.language import Alternative, Choice, Field, Message, Part, Repeat
from tools.language.model import Element, Structure

__all__ = ["parse_message", "read_message", "read_part"]

REJECT = "    raise Reject"


def parse_message(module: Module, message: Message) -> str:
    """Return the function that parses bytes that are one message, neither less nor more."""
    write = Writer()
    cls, signature = message.class_name, f", {module.signature}" if module.signature else ""
    padded = "data + PAD" if cls in module.looking_ahead else "data"
    with write.block(f"def {module.function('parse', cls)}(data: bytes{signature}) -> m.{cls}:"):
        write(docstring([f"Parse {cls}."], "").strip())
        write(f"message, end = {module.function('_read', cls)}({padded}, 0, len(data){module.arguments})")
        write("if end != len(data):", REJECT, "return message")
    return str(write)


def read_message(module: Module, message: Message) -> str:
    """Return the function that reads one message, and where it ends."""
    read = _Function(module, message.class_name)
    with read.head(f"m.{message.class_name}"):
        if message.needs:
            read.write(f"if proto_version < {message.needs}:", REJECT)
        read.waiting.append(Fixed("x", ""))  # the tag: whoever chose this function has looked at it
        found = read.elements(message.elements[1:])
        read.line(f"return {read.object(message, message.class_name, found, 'message')}, at")
    return str(read.write)


def read_part(module: Module, part: Part) -> str:
    """Return the function that reads a part, and where it ends."""
    read = _Function(module, part.name)
    with read.head("Any"):
        value = read.value(part, part.name)
        read.line(f"return {value}, at")
    return str(read.write)


class _Function:
    """One function; fields of fixed size wait until something else is written, and are then read by one struct."""

    def __init__(self, module: Module, class_name: str) -> None:
        self.module = module
        self.class_name = class_name
        self.write = Writer()
        self.names = Names(module.spec)
        self.waiting: list[Fixed] = []

    @contextmanager
    def head(self, returns: str) -> Iterator[None]:
        """Write the head of the function, and its body inside."""
        name = self.module.function("_read", self.class_name)
        signature = ", ".join(["data: bytes", "at: int", "size: int", *self.module.spec.signature])
        with self.block(f"def {name}({signature}) -> tuple[{returns}, int]:"):
            yield

    def line(self, *lines: str) -> None:
        """Write lines, behind what reads the fields that wait."""
        self.flush()
        self.write(*lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a block; no field waits beyond it."""
        self.flush()
        with self.write.block(head):
            yield
            self.flush()

    def flush(self) -> None:
        """Write what reads the fields that wait, at most one condition among them, and what checks them."""
        fixed, self.waiting = self.waiting, []
        condition = next((each.condition for each in fixed if each.condition), "")
        always = [each for each in fixed if not each.condition]
        if condition:
            with self.write.block(f"if {condition}:"):
                self._unpack(fixed)
                self._check(each for each in fixed if each.condition)
            with self.write.block("else:"):
                self.write(" = ".join(each.variable for each in fixed if each.condition) + " = None")
                self._unpack(always)
        else:
            self._unpack(fixed)
        self._check(always)

    def _unpack(self, fixed: list[Fixed]) -> None:
        variables = [each.variable for each in fixed if each.code != "x"]
        if variables:
            unpack = self.module.unpack("".join(each.code for each in fixed))
            self.write(f"{', '.join(variables)}{',' * (len(variables) == 1)} = {unpack}(data, at)")
        if fixed:
            self.write(f"at += {size_of(fixed)}")

    def _check(self, fixed: Iterable[Fixed]) -> None:
        for each in fixed:
            if each.field is not None:
                self.write(*_checks(each.field, each.variable))

    def elements(self, elements: Iterable[Element]) -> Mapping[str, str]:
        """Write what reads elements; return the expressions of their values by name."""
        found: dict[str, str] = {}
        for element in elements:
            self._element(element, found)
        return found

    def _element(self, element: Element, found: dict[str, str]) -> None:
        if isinstance(element, Repeat):
            found[element.name] = self._repeat(element, found[element.count])
        elif isinstance(element, Choice):
            self._choice(element, found)
        elif element.size is not None:
            self._fixed(element, found)
        elif element.conditional:
            found[element.name] = name = self.names(element.name)
            self.line(f"{name}: Any = None")
            with self.block(f"if {element.condition}:"):
                value = self._content(element, found)
                self.line(f"{name} = {value}")
        else:
            found[element.name] = self._content(element, found)

    def _fixed(self, field: Field, found: dict[str, str]) -> None:
        if {each.condition for each in self.waiting} - {"", field.condition} and field.condition:
            self.flush()
        found[field.name] = name = self.names(field.name)
        self.waiting.append(Fixed(field.code, name, field))

    def _content(self, field: Field, found: Mapping[str, str]) -> str:
        """Write what reads a field whose size varies; return its value."""
        if field.part:
            return self._part(field.part)
        name = self.names(field.name)
        if field.is_text:
            self.line('end = data.index(b"\\0", at)', f'{name} = data[at:end].decode("utf-8", "surrogateescape")')
            self.line("at = end + 1")
        elif field.length:
            self.line(f"end = at + {found[field.length]}", f"{name} = data[at:end]", "at = end")
        else:
            self.line("if at > size:", REJECT, f"{name} = data[at:size]", "at = size")
        return name

    def _part(self, name: str) -> str:
        """Write a part that is known by its one value in place, which saves a call for each row."""
        part = self.module.spec.part(name)
        if part.single is not None:
            return self.value(part, name)
        value = self.names("part")
        self.line(f"{value}, at = {self._call(name)}")
        return value

    def _call(self, part: str) -> str:
        if part in self.module.looking_ahead:
            self.module.looking_ahead.add(self.class_name)
        return f"{self.module.function('_read', part)}(data, at, size{self.module.arguments})"

    def value(self, structure: Structure, class_name: str | None) -> str:
        """Write what reads a structure inside another; return its value: its one field, or an object of its class."""
        if structure.extended:
            return self._extended(structure, str(class_name))
        found = self.elements(structure.elements)
        if structure.single is not None:
            return found[structure.single.name]
        return self.object(structure, str(class_name), found, "item")

    def _extended(self, structure: Structure, class_name: str) -> str:
        name = self.names("item")
        with self.block(f"if {structure.extension}:"):
            value = self.object(structure, class_name, self.elements(structure.elements), "extended")
            self.line(f"{name} = {value}")
        with self.block("else:"):
            value = self.value(without_extension(structure), None)
            self.line(f"{name} = {value}")
        return name

    def object(self, structure: Structure, class_name: str, found: Mapping[str, str], name: str) -> str:
        """Write what makes an object of a class, as fast.draft says; return it."""
        name = self.names(name) if name != "message" else name
        self.line(f"{name} = {self.module.draft(class_name)}()")
        self.line(*(f"{name}.{field} = {found[field]}" for field in structure.field_names))
        self.line(f"{name}.__class__ = m.{class_name}")
        return name

    def _repeat(self, repeat: Repeat, count: str) -> str:
        item = repeat.item
        if not item.extended:
            return self._items(item, repeat, count)
        name = self.names(repeat.name)
        with self.block(f"if {item.extension}:"):
            items = self._appended(item, repeat, count)
            self.line(f"{name} = {items}")
        with self.block("else:"):
            items = self._items(without_extension(item), repeat, count)
            self.line(f"{name} = {items}")
        return name

    def _items(self, item: Structure, repeat: Repeat, count: str) -> str:
        """Write what reads the items of a repeat, in the quickest way that its one field allows."""
        alone = item.single if len(item.elements) == 1 else None
        if isinstance(alone, Field) and alone.size and not (alone.conditional or alone.values or alone.bits):
            return self._numbers(alone, repeat, count)
        if isinstance(alone, Choice) and (code := length_code(alone)):
            return self._looking_ahead(alone, code, repeat, count)
        return self._appended(item, repeat, count)

    def _appended(self, item: Structure, repeat: Repeat, count: str) -> str:
        name = self.names(repeat.name)
        self.line(f"{name}: Any = []")
        with self.block(f"for _ in range({count}):"):
            if item.extended:
                value = self.object(item, str(repeat.class_name), self.elements(item.elements), "item")
            else:
                value = self.value(item, repeat.class_name)
            self.line(f"{name}.append({value})")
        return f"tuple({name})"

    def _numbers(self, field: Field, repeat: Repeat, count: str) -> str:
        """Write what reads plain numbers at once, after their size was compared with what is left."""
        name = self.names(repeat.name)
        self.line(f"end = at + {field.size} * {count}", "if end > size:", REJECT)
        self.line(f'{name} = unpack_from(f">{{{count}}}{field.code}", data, at)', "at = end")
        return name if field.python == "int" else f"tuple([number({field.python}, value) for value in {name}])"

    def _looking_ahead(self, choice: Choice, code: str, repeat: Repeat, count: str) -> str:
        """Write what reads values whose branches all start with a length.

        One read takes a short value and the head of the next one, its tag and length: that is a sixth faster than a
        read for each head and a slice for each value.
        """
        self.module.looking_ahead.add(self.class_name)
        name = self.names(repeat.name)
        head = (Fixed("B", "tag"), Fixed(code, "length"))
        self.waiting += head
        self.line(
            f"if {count} > size:  # each takes a byte at least",
            REJECT,
            f"{name} = NOTHING * {count}  # reading ahead: see PAD",
        )
        with self.block(f"for index in range({count}):"):
            for number, each in enumerate(_classes_last(choice)):
                with self.block(f"{'elif' if number else 'if'} {_taken(each)}"):
                    self._ahead(each, f"{name}[index]", code, size_of(head))
            self.write("else:", REJECT)
        self.line(f"at -= {size_of(head)}")
        return f"tuple({name})"

    def _ahead(self, alternative: Alternative, target: str, code: str, head: int) -> None:
        unpack, ahead = self.module.unpack("B" + code), self.module.ahead("B" + code)
        if alternative.then is None:
            if alternative.python != "None":
                self.line(f"{target} = m.{alternative.python}")
            self.line(f"tag, length = {unpack}(data, at - {head - 1})", "at += 1")
            return
        value = target if alternative.python == "bytes" else "value"
        self.line("end = at + length")
        with self.block(f"if length < {AHEAD}:"):
            self.line(f"{value}, tag, length = {ahead}[length](data, at)")
        with self.block("else:"):
            self.line(f"{value} = data[at:end]", f"tag, length = {unpack}(data, end)")
        if value != target:
            self.line(f"{target} = m.{alternative.python}(value)")
        self.line(f"at = end + {head}")

    def _choice(self, choice: Choice, found: dict[str, str]) -> None:
        for name in choice.names:
            found[name] = self.names(name)
            self.line(f"{found[name]}: Any = None")
        self.line("tag = data[at]")
        for number, each in enumerate(_classes_last(choice)):
            with self.block(f"{'elif' if number else 'if'} {_taken(each)}"):
                self.line("at += 1")
                if not choice.valued:
                    self.line(f'{found[choice.kind_name]} = "{each.letter}"')
                self._branch(each, found[choice.name])
        if not choice.optional:
            self.write("else:", REJECT)

    def _branch(self, alternative: Alternative, target: str) -> None:
        if alternative.then is None:
            value = "None" if alternative.python is None else alternative.python
        elif isinstance(alternative.then, str):
            self.line(f"{target}, at = {self._call(alternative.then)}")
            value = target
        else:
            value = self.value(alternative.then, None)
        if alternative.python not in (None, "None", "bytes"):
            value = f"m.{value}" if alternative.then is None else f"m.{alternative.python}({value})"
        if value not in ("None", target):
            self.line(f"{target} = {value}")


def _classes_last(choice: Choice) -> list[Alternative]:
    """Return the alternatives, plain bytes first: most values are text."""
    return sorted(choice.alternatives, key=lambda alternative: alternative.python != "bytes")


def _taken(alternative: Alternative) -> str:
    condition = f" and {alternative.condition}" if alternative.condition else ""
    return f"tag == {alternative.tag[0]}{condition}:  # {alternative.name}"


def _checks(field: Field, name: str) -> Iterator[str]:
    """Yield what checks and converts a number that was read."""
    if field.constant_number is not None:
        yield f"if {name} != {field.constant_number}:"
        yield REJECT
    elif field.bits:
        yield f"if {name} & ~{field.mask:#x}:"
        yield REJECT
    elif field.values:
        yield f"if {name} not in {bytes(field.codes) if field.is_letter else field.codes!r}:"
        yield REJECT
        if field.is_letter:
            yield f"{name} = chr({name})"
    elif field.python != "int":
        yield f"{name} = number({field.python}, {name})"
