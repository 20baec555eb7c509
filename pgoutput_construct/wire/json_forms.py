"""The JSON encoding of each type that a message's field can have."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, get_type_hints

from pgoutput_construct.errors import EncodeError
from pgoutput_construct.wire.messages import VALUES
from pgoutput_construct.wire.types import FieldedBytes, Lsn, Timestamp

__all__ = ["LEAVES", "VALUE", "Form", "items", "one_of", "optional", "refuse"]


def refuse(path: str, must: str, value: object) -> EncodeError:
    """Return the error for a value at a path."""
    return EncodeError(f"must be {must}, not {value!r:.80}", message=path.partition(".")[0], path=path)


class Form(NamedTuple):
    """The JSON encoding of one type: a function of value and path in each direction; both raise EncodeError."""

    to_json: Callable[[Any, str], Any]
    from_json: Callable[[Any, str], Any]


def _plain(python: str, write: Callable[[Any], Any], json: str, read: Callable[[Any], Any]) -> Form:
    """Return the form of a scalar; ``write`` and ``read`` raise a built-in exception for values of another type."""
    return Form(partial(_converted, write, python), partial(_converted, read, json))


def _converted(convert: Callable[[Any], Any], must: str, value: Any, path: str) -> Any:
    try:
        return convert(value)
    except (AttributeError, TypeError, ValueError):
        raise refuse(path, must, value) from None


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


def _hex(key: str, cls: Any) -> Form:
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


LEAVES: Final[Mapping[Any, Form]] = {
    type(None): _plain("null", partial(_only, type(None)), "null", partial(_only, type(None))),
    int: _plain("an int", _int, "a whole number", partial(_only, int)),
    Lsn: _plain("an Lsn of 64 bits", _write_lsn, 'an LSN such as "16/B374D848"', lambda value: Lsn(_only(str, value))),
    Timestamp: _plain(
        "a Timestamp",
        lambda value: str(Timestamp(_int(value))),
        'a timestamp such as "2024-05-01T12:00:00+00:00", "infinity", or a string of microseconds',
        Timestamp.from_text,
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


def _fielded(key: str, cls: Any) -> Form:
    """Return the form of a FieldedBytes class: an object with one key, which holds ``data`` (digits) and the fields."""
    hints = get_type_hints(cls)
    forms = {name: LEAVES[hints[name]] for name in cls.FIELDS}

    def to_json(value: Any, path: str) -> Any:
        fields = {name: form.to_json(getattr(value, name), f"{path}.{name}") for name, form in forms.items()}
        return {key: {"data": _only(cls, value).hex(), **fields}}

    def from_json(value: Any, path: str) -> Any:
        inside = value.get(key) if isinstance(value, Mapping) else None
        if not isinstance(inside, Mapping) or {*inside} != {"data", *forms}:
            raise refuse(path, f'{{"{key}": an object of data and {", ".join(forms)}}}', value)
        fields = {name: form.from_json(inside[name], f"{path}.{name}") for name, form in forms.items()}
        try:
            return cls(bytes.fromhex(inside["data"]), **fields)
        except (TypeError, ValueError):
            raise refuse(path, "hexadecimal digits under data", value) from None

    return Form(to_json, from_json)


_FORMATTED: Final = {
    kind: _fielded(kind, value) if issubclass(value, FieldedBytes) else _hex(kind, value)
    for kind, value in VALUES.items()
    if isinstance(value, type)
}
"""The kinds of tuple values that are bytes, each with its form."""


def _write_value(value: Any, path: str) -> Any:
    kind = next((kind for kind, known in VALUES.items() if value is known or type(value) is known), None)
    if kind is None:
        names = [getattr(each, "__name__", str(each)) for each in VALUES.values()]
        raise refuse(path, f"one of {', '.join(names)}", value)
    if type(value) is bytes and _is_utf8(value):
        return value.decode()
    if kind in _FORMATTED:
        return _FORMATTED[kind].to_json(value, path)
    return None if value is None else {kind: True}


def _read_value(value: Any, path: str) -> Any:
    if value is None and None in VALUES.values():
        return None
    if isinstance(value, str) and bytes in VALUES.values():
        return _utf8(value, path)
    kind = _only_key(value)
    if kind in _FORMATTED:
        return _FORMATTED[kind].from_json(value, path)
    if VALUES.get(kind) is None or value[kind] is not True:
        raise refuse(path, f"one of {_value_shapes()}", value)
    return VALUES[kind]


def _value_shapes() -> str:
    constants = [kind for kind, value in VALUES.items() if kind not in _FORMATTED and value is not None]
    shapes = ["null"] * (None in VALUES.values()) + ["a string"] * (bytes in VALUES.values())
    shapes += [f'{{"{kind}": true}}' for kind in constants]
    return ", ".join([*shapes, *(f'{{"{kind}": "<hex>"}}' for kind in _FORMATTED)])


VALUE: Final = Form(_write_value, _read_value)
"""The form of a value of a tuple, whose kind is a constant or a class of bytes in Python (``VALUES``).

None is null. Plain bytes are a string if they are UTF-8. Other values name their kind: ``{"unchanged": true}``,
``{"binary": "<hex>"}``.
"""


def optional(form: Form) -> Form:
    """Return the form of a field that may be absent on the wire: null for None."""
    return Form(
        lambda value, path: None if value is None else form.to_json(value, path),
        lambda value, path: None if value is None else form.from_json(value, path),
    )


def one_of(forms: Mapping[type, Form], other: Form | None = None) -> Form:
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
            raise refuse(path, f"one of {', '.join(by_name)}", value)
        return other.to_json(value, path)

    def from_json(value: Any, path: str) -> Any:
        name = _only_key(value)
        if name in by_name:
            return by_name[name].from_json(value[name], path)
        if other is None:
            shapes = ", ".join(f'{{"{each}": ...}}' for each in by_name)
            raise refuse(path, f"one of {shapes}", value)
        return other.from_json(value, path)

    return Form(to_json, from_json)


def items(form: Form) -> Form:
    """Return the form of a tuple of items: an array."""

    def to_json(value: Any, path: str) -> list[Any]:
        if not isinstance(value, tuple | list):
            raise refuse(path, "a tuple", value)
        return [form.to_json(item, f"{path}[{i}]") for i, item in enumerate(value)]

    def from_json(value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise refuse(path, "an array", value)
        return tuple(form.from_json(item, f"{path}[{i}]") for i, item in enumerate(value))

    return Form(to_json, from_json)


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
        raise refuse(path, must, value) from None
