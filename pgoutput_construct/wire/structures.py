"""The constructs that contain others: conditions, counts, repeats, choices, lengths, and records of a class.

A construct's ``_parse`` and ``_build`` are what construct calls; a path such as ``(parsing) -> columns -> [3]`` goes
into the error (``reference.path_text`` prints it as ``.columns[3]``).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from io import SEEK_CUR, SEEK_END
from typing import IO, Any

from construct import Array, Construct, Container, Default, IfThenElse, Subconstruct
from construct.expr import ExprMixin

from pgoutput_construct.wire.primitives import Absent, FieldError, Letter, Number, Primitive, as_int, shown, take
from pgoutput_construct.wire.types import Extended, FieldedBytes

__all__ = [
    "Closed",
    "Composed",
    "Counted",
    "Extending",
    "HasBit",
    "Kind",
    "Length",
    "Record",
    "Reserved",
    "SizeOf",
    "Terminated",
    "ToEnd",
    "Valued",
    "record",
    "when",
    "wire_fields",
]

Reference = Callable[[Any], Any]
"""An earlier field or a parameter, written as construct's ``this.name``."""


def when(condition: Reference, subcon: Construct, otherwise: Construct = Absent) -> Construct:
    """Return a field that is on the wire if the condition holds; if not, ``otherwise`` is (nothing, None in Python)."""
    return Default(IfThenElse(condition, subcon, otherwise), None)


class HasBit(ExprMixin):
    """A condition: whether a bit is set in an earlier field of the same structure."""

    def __init__(self, name: str, mask: int) -> None:
        self.name = name
        self.mask = mask

    def __call__(self, context: Any, *others: Any) -> bool:
        """Return whether it is set; False if the field is absent."""
        return bool((as_int(context.get(self.name)) or 0) & self.mask)


class Reserved(Subconstruct):
    """A constant instead of a field of another protocol version: checked on the wire, None in Python."""

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> None:
        self.subcon._parsereport(stream, context, path)


class SizeOf(Subconstruct):
    """A count or length: read as a number, and on build taken from the field that it counts or measures."""

    def __init__(self, measured: str, number: Number, absent: int | None = None) -> None:
        super().__init__(number)
        self.measured = measured
        self.absent = absent
        self.flagbuildnone = True

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        value = context.get(self.measured)
        try:
            size = self.absent if value is None and self.absent is not None else len(value)
        except TypeError:
            measured = path.rpartition(" -> ")[0] + " -> " + self.measured
            raise FieldError(f"must have a length, not {shown(value)}", measured, stream.tell()) from None
        return self.subcon._build(size, stream, context, path)


class Counted(Array):
    """A repeat with a count; the path of an item has its index: ``columns[3]``.

    The count is that of a field, or always the same. If an earlier list has the same one, that is ``alike``: a build
    compares their lengths.
    """

    def __init__(self, count: Reference | int, subcon: Construct, alike: str | None = None) -> None:
        super().__init__(count, subcon)
        self.alike = alike

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> tuple[Any, ...]:
        count = self.count if isinstance(self.count, int) else self.count(context)
        return tuple(self.subcon._parsereport(stream, context, f"{path} -> [{i}]") for i in range(count))

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        checked = checked_items(obj, stream, path)
        expected = len(context[self.alike]) if self.alike else self.count
        if isinstance(expected, int) and len(checked) != expected:
            words = f"as many items as {self.alike}, {expected}" if self.alike else f"{expected} items"
            raise FieldError(f"must have {words}, not {len(checked)}", path, stream.tell())
        for i, item in enumerate(checked):
            self.subcon._build(item, stream, context, f"{path} -> [{i}]")
        return obj


def checked_items(obj: Any, stream: IO[bytes], path: str) -> tuple[Any, ...] | list[Any]:
    """Return the items of a repeat; raise FieldError for what is no tuple or list."""
    if not isinstance(obj, tuple | list):
        raise FieldError(f"must be a tuple, not {shown(obj)}", path, stream.tell())
    return obj


class Terminated(Subconstruct):
    """A repeat that a zero byte terminates; no item may begin with a zero byte."""

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> tuple[Any, ...]:
        items: list[Any] = []
        while take(stream, 1, path) != b"\0":
            stream.seek(-1, SEEK_CUR)
            items.append(self.subcon._parsereport(stream, context, f"{path} -> [{len(items)}]"))
        if recorder := context._params.get("recorder"):
            recorder.ended(stream, path)
        return tuple(items)

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        for i, item in enumerate(checked_items(obj, stream, path)):
            start = stream.tell()
            self.subcon._build(item, stream, context, f"{path} -> [{i}]")
            stream.seek(start)
            if stream.read(1) == b"\0":
                raise FieldError("must not begin with a zero byte, which ends the list", f"{path} -> [{i}]", start)
            stream.seek(0, SEEK_END)
        stream.write(b"\0")
        return obj


