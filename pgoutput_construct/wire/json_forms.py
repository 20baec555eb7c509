"""How each type of a message's field looks in JSON."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from pgoutput_construct.errors import EncodeError, PgoutputError
from pgoutput_construct.wire.messages import VALUES
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["LEAVES", "Form", "Items", "OneOf", "Optional", "Value", "refuse"]


def refuse(path: str, must: str, value: object) -> EncodeError:
    """Return the error for a value at a path."""
    return EncodeError(f"must be {must}, not {value!r:.80}", message=path.partition(".")[0], path=path)


class Form(ABC):
    """How the values of one type look in JSON; both directions raise EncodeError."""

    @abstractmethod
    def to_json(self, value: Any, path: str) -> Any:
        """Return the JSON value."""

    @abstractmethod
    def from_json(self, value: Any, path: str) -> Any:
        """Return the Python value."""


class _Number(Form):
    """An int, as a number."""

    def to_json(self, value: Any, path: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise refuse(path, "an int", value)
        return int(value)

    def from_json(self, value: Any, path: str) -> int:
        if type(value) is not int:
            raise refuse(path, "a whole number", value)
        return value


class _Nothing(Form):
    """None, as null."""

    def to_json(self, value: Any, path: str) -> None:
        if value is not None:
            raise refuse(path, "null", value)

    from_json = to_json


class _Position(Form):
    """An Lsn, as PostgreSQL prints it."""

    def to_json(self, value: Any, path: str) -> str:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
            raise refuse(path, "an Lsn of 64 bits", value)
        return str(Lsn(value))

    def from_json(self, value: Any, path: str) -> Lsn:
        try:
            return Lsn(value if isinstance(value, str) else "")
        except PgoutputError:
            raise refuse(path, 'an LSN such as "16/B374D848"', value) from None


class _Moment(Form):
    """A Timestamp, as it prints: ISO 8601, infinity, or microseconds where datetime cannot hold the year."""

    def to_json(self, value: Any, path: str) -> str:
        if not isinstance(value, int) or isinstance(value, bool):
            raise refuse(path, "a Timestamp", value)
        return str(Timestamp(value))

    def from_json(self, value: Any, path: str) -> Timestamp:
        try:
            return Timestamp.from_text(value if isinstance(value, str) else "")
        except PgoutputError:
            must = 'a timestamp such as "2024-05-01T12:00:00+00:00", "infinity", or a string of microseconds'
            raise refuse(path, must, value) from None


class _Hex(Form):
    """Bytes of one class, as an object of one key with hexadecimal digits."""

    def __init__(self, key: str, cls: type[bytes] = bytes) -> None:
        self.key = key
        self.cls = cls

    def to_json(self, value: Any, path: str) -> Any:
        if type(value) is not self.cls:
            raise refuse(path, self.cls.__name__, value)
        return {self.key: value.hex()}

    def from_json(self, value: Any, path: str) -> Any:
        digits = value.get(self.key) if isinstance(value, Mapping) and len(value) == 1 else None
        try:
            return self.cls(bytes.fromhex(digits))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise refuse(path, f'{{"{self.key}": "<hexadecimal digits>"}}', value) from None


class _Text(Form):
    """A str, as a string; one with bytes that are not UTF-8 as the hexadecimal digits of those bytes."""

    hex = _Hex("hex")

    def to_json(self, value: Any, path: str) -> Any:
        try:
            data = value.encode("utf-8", "surrogateescape")
            faithful = data.decode("utf-8", "surrogateescape") == value
        except (AttributeError, UnicodeEncodeError):
            faithful = False
        if not faithful:
            raise refuse(path, "a str that UTF-8 with surrogateescape gives back", value)
        return value if value.isascii() or _is_utf8(data) else self.hex.to_json(data, path)

    def from_json(self, value: Any, path: str) -> str:
        if not isinstance(value, str):
            data: bytes = self.hex.from_json(value, path)
            return data.decode("utf-8", "surrogateescape")
        return _utf8(value, path).decode()


class Value(Form):
    """A value of a tuple, whose kind shows in Python by a constant or a class of bytes (``VALUES``).

    None is null. Plain bytes are a string where they are UTF-8. Others name their kind: ``{"unchanged": true}``,
    ``{"binary": "<hex>"}``.
    """

    def __init__(self) -> None:
        self.constants = {kind: value for kind, value in VALUES.items() if not isinstance(value, type)}
        classes = {kind: value for kind, value in VALUES.items() if isinstance(value, type)}
        self.by_kind = {kind: _Hex(kind, value) for kind, value in classes.items()}
        self.by_class = {form.cls: form for form in self.by_kind.values()}
        shapes = ["null"] if None in self.constants.values() else []
        shapes += ["a string"] if bytes in self.by_class else []
        shapes += [f'{{"{kind}": true}}' for kind, value in self.constants.items() if value is not None]
        self.shapes = ", ".join([*shapes, *(f'{{"{kind}": "<hex>"}}' for kind in self.by_kind)])

    def to_json(self, value: Any, path: str) -> Any:
        """Return the JSON value."""
        if type(value) is bytes and bytes in self.by_class and _is_utf8(value):
            return value.decode()
        form = self.by_class.get(type(value))
        if form is not None:
            return form.to_json(value, path)
        kind = next((kind for kind, constant in self.constants.items() if value is constant), None)
        if kind is None:
            names = [getattr(each, "__name__", str(each)) for each in VALUES.values()]
            raise refuse(path, f"one of {', '.join(names)}", value)
        return None if value is None else {kind: True}

    def from_json(self, value: Any, path: str) -> Any:
        """Return the Python value."""
        if value is None and None in self.constants.values():
            return None
        if isinstance(value, str) and bytes in self.by_class:
            return _utf8(value, path)
        kind: Any = next(iter(value)) if isinstance(value, Mapping) and len(value) == 1 else None
        if kind in self.by_kind:
            return self.by_kind[kind].from_json(value, path)
        if self.constants.get(kind) is None or value[kind] is not True:
            raise refuse(path, f"one of {self.shapes}", value)
        return self.constants[kind]


class Optional(Form):
    """A field that may be absent on the wire: None, as null."""

    def __init__(self, form: Form) -> None:
        self.form = form

    def to_json(self, value: Any, path: str) -> Any:
        """Return the JSON value."""
        return None if value is None else self.form.to_json(value, path)

    def from_json(self, value: Any, path: str) -> Any:
        """Return the Python value."""
        return None if value is None else self.form.from_json(value, path)


class OneOf(Form):
    """A value of one of several classes, as an object of one key: the class's name, and the value in its own form.

    A value of another class looks as ``other`` says, where there is one. No field and no kind of value has the name of
    a class, so that the two are never the same.
    """

    def __init__(self, forms: Mapping[type, Form], other: Form | None = None) -> None:
        self.forms = {cls.__name__: form for cls, form in forms.items()}
        self.other = other

    def to_json(self, value: Any, path: str) -> Any:
        """Return the JSON value."""
        name = type(value).__name__
        if name in self.forms:
            return {name: self.forms[name].to_json(value, path)}
        if self.other is None:
            raise refuse(path, f"one of {', '.join(self.forms)}", value)
        return self.other.to_json(value, path)

    def from_json(self, value: Any, path: str) -> Any:
        """Return the Python value."""
        name = next(iter(value)) if isinstance(value, Mapping) and len(value) == 1 else None
        if name in self.forms:
            return self.forms[name].from_json(value[name], path)
        if self.other is None:
            shapes = ", ".join(f'{{"{each}": ...}}' for each in self.forms)
            raise refuse(path, f"one of {shapes}", value)
        return self.other.from_json(value, path)


class Items(Form):
    """A tuple, as an array."""

    def __init__(self, form: Form) -> None:
        self.form = form

    def to_json(self, value: Any, path: str) -> list[Any]:
        """Return the JSON value."""
        if not isinstance(value, tuple | list):
            raise refuse(path, "a tuple", value)
        return [self.form.to_json(item, f"{path}[{i}]") for i, item in enumerate(value)]

    def from_json(self, value: Any, path: str) -> tuple[Any, ...]:
        """Return the Python value."""
        if not isinstance(value, list):
            raise refuse(path, "an array", value)
        return tuple(self.form.from_json(item, f"{path}[{i}]") for i, item in enumerate(value))


LEAVES: Final[Mapping[Any, Form]] = {
    type(None): _Nothing(),
    int: _Number(),
    Lsn: _Position(),
    Timestamp: _Moment(),
    str: _Text(),
    bytes: _Hex("hex"),
}
"""The forms of the types that have no parts."""


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _utf8(value: str, path: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        must = "a string without lone surrogates (bytes that are not UTF-8 are written in hexadecimal digits)"
        raise refuse(path, must, value) from None
