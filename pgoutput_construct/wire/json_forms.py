"""How each type of a message's field looks in JSON."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from pgoutput_construct.errors import EncodeError
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


class _Plain(Form):
    """A value without parts; ``write`` and ``read`` raise an error of Python for one of another type."""

    def __init__(self, python: str, write: Callable[[Any], Any], json: str, read: Callable[[Any], Any]) -> None:
        self.python, self.write = python, write
        self.json, self.read = json, read

    def to_json(self, value: Any, path: str) -> Any:
        try:
            return self.write(value)
        except (AttributeError, TypeError, ValueError):
            raise refuse(path, self.python, value) from None

    def from_json(self, value: Any, path: str) -> Any:
        try:
            return self.read(value)
        except (TypeError, ValueError):
            raise refuse(path, self.json, value) from None


def _only(cls: type, value: Any) -> Any:
    if type(value) is not cls:
        raise TypeError
    return value


def _int(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return int(value)


def _write_lsn(value: Any) -> str:
    if not 0 <= _int(value) < 1 << 64:
        raise ValueError
    return str(Lsn(value))


def _hex(key: str, cls: type[bytes]) -> Form:
    """Return the form of bytes of one class: an object of one key with hexadecimal digits."""
    return _Plain(
        cls.__name__,
        lambda value: {key: _only(cls, value).hex()},
        f'{{"{key}": "<hexadecimal digits>"}}',
        lambda value: cls(_read_hex(key, value)),
    )


def _read_hex(key: str, value: Any) -> bytes:
    if not isinstance(value, Mapping) or [*value] != [key]:
        raise TypeError
    return bytes.fromhex(value[key])


def _write_text(value: Any) -> Any:
    data = value.encode("utf-8", "surrogateescape")
    if data.decode("utf-8", "surrogateescape") != value:
        raise ValueError
    return value if _is_utf8(data) else {"hex": data.hex()}


def _read_text(value: Any) -> str:
    return (
        value.encode().decode()
        if isinstance(value, str)
        else _read_hex("hex", value).decode("utf-8", "surrogateescape")
    )


LEAVES: Final[Mapping[Any, Form]] = {
    type(None): _Plain("null", partial(_only, type(None)), "null", partial(_only, type(None))),
    int: _Plain("an int", _int, "a whole number", partial(_only, int)),
    Lsn: _Plain("an Lsn of 64 bits", _write_lsn, 'an LSN such as "16/B374D848"', lambda value: Lsn(_only(str, value))),
    Timestamp: _Plain(
        "a Timestamp",
        lambda value: str(Timestamp(_int(value))),
        'a timestamp such as "2024-05-01T12:00:00+00:00", "infinity", or a string of microseconds',
        Timestamp.from_text,
    ),
    str: _Plain(
        "a str that UTF-8 with surrogateescape gives back",
        _write_text,
        'a string without lone surrogates, or {"hex": "<hexadecimal digits>"}',
        _read_text,
    ),
    bytes: _hex("hex", bytes),
}
"""The forms of the types that have no parts; text that is not UTF-8 is written as the digits of its bytes."""


class Value(Form):
    """A value of a tuple, whose kind shows in Python by a constant or a class of bytes (``VALUES``).

    None is null. Plain bytes are a string where they are UTF-8. Others name their kind: ``{"unchanged": true}``,
    ``{"binary": "<hex>"}``.
    """

    def __init__(self) -> None:
        self.constants = {kind: value for kind, value in VALUES.items() if not isinstance(value, type)}
        classes = {kind: value for kind, value in VALUES.items() if isinstance(value, type)}
        self.by_kind = {kind: _hex(kind, value) for kind, value in classes.items()}
        self.by_class = {value: self.by_kind[kind] for kind, value in classes.items()}
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