class ToEnd(Subconstruct):
    """A repeat whose items extend to the end of the message."""

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> tuple[Any, ...]:
        items: list[Any] = []
        while stream.read(1):
            stream.seek(-1, SEEK_CUR)
            items.append(self.subcon._parsereport(stream, context, f"{path} -> [{len(items)}]"))
        return tuple(items)

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        for i, item in enumerate(checked_items(obj, stream, path)):
            self.subcon._build(item, stream, context, f"{path} -> [{i}]")
        return obj


class Kind(Letter):
    """The tag of a choice; None if the choice is optional and the byte after it (``before``) follows directly.

    The old tuple of an Update, for example: K or O, or the N of the new tuple directly.
    """

    def __init__(
        self,
        tags: Iterable[str] | Iterable[int],
        before: bytes | None = None,
        since: Mapping[Any, int] | None = None,
        only: Mapping[Any, tuple[Reference, str]] | None = None,
    ) -> None:
        given: tuple[str | int, ...] = tuple(tags)
        super().__init__(map(str, given))
        self.tags: dict[bytes, Any] = {bytes([tag]) if isinstance(tag, int) else tag.encode(): tag for tag in given}
        """The tags in Python, letters or numbers, by their bytes."""
        self.before = before
        self.since = since or {}
        self.only = only or {}
        if before is not None:
            self.choices += f" or {before!r}"
            self.flagbuildnone = True
            self.fixed_size = None

    def problem(self, tag: Any, context: Any) -> str | None:
        """Return why a tag is not permitted under the parameters, None if it is."""
        if tag in self.since and context["_params"].get("proto_version", 1) < self.since[tag]:
            return f"{tag!r} belongs to protocol version {self.since[tag]} and newer"
        if tag in self.only and not self.only[tag][0](context):
            return f"{tag!r} is permitted only if: {self.only[tag][1]}"
        return None

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> Any:
        offset = stream.tell()
        byte = take(stream, 1, path)
        if byte == self.before:
            stream.seek(offset)
            return None
        return self._possible(self.tags.get(byte), shown(self._read(byte)), context, path, offset)

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        if obj is None and self.before is not None:
            return None
        known = next((byte for byte, tag in self.tags.items() if obj == tag), b"")
        self._possible(self.tags.get(known), shown(obj), context, path, stream.tell())
        stream.write(known)
        return obj

    def _read(self, byte: bytes) -> str | int:
        """Return a byte as tags are in Python."""
        return byte[0] if any(isinstance(tag, int) for tag in self.tags.values()) else byte.decode("latin-1")

    def _possible(self, tag: Any, given: str, context: Any, path: str, offset: int) -> Any:
        if tag is None:
            raise FieldError(f"must be one of {self.choices}, not {given}", path, offset)
        if problem := self.problem(tag, context):
            raise FieldError(problem, path, offset)
        return tag


class Valued(Construct):
    """A choice whose tag is implied by the Python value: None, a constant, or an instance of a class of bytes.

    A value of a tuple, for example: None (n), UNCHANGED (u), bytes (t) or Binary (b). ``values`` maps each tag to the
    constant or the class; ``cases`` maps the tags of classes to the construct that reads their content.
    """

    def __init__(
        self,
        values: Mapping[Any, Any],
        cases: Mapping[Any, Construct],
        since: Mapping[Any, int] | None = None,
        only: Mapping[Any, tuple[Reference, str]] | None = None,
    ) -> None:
        super().__init__()
        self.values = values
        self.cases = cases
        self.kind = Kind(values, since=since, only=only)
        self.flagbuildnone = None in values.values()

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> Any:
        tag = self.kind._parsereport(stream, context, path)
        value = self.values[tag]
        if tag not in self.cases:
            return value
        content = self.cases[tag]._parsereport(stream, context, path)
        return content if type(content) is value else value(content)

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        tag = next((tag for tag, value in self.values.items() if obj is value or type(obj) is value), None)
        if tag is None:
            names = [getattr(value, "__name__", str(value)) for value in self.values.values()]
            raise FieldError(f"must be one of {', '.join(names)}, not {shown(obj)}", path, stream.tell())
        self.kind._build(tag, stream, context, path)
        if tag in self.cases:
            self.cases[tag]._build(obj, stream, context, path)
        return obj


