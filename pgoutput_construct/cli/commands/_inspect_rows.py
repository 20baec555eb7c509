"""The rows of an annotated dump: the traced fields, with long repeats and values abbreviated."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from typing import Any, Final

from pgoutput_construct.cli._options import in_arguments
from pgoutput_construct.cli._printing import counted
from pgoutput_construct.wire.spec_metadata import Described
from pgoutput_construct.wire.trace import FieldSpan, Trace, TraceFault

__all__ = ["Detail", "Row", "RowKind", "dump"]

_STEP: Final = re.compile(r"\w+(?:\[\]|:.)*", re.DOTALL)
_BRANCH: Final = re.compile(r":.$", re.DOTALL)
_INDEX: Final = re.compile(r"\[(\d+)\]")
_FIRST: Final = 8
"""The number of first items of a repeat to show; the last one is always shown."""
_LONGEST: Final = 64
"""The number of characters of a value to show."""
_UNDESCRIBED: Final = Described("", "")


class RowKind(Enum):
    """The kind of a row."""

    FIELD = "field"
    GROUP = "group"
    ELIDED = "left out"
    FAULT = "fault"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of the dump; its bytes may take several lines."""

    kind: RowKind
    start: int
    data: bytes
    depth: int
    name: str
    type: str = ""
    value: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Detail:
    """How much to show, and the names that are known from other messages."""

    all: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    """Names of tables and columns, by path."""


def dump(trace: Trace, detail: Detail, base: int = 0, depth: int = 0) -> Iterator[Row]:
    """Yield the rows of a message: its fields, its fault, and the bytes after the fault.

    Args:
        trace: The traced message.
        detail: How much to show.
        base: The offset of the message in the dump, in bytes.
        depth: The indentation level.
    """
    paths = [span.path for span in trace.spans] + ([trace.fault.error.path] if trace.fault else [])
    elision = _Elision(paths, detail)
    rows = _RowBuilder(trace, detail, base, depth)
    for repeat, group in groupby(trace.spans, key=lambda span: elision.repeat_of(span.path)):
        spans = list(group)
        yield from rows.elided(repeat, spans) if repeat else rows.fields(spans)
    if trace.fault is not None:
        yield from rows.fault(trace.fault)


class _Elision:
    """Decides which items of repeats are elided: those between the first few and the last."""

    def __init__(self, paths: Iterable[str], detail: Detail) -> None:
        self.detail = detail
        self.last: dict[str, int] = {}
        for path in paths:
            for repeat, index in _items(path):
                self.last[repeat] = max(index, self.last.get(repeat, 0))

    def repeat_of(self, path: str) -> str:
        """Return the path of the repeat from which a field is elided; empty for a field that is shown."""
        for repeat, index in _items(path):
            last = self.last[repeat]
            if not self.detail.all and _FIRST <= index < last and last > _FIRST + 1:
                return repeat
        return ""


def _items(path: str) -> Iterator[tuple[str, int]]:
    return ((path[: match.start()], int(match[1])) for match in _INDEX.finditer(path))


class _RowBuilder:
    """Builds rows, with a heading for each group of fields."""

    def __init__(self, trace: Trace, detail: Detail, base: int, depth: int) -> None:
        self.trace = trace
        self.detail = detail
        self.base = base
        self.depth = depth
        self.headed: set[str] = set()

    def fields(self, spans: Iterable[FieldSpan]) -> Iterator[Row]:
        """Yield a row for each field."""
        for span in spans:
            yield from self._groups(span.path, span.key, span.start)
            described, value = self.trace.fields.get(span.key, _UNDESCRIBED), span.value
            text, meaning = self._shortened(_text(described, value)), _meaning(described, value)
            words = {"type": _type(described, value), "value": text, "meaning": meaning}
            yield self._row(RowKind.FIELD, span.start, span.end, span.path, **words)

    def elided(self, repeat: str, spans: list[FieldSpan]) -> Iterator[Row]:
        """Yield one row for the elided items of a repeat."""
        indexes = [index for span in spans for each, index in _items(span.path) if each == repeat]
        first, last, size = indexes[0], indexes[-1], spans[-1].end - spans[0].start
        text = f"{counted(last - first + 1, 'item')}, {counted(size, 'byte')}: --all shows them"
        row = self._row(RowKind.ELIDED, spans[0].start, spans[0].start, f"{repeat}[{first}]", meaning=text)
        yield replace(row, name=f"{row.name} to [{last}]")

    def fault(self, fault: TraceFault) -> Iterator[Row]:
        """Yield the invalid field, and the bytes after it."""
        yield from self._groups(fault.error.path, fault.key, fault.start)
        notation, meaning = self.trace.fields.get(fault.key, _UNDESCRIBED).notation, in_arguments(fault.error.reason)
        words = {"type": notation, "value": "fault", "meaning": meaning}
        yield self._row(RowKind.FAULT, fault.start, fault.end, fault.error.path, **words)
        left = len(self.trace.data) - fault.end
        if left:
            text = f"{counted(left, 'byte')} not read"
            yield self._row(RowKind.UNREAD, fault.end, len(self.trace.data), "", meaning=text)

    def _row(self, kind: RowKind, start: int, end: int, path: str, **words: str) -> Row:
        steps = path.split(".")
        label = self.detail.labels.get(path)
        name = f"{steps[-1]} ({label})" if label else steps[-1]
        depth = self.depth + max(len(steps) - 2, 0)
        return Row(kind, self.base + start, self.trace.data[start:end], depth, name, **words)

    def _groups(self, path: str, key: str, start: int) -> Iterator[Row]:
        """Yield the headings of the groups that contain a field, unless they were yielded before."""
        steps, key_steps = path.split("."), _STEP.findall(key)
        self.headed.add(path)
        for size in range(2, len(steps)):
            outer = ".".join(steps[:size])
            if outer not in self.headed:
                self.headed.add(outer)
                outer_key = _BRANCH.sub("", ".".join(key_steps[:size]))
                notation, text, *_ = self.trace.fields.get(outer_key, _UNDESCRIBED)
                yield self._row(RowKind.GROUP, start, start, outer, type=notation, meaning=text)

    def _shortened(self, text: str) -> str:
        if self.detail.all or len(text) <= _LONGEST:
            return text
        return f"{text[:_LONGEST]}… ({len(text):,} characters)"


def _type(described: Described, value: Any) -> str:
    """Return the notation of the type; the tag of a choice, once read, is shown as a constant."""
    return f"Byte1({value!r})" if described.notation == "Byte1" else described.notation


def _text(described: Described, value: Any) -> str:
    """Return a value as text."""
    if isinstance(value, bytes) and not described.notation.startswith("Byte"):
        return str(int.from_bytes(value, "big"))
    if isinstance(value, bytes):
        return _readable(value)
    return repr(value) if isinstance(value, str) else str(value)


def _readable(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return repr(bytes(data))
    return repr(text) if text.replace("\n", "").replace("\t", "").isprintable() else repr(bytes(data))


def _meaning(described: Described, value: Any) -> str:
    """Return the meaning of the value, and the description of the field."""
    meaning = described.meaning(value)
    if described.notation == "Byte1":
        return meaning
    return ": ".join(filter(None, (meaning, described.description)))
