"""Emits the golden vectors: messages with their fields, and bytes that must be refused, one JSON object a line."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tools.generate.text import COMMAND, GENERATED
from tools.generate.vectors.vectors_damage import damaged
from tools.generate.vectors.vectors_reader import Piece, Reader, RefusedError
from tools.generate.vectors.vectors_samples import can_close, closed, samples
from tools.generate.vectors.vectors_settings import Setting, settings
from tools.language import Choice, Field, Message, Repeat, Spec

__all__ = ["emit_vectors", "vectors"]

SEVERAL = 2
"""The number of items of a repeat in which a field is damaged."""

Layout = tuple[bool, ...]
Vector = dict[str, Any]


def emit_vectors(spec: Spec) -> str:
    """Return the lines: the first one names the specification, each other one is a vector."""
    first = {"generated": f"{GENERATED}{spec.file} by: {COMMAND}. Do not edit.", "title": spec.title}
    lines = (first, *vectors(spec, settings(spec)))
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def vectors(spec: Spec, settings: Sequence[Setting]) -> Iterator[Vector]:
    """Yield the vectors of a specification under some settings, as JSON objects."""
    return _Vectors(spec, settings).all()


class _Vectors:
    def __init__(self, spec: Spec, settings: Sequence[Setting]) -> None:
        self.spec = spec
        self.settings = settings
        self.known: set[str] = set()

    def all(self) -> Iterator[Vector]:
        """Yield each distinct vector, by message; those without a message come first."""
        yield from self._once(self._without_message())
        for message in self.spec.messages:
            yield from self._once(self._of(message))

    def _once(self, vectors: Iterable[Vector | None]) -> Iterator[Vector]:
        for vector in vectors:
            if vector is not None:
                key = json.dumps([vector["hex"], *(v for k, v in vector.items() if k in self.settings[0].said)])
                if key not in self.known:
                    self.known.add(key)
                    yield vector

    def _without_message(self) -> Iterator[Vector | None]:
        if self.spec.framed:
            yield from self._unannounced()
            return
        tags = {message.tag for message in self.spec.messages}
        yield self._vector("no bytes", b"", self.settings[-1])
        for byte in range(256):
            if bytes([byte]) not in tags:
                yield self._vector("unknown tag", bytes([byte]), self.settings[-1])

    def _unannounced(self) -> Iterator[Vector]:
        """Yield bytes that begin no message which the sender can send in a state, including the tags of all others."""
        for setting in self.settings:
            yield self._vector("no bytes", b"", setting)
            for message in self.spec.messages:
                data = min(samples(self.spec, message, setting), key=len)
                if setting.announced(self.spec, data) is None:
                    yield self._vector(f"{message.class_name}, which cannot come", data, setting)

    def _of(self, message: Message) -> Iterator[Vector | None]:
        layouts: dict[Layout, Setting] = {}
        here = [setting for setting in self.settings if setting.sends(self.spec, message)]
        for setting in here:
            layouts.setdefault(self._layout(message, setting), setting)
        made = {layout: samples(self.spec, message, setting) for layout, setting in layouts.items()}
        tried = list(_bringing(layouts))
        for layout in tried:
            yield from (self._vector("a form of each field", data, layouts[layout]) for data in made[layout])
            yield from self._damaged(message, made[layout], layouts[layout])
        for setting in self.settings:
            own = self._layout(message, setting)
            for layout in dict.fromkeys((own, *tried)):
                if made.get(layout):
                    yield self._typical(message, made[layout][0], setting)

    def _typical(self, message: Message, data: bytes, setting: Setting) -> Vector | None:
        """Return a message under a setting: as it is sent under it, or refused because of another layout or version."""
        sent = setting.sends(self.spec, message)
        vector = self._vector("every setting", data, setting)
        if "refuse" in vector:
            return vector | {"case": "of another setting"} if sent or setting.refusal(message) else None
        return vector if sent else None

    def _damaged(self, message: Message, data: list[bytes], setting: Setting) -> Iterator[Vector]:
        """Yield damaged messages, made from the first messages that together have every field."""
        seen: Counter[tuple[str, int]] = Counter()
        for each in data:
            reader = Reader(self.spec, each, setting)
            reader.message()
            if any(piece.place not in seen for piece in reader.pieces):
                chosen = [piece for piece in reader.pieces if _counted(seen, piece) <= SEVERAL]
                found = damaged(each, chosen)
                if reader.spec.framed:
                    found = _closed_too(message, found)
                vectors = (self._vector(case, changed, setting) for case, changed in found)
                yield from (vector for vector in vectors if "refuse" in vector)

    def _vector(self, case: str, data: bytes, setting: Setting) -> Vector:
        message = setting.announced(self.spec, data)
        name = message.class_name if message else None
        head = {"case": case, **setting.said, "message": name, "hex": data.hex()}
        try:
            return head | {"fields": Reader(self.spec, data, setting).message()[1]}
        except RefusedError as refused:
            return head | {"refuse": {"reason": refused.reason, "offset": refused.offset}}

    def _layout(self, message: Message, setting: Setting) -> Layout:
        """Return the layout of a message under a setting: which fields are present, which branches are permitted."""
        elements = [element for structure in self.spec.reached(message) for element in structure.elements]
        fields = [v for each in elements if isinstance(each, Field) for v in each.variants or (each,)]
        repeats = [each for each in elements if isinstance(each, Repeat) and each.conditional]
        branches = [branch for element in elements if isinstance(element, Choice) for branch in element.alternatives]
        return (*map(setting.has, fields), *map(setting.has, branches), *map(setting.has, repeats))


def _counted(seen: Counter[tuple[str, int]], piece: Piece) -> int:
    seen[piece.place] += 1
    return seen[piece.place]


def _closed_too(message: Message, found: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield damaged messages, each with its old length and with the new one."""
    for case, data in found:
        yield case, data
        more = message.length and len(data) > len(message.tag) + (message.length.size or 0)
        if more and can_close(message, data):
            yield f"{case}, as the length says", closed(message, data)


def _bringing(layouts: Iterable[Layout]) -> Iterator[Layout]:
    """Yield the first layout, and each that adds something new: only these are tried with all samples."""
    known: set[int] = set()
    for layout in layouts:
        here = {place for place, there in enumerate(layout) if there}
        if here - known:
            yield layout
        known |= here