class Composed(Subconstruct):
    """A value of a FieldedBytes class: bytes with further fields, built from what a Struct reads."""

    def __init__(self, cls: type[FieldedBytes], content: str, subcon: Construct) -> None:
        super().__init__(subcon)
        self.cls = cls
        self.content = content

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> Any:
        found = self.subcon._parsereport(stream, context, path)
        return self.made(found)

    def made(self, found: Mapping[str, Any]) -> Any:
        """Return the value with the fields that the Struct read."""
        return self.cls(found[self.content], **{name: found[name] for name in self.cls.FIELDS})

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        given = {name: getattr(obj, name) for name in self.cls.FIELDS}
        self.subcon._build({**given, self.content: bytes(obj)}, stream, context, path)
        return obj


class Record(Subconstruct):
    """A Struct whose values are objects of a generated class."""

    def __init__(self, cls: type, subcon: Construct) -> None:
        super().__init__(subcon)
        self.cls = cls

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> Any:
        return record(self.cls, self.subcon._parsereport(stream, context, path))

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        # Used directly, a definition builds from mappings, as any construct does; build() accepts the classes only.
        plain = isinstance(obj, Mapping) and not context._params.get("classes_only")
        if not plain and not isinstance(obj, self.cls):
            raise FieldError(f"must be a {self.cls.__name__}, not {shown(obj)}", path, stream.tell())
        self.subcon._build(wire_fields(obj), stream, context, path)
        return obj


class Extending(Record):
    """An Extended: an object of its class if the condition holds, its principal value alone if it does not."""

    def __init__(self, condition: Reference, cls: type[Extended], subcon: Construct) -> None:
        super().__init__(cls, subcon)
        self.condition = condition
        self.principal = cls.PRINCIPAL
        self.absent = dict.fromkeys(field.name for field in fields(cls))  # type: ignore[arg-type]

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> Any:
        container = self.subcon._parsereport(stream, context, path)
        return record(self.cls, container) if self.condition(context) else container[self.principal]

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        if self.condition(context):
            return super()._build(obj, stream, context, path)
        if isinstance(obj, self.cls):
            problem = f"must be the {self.principal} alone under these options, not {shown(obj)}"
            raise FieldError(problem, path, stream.tell())
        self.subcon._build(self.absent | {self.principal: obj}, stream, context, path)
        return obj


class Length(Primitive):
    """A message's length in bytes, which includes the length itself but not the tag; ``Closed`` writes it on build."""

    def __init__(self, number: Number) -> None:
        super().__init__()
        self.number = number
        self.fixed_size = number.fixed_size
        self.flagbuildnone = True

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> int:
        start = stream.tell()
        length = self.number._parse(stream, context, path)
        after = stream.tell()
        left = stream.seek(0, SEEK_END) - start
        stream.seek(after)
        if length != left:
            raise FieldError(f"is {length} bytes, but {left} bytes are left", path, start)
        return length

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        self.number._build(0, stream, context, path)


class Closed(Primitive):
    """The end of a message whose Length is at ``offset``; on build it writes the length there."""

    def __init__(self, offset: int, number: Number) -> None:
        super().__init__()
        self.offset = offset
        self.number = number
        self.fixed_size = 0
        self.flagbuildnone = True

    def _parse(self, stream: IO[bytes], context: Any, path: str) -> None:
        if left := len(stream.read()):
            stream.seek(-left, SEEK_CUR)
            more = f"its length counts {left} more byte{'s' * (left > 1)}"
            raise FieldError(f"ends here, but {more}", path, stream.tell())

    def _build(self, obj: Any, stream: IO[bytes], context: Any, path: str) -> Any:
        size = stream.tell()
        stream.seek(self.offset)
        self.number._build(size - self.offset, stream, context, path)
        stream.seek(size)


def record(cls: type, container: Container) -> Any:
    """Return an object of a generated class from the Container that its Struct has read."""
    return cls(**{field.name: container[field.name] for field in fields(cls)})


def wire_fields(obj: Any) -> Mapping[str, Any]:
    """Return the fields of an object of a generated class as a mapping, from which its Struct builds."""
    return {field.name: getattr(obj, field.name) for field in fields(obj)} if is_dataclass(obj) else obj
