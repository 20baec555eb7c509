"""Generates messages for the vectors: values at their limits, every branch, every count."""

import struct
from collections.abc import Iterator

from tools.generate.vectors.vectors_forms import QUIET_NAN
from tools.generate.vectors.vectors_settings import Setting
from tools.language import Choice, Field, Message, Repeat, Spec
from tools.language.elements import Element, Structure

__all__ = ["can_close", "closed", "samples"]

Sized = tuple[int, bytes]
"""The count or length of something, and its bytes."""

TEXTS = (b"", "grün \N{ELEPHANT}".encode(), b"caf\xe9", b"x" * 300)
"""Names: empty, beyond ASCII, not UTF-8, and longer than a read ahead."""
BYTES = (b"", "grün \N{ELEPHANT}".encode(), b"\0N\xff", b"x" * 256)
"""Contents: empty, text, not text, and longer than one byte could count."""
LONG = 128
"""The size of an item from which it does not occur together with all others."""
MANY = 258
"""The number of items whose count has two different bytes."""
TIME = 767_880_000_123_456
"""A time in May 2024, in microseconds since 2000-01-01 UTC."""
FLOATS = (
    *(0, 1 << 63, 1, 0x10000000000000, 0x433FFFFFFFFFFFFF, 0x444B1AE4D6E2EF50, 0x7FEFFFFFFFFFFFFF, 0xBFF0000000000000),
    *(0x7FF << 52, 0xFFF << 52, QUIET_NAN, QUIET_NAN | 1 << 63, QUIET_NAN | 0xBEEF, (0x7FF << 52) + 1),
)
"""The bits of numbers in floating point: both zeros, the least and the greatest, integers; infinities; NaNs."""


def samples(spec: Spec, message: Message, setting: Setting) -> list[bytes]:
    """Return the bytes of possible messages: the first has some of everything, each other differs in one place."""
    found = _Maker(spec, setting).structure(message)
    return list(dict.fromkeys(closed(message, data) for data in found if can_close(message, data)))


def can_close(message: Message, data: bytes) -> bool:
    """Return whether the field for the length of a message can hold that of these bytes; without one, anything fits."""
    return message.length is None or len(data) - len(message.tag) < 1 << 8 * (message.length.size or 0)


def closed(message: Message, data: bytes) -> bytes:
    """Return the bytes of a message with its length filled in, if it has one."""
    if message.length is None:
        return data
    start, size = len(message.tag), message.length.size or 0
    return data[:start] + (len(data) - start).to_bytes(size, "big") + data[start + size :]


