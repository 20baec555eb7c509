"""Messages as plain JSON values, and back, without loss.

A message is an object: its class under ``message``, then its fields. Bytes and text that JSON cannot represent become
an object that names their encoding, such as ``{"hex": "ff00"}``; fields that are absent on the wire are null, and may
be omitted. The encoding follows from the type annotations of the generated classes, so a new message needs no code
here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from math import isfinite, isnan
from types import UnionType
from typing import Any, Final, Generic, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pgoutput_construct.errors import EncodeError
from pgoutput_construct.wire.field_renames import of_today
from pgoutput_construct.wire.messages import BY_TAG, VALUES, PgoutputMessage
from pgoutput_construct.wire.types import QUIET_NAN, Extended, FieldedBytes, Float, Lsn, Timestamp

__all__ = ["JsonFormat", "from_json", "to_json"]

_M = TypeVar("_M")
"""Any of the messages of a specification."""


def _misfit(path: str, reason: str) -> EncodeError:
    return EncodeError(reason, message=path.partition(".")[0], path=path)


def _refuse(path: str, must: str, value: object) -> EncodeError:
    """Return the error for a value at a path."""
    return _misfit(path, f"must be {must}, not {value!r:.80}")


class _Form(NamedTuple):
    """The JSON encoding of one type: a function of value and path in each direction; both raise EncodeError."""

    to_json: Callable[[Any, str], Any]
    from_json: Callable[[Any, str], Any]


def _plain(python: str, write: Callable[[Any], Any], json: str, read: Callable[[Any], Any]) -> _Form:
    """Return the form of a scalar; ``write`` and ``read`` raise a built-in exception for values of another type."""
    return _Form(partial(_converted, write, python), partial(_converted, read, json))


def _converted(convert: Callable[[Any], Any], must: str, value: Any, path: str) -> Any:
    try:
        return convert(value)
    except (AttributeError, OverflowError, TypeError, ValueError):
        raise _refuse(path, must, value) from None


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


def _write_float(value: Any) -> Any:
    """Return a finite number as it is, and others as text; a NaN with other bits than usual has these."""
    number = Float(value if isinstance(value, float) else _int(value))
    if isfinite(number):
        return float(number)
    if isnan(number):
        return "NaN" if number.bits == QUIET_NAN else {"hex": f"{number.bits:016x}"}
    return "Infinity" if number > 0 else "-Infinity"


def _read_float(value: Any) -> Float:
    if isinstance(value, Mapping):
        data = _read_hex("hex", value)
        number = Float.from_bits(int.from_bytes(data, "big"))
        if len(data) != 8 or not isnan(number):
            raise ValueError
        return number
    if isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        raise ValueError
    return Float(value if isinstance(value, str | float) else _int(value))


def _hex(key: str, cls: Any) -> _Form:
    """Return the form of one class of bytes: an object with one key, the digits in hexadecimal."""
    return _plain(
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


LEAVES: Final[Mapping[Any, _Form]] = {
    type(None): _plain("null", partial(_only, type(None)), "null", partial(_only, type(None))),
    int: _plain("an int", _int, "a whole number", partial(_only, int)),
    Lsn: _plain("an Lsn of 64 bits", _write_lsn, 'an LSN such as "16/B374D848"', lambda value: Lsn(_only(str, value))),
    Timestamp: _plain(
        "a Timestamp",
        lambda value: str(Timestamp(_int(value))),
        'a timestamp such as "2024-05-01T12:00:00+00:00", "infinity", or a string of microseconds',
        Timestamp.from_text,
    ),
    Float: _plain(
        "a Float", _write_float, 'a number, "NaN", "Infinity", "-Infinity", or {"hex": "<a NaN\'s bits>"}', _read_float
    ),
    str: _plain(
        "a str that survives encoding as UTF-8 with surrogateescape",
        _write_text,
        'a string without lone surrogates, or {"hex": "<hexadecimal digits>"}',
        _read_text,
    ),
    bytes: _hex("hex", bytes),
}
"""The forms of scalar types; text that is not UTF-8 is written as the hexadecimal digits of its bytes."""


def _fielded(key: str, cls: Any) -> _Form:
    """Return the form of a FieldedBytes class: an object with one key, which holds ``data`` (digits) and the fields."""
    hints = get_type_hints(cls)
    forms = {name: LEAVES[hints[name]] for name in cls.FIELDS}

    def to_json(value: Any, path: str) -> Any:
        fields = {name: form.to_json(getattr(value, name), f"{path}.{name}") for name, form in forms.items()}
        return {key: {"data": _only(cls, value).hex(), **fields}}

    def from_json(value: Any, path: str) -> Any:
        inside = value.get(key) if isinstance(value, Mapping) else None
        if not isinstance(inside, Mapping) or {*inside} != {"data", *forms}:
            raise _refuse(path, f'{{"{key}": an object of data and {", ".join(forms)}}}', value)
        fields = {name: form.from_json(inside[name], f"{path}.{name}") for name, form in forms.items()}
        try:
            return cls(bytes.fromhex(inside["data"]), **fields)
        except (TypeError, ValueError):
            raise _refuse(path, "hexadecimal digits under data", value) from None

    return _Form(to_json, from_json)


def _optional(form: _Form) -> _Form:
    """Return the form of a field that may be absent on the wire: null for None."""
    return _Form(
        lambda value, path: None if value is None else form.to_json(value, path),
        lambda value, path: None if value is None else form.from_json(value, path),
    )


def _one_of(forms: Mapping[type, _Form], other: _Form | None = None) -> _Form:
    """Return the form of a value of one of several classes: an object whose one key is the name of the class.

    ``other`` is the form of values of any other class. The two cannot be confused, because no field and no kind of
    value has the name of a class.
    """
    by_name = {cls.__name__: form for cls, form in forms.items()}

    def to_json(value: Any, path: str) -> Any:
        name = type(value).__name__
        if name in by_name:
            return {name: by_name[name].to_json(value, path)}
        if other is None:
            raise _refuse(path, f"one of {', '.join(by_name)}", value)
        return other.to_json(value, path)

    def from_json(value: Any, path: str) -> Any:
        name = _only_key(value)
        if name in by_name:
            return by_name[name].from_json(value[name], path)
        if other is None:
            shapes = ", ".join(f'{{"{each}": ...}}' for each in by_name)
            raise _refuse(path, f"one of {shapes}", value)
        return other.from_json(value, path)

    return _Form(to_json, from_json)


def _items(form: _Form) -> _Form:
    """Return the form of a tuple of items: an array."""

    def to_json(value: Any, path: str) -> list[Any]:
        if not isinstance(value, tuple | list):
            raise _refuse(path, "a tuple", value)
        return [form.to_json(item, f"{path}[{i}]") for i, item in enumerate(value)]

    def from_json(value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _refuse(path, "an array", value)
        return tuple(form.from_json(item, f"{path}[{i}]") for i, item in enumerate(value))

    return _Form(to_json, from_json)


def _only_key(value: Any) -> Any:
    return next(iter(value)) if isinstance(value, Mapping) and len(value) == 1 else None


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
        raise _refuse(path, must, value) from None


class JsonFormat(Generic[_M]):
    """The JSON of the messages of one specification."""

    def __init__(self, classes: Iterable[type], values: Mapping[str, object]) -> None:
        """Derive it from the classes.

        Args:
            classes: The message classes.
            values: The Python type of each kind of tuple value, a constant or a class of bytes; VALUES of the module
                of messages.
        """
        self._values = values
        self._types = {value if isinstance(value, type) else type(value) for value in values.values()}
        self._formatted = {
            kind: _fielded(kind, value) if issubclass(value, FieldedBytes) else _hex(kind, value)
            for kind, value in values.items()
            if isinstance(value, type)
        }
        """The kinds of tuple values that are bytes, each with its form."""
        # None is null. Plain bytes are a string if they are UTF-8. Other values name their kind: {"unchanged": true},
        # {"binary": "<hex>"}.
        self._tuple_value = _Form(self._write_value, self._read_value)
        self._messages = {cls.__name__: self.object_form(cls) for cls in classes}

    def to_json(self, message: _M) -> dict[str, Any]:
        """Return a message as an object of plain JSON values.

        Raises EncodeError, with the field's path, for a value that does not fit its field.
        """
        name = type(message).__name__
        if name not in self._messages:
            raise EncodeError(f"{message!r:.80} is not a message: give an object of a message class")
        return {"message": name, **self._messages[name].to_json(message, name)}

    def from_json(self, value: object) -> _M:
        """Return the message of an object such as ``to_json`` returns.

        Strict: an unknown message, unknown or missing keys, and values of another type raise EncodeError with the path.
        """
        if not isinstance(value, Mapping):
            raise EncodeError(f"a message must be an object, not {value!r:.80}")
        name = value.get("message")
        if not isinstance(name, str) or name not in self._messages:
            raise EncodeError(f"'message' must be one of {', '.join(self._messages)}, not {name!r:.80}")
        content = {key: item for key, item in value.items() if key != "message"}
        return cast("_M", self._messages[name].from_json(content, name))

    def object_form(self, cls: type) -> _Form:
        """Return the encoding of a generated class: an object of its fields."""
        hints = get_type_hints(cls)
        forms = {field.name: self._form(hints[field.name]) for field in fields(cls)}
        absent = {field.name for field in fields(cls) if field.default is None}

        def to_json(value: Any, path: str) -> dict[str, Any]:
            if type(value) is not cls:
                raise _refuse(path, f"a {cls.__name__}", value)
            return {name: form.to_json(getattr(value, name), f"{path}.{name}") for name, form in forms.items()}

        def from_json(value: Any, path: str) -> Any:
            if not isinstance(value, Mapping):
                raise _refuse(path, "an object", value)
            value = of_today(cls, value)
            for unknown in (key for key in value if key not in forms):
                raise _misfit(path, f"has no key {unknown!r:.80}: the keys are {', '.join(forms) or 'none'}")
            for missing in (key for key in forms if key not in value and key not in absent):
                raise _misfit(f"{path}.{missing}", "is missing: give it")
            given = {name: form for name, form in forms.items() if name in value}
            return cls(**{name: form.from_json(value[name], f"{path}.{name}") for name, form in given.items()})

        return _Form(to_json, from_json)

    def _form(self, hint: Any) -> _Form:
        """Return the encoding for a type hint of a generated class."""
        if hint in LEAVES:
            return LEAVES[hint]
        if is_dataclass(hint) and isinstance(hint, type):
            return self.object_form(hint)
        members = get_args(hint)
        if get_origin(hint) is tuple:
            return _items(self._form(members[0]))
        if get_origin(hint) in (Union, UnionType):
            return self._union(members)
        raise TypeError(f"{hint!r} has no JSON encoding: add it to {__name__}")

    def _union(self, members: Sequence[Any]) -> _Form:
        extended = [member for member in members if isinstance(member, type) and issubclass(member, Extended)]
        others = tuple(member for member in members if member not in extended)
        if extended:
            return _one_of({member: self.object_form(member) for member in extended}, self._union(others))
        there = [member for member in others if member is not type(None)]
        if len(there) > 1 and set(there) <= self._types:
            return self._tuple_value
        if len(there) == 1:
            form = self._form(there[0])
        else:
            form = _one_of({get_origin(each) or each: self._form(each) for each in there})
        return form if len(there) == len(others) else _optional(form)

    def _write_value(self, value: Any, path: str) -> Any:
        kind = next((kind for kind, known in self._values.items() if value is known or type(value) is known), None)
        if kind is None:
            names = [getattr(each, "__name__", str(each)) for each in self._values.values()]
            raise _refuse(path, f"one of {', '.join(names)}", value)
        if type(value) is bytes and _is_utf8(value):
            return value.decode()
        if kind in self._formatted:
            return self._formatted[kind].to_json(value, path)
        return None if value is None else {kind: True}

    def _read_value(self, value: Any, path: str) -> Any:
        if value is None and None in self._values.values():
            return None
        if isinstance(value, str) and bytes in self._values.values():
            return _utf8(value, path)
        kind = _only_key(value)
        if kind in self._formatted:
            return self._formatted[kind].from_json(value, path)
        if self._values.get(kind) is None or value[kind] is not True:
            raise _refuse(path, f"one of {self._value_shapes()}", value)
        return self._values[kind]

    def _value_shapes(self) -> str:
        there = self._values.values()
        constants = [kind for kind, value in self._values.items() if kind not in self._formatted and value is not None]
        shapes = ["null"] * (None in there) + ["a string"] * (bytes in there)
        shapes += [f'{{"{kind}": true}}' for kind in constants]
        return ", ".join([*shapes, *(f'{{"{kind}": "<hex>"}}' for kind in self._formatted)])


_FORMAT: Final = JsonFormat[PgoutputMessage](BY_TAG.values(), VALUES)

to_json = _FORMAT.to_json
from_json = _FORMAT.from_json