class _Maker:
    def __init__(self, spec: Spec, setting: Setting) -> None:
        self.spec = spec
        self.setting = setting
        self.number = 0

    def structure(self, structure: Structure) -> list[bytes]:
        """Return a structure in its first form, then with each other form of each of its elements."""
        here = [each for element in structure.elements if (each := self._here(element)) is not None]
        most = _largest_sizes(structure, here)
        alike = {e.name: self.structure(e.item) for e in here if isinstance(e, Repeat) and e.name in structure.alike}
        elements = [element for element in here if element.name not in {*structure.sizes, *alike}]
        forms = {e.name: [form for form in self._forms(e) if form[0] <= most.get(e.name, form[0])] for e in elements}
        for name in (name for name, items in alike.items() if not items):
            forms[structure.alike[name]] = [form for form in forms[structure.alike[name]] if form[0] == 0]
        if not all(forms.values()):
            return []  # no branch of the choice is permitted under these parameters
        first = {name: found[0] for name, found in forms.items()}
        others = [first | {name: form} for name, found in forms.items() for form in found[1:]]
        chosen = [each | self._alike(structure, alike, each) for each in (first, *others)]
        chosen += [
            chosen[0] | {name: form}
            for name, items in alike.items()
            for form in _exactly(items, chosen[0][structure.alike[name]][0])[1:]
        ]
        return [b"".join(self._written(structure, here, each)) for each in chosen]

    def _alike(self, structure: Structure, alike: dict[str, list[bytes]], chosen: dict[str, Sized]) -> dict[str, Sized]:
        """Return the lists that have as many items as another one, in their first forms."""
        return {name: _exactly(items, chosen[structure.alike[name]][0])[0] for name, items in alike.items()}

    def _here(self, element: Element) -> Element | None:
        """Return an element under the parameters, None if it is absent."""
        if isinstance(element, Field):
            return self.setting.variant(element)
        return element if isinstance(element, Choice) or self.setting.has(element) else None

    def _written(self, structure: Structure, here: list[Element], chosen: dict[str, Sized]) -> Iterator[bytes]:
        """Yield the bytes of each element that is present, also by the bits of earlier ones."""
        found: dict[str, int] = {}
        for element in here:
            if not isinstance(element, Choice) and not self.setting.has(element, found):
                continue
            if isinstance(element, Field) and element.name in structure.sizes:
                count = chosen[structure.sizes[element.name]][0]
                yield count.to_bytes(element.size or 0, "big", signed=element.signed)
                continue
            yield chosen[element.name][1]
            if element.name in structure.flags:
                found[element.name] = int.from_bytes(chosen[element.name][1], "big")

    def _forms(self, element: Element) -> list[Sized]:
        if isinstance(element, Repeat) and element.fixed:
            return _exactly(self.structure(element.item), element.fixed)
        if isinstance(element, Repeat):
            return self._closed_items(element) if element.terminated else self._items(self.structure(element.item))
        if isinstance(element, Choice):
            return [(0, form) for form in self._branches(element)]
        absent = [] if element.absent is None else [(element.absent, b"")]
        return [*((len(form), form) for form in self._field(element)), *absent]

    def _closed_items(self, repeat: Repeat) -> list[Sized]:
        """Return items up to a zero byte; none begins with one."""
        items = [item for item in self.structure(repeat.item) if item[:1] != b"\0"]
        return [(count, form + b"\0") for count, form in self._items(items)]

    def _items(self, items: list[bytes]) -> list[Sized]:
        if not items:
            return [(0, b"")]
        short = [item for item in items if len(item) < LONG] or items[:1]
        alone = dict.fromkeys((items[0], *(item for item in items if item not in short)))
        several = short if len(short) > 1 else short * 2
        return [(len(several), b"".join(several)), (0, b""), *((1, item) for item in alone), _many(items)]

    def _branches(self, choice: Choice) -> list[bytes]:
        taken = [branch for branch in choice.alternatives if self.setting.has(branch)]
        contents = {branch.tag: found for branch in taken if (found := self._content(branch.then))}
        firsts = [tag + found[0] for tag, found in contents.items()] + [b""] * choice.optional
        return firsts + [tag + form for tag, found in contents.items() for form in found[1:]]

    def _content(self, then: Structure | str | None) -> list[bytes]:
        if then is None:
            return [b""]
        return self.structure(self.spec.part(then) if isinstance(then, str) else then)

    def _field(self, field: Field) -> list[bytes]:
        if field.constant_bytes is not None:
            return [field.constant_bytes]
        if field.part:
            return self.structure(self.spec.part(field.part))
        if field.is_text:
            return [text + b"\0" for text in (field.name.encode(), *TEXTS)]
        if field.size is None or field.is_block:
            blocks = [bytes((n * step) % 256 for n in range(field.size or 0)) for step in (1, 0, 255)]
            return blocks if field.is_block else [field.name.encode(), *BYTES]
        if field.frames:
            return [bytes(field.size)]
        self.number += 1
        return [each.to_bytes(field.size, "big", signed=each < 0) for each in _numbers(field, self.number)]


def _largest_sizes(structure: Structure, here: list[Element]) -> dict[str, int]:
    """Return the counted and measured elements of a structure, each with the greatest value of its count or length."""
    sizes = [each for each in here if isinstance(each, Field) and each.name in structure.sizes]
    return {structure.sizes[field.name]: (1 << 8 * (field.size or 0) - field.signed) - 1 for field in sizes}


def _exactly(items: list[bytes], number: int) -> list[Sized]:
    """Return lists of a given number of items, in which each item occurs; nothing if there are no items to choose."""
    if not items:
        return [] if number else [(0, b"")]
    if not number or number >= MANY:
        return [(number, min(items, key=len) * number)]
    parts = [items[start : start + number] for start in range(0, len(items), number)]
    return [(number, b"".join([*part, *items[:1] * (number - len(part))])) for part in parts]


def _many(items: list[bytes]) -> Sized:
    return MANY, min(items, key=len) * MANY


def _numbers(field: Field, number: int) -> list[int]:
    """Return all values or bits of a field; or, without them, an ordinary one, then those at the limits and halfway."""
    if field.values or field.bits:
        return [*field.codes] or [field.mask, 0, *(field.bits or ())]
    if field.is_float:
        return [int.from_bytes(struct.pack(">d", number + 0.1), "big"), *FLOATS]
    size = field.size or 0
    half = 1 << 8 * size - 1
    own = int.from_bytes(bytes((number + i) % 127 + 1 for i in range(size)), "big")
    if field.python == "Timestamp":
        own = TIME + 1_000_001 * number
    return [own, 0, -1, half - 1, -half, 2 - half] if field.signed else [own, 0, 1, half - 1, half, 2 * half - 1]
