"""Messages as plain JSON values, and back, without loss.

A message is an object: its class under ``message``, then its fields. Bytes and text that JSON cannot represent become
an object that names their encoding, such as ``{"hex": "ff00"}``; fields that are absent on the wire are null, and may
be omitted. The encoding follows from the type annotations of the generated classes, so a new message needs no code
here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

from pgoutput_construct.errors import EncodeError
from pgoutput_construct.wire.field_renames import of_today
from pgoutput_construct.wire.json_forms import LEAVES, VALUE, Form, items, one_of, optional, refuse
from pgoutput_construct.wire.messages import BY_TAG, VALUES, PgoutputMessage
from pgoutput_construct.wire.types import Extended

__all__ = ["from_json", "to_json"]


def to_json(message: "PgoutputMessage") -> dict[str, Any]:
    """Return a message as an object of plain JSON values.

    Raises EncodeError, with the field's path, for a value that does not fit its field.
    """
    name = type(message).__name__
    if name not in _MESSAGES:
        raise EncodeError(f"{message!r:.80} is not a message: give an object of a message class")
    return {"message": name, **_MESSAGES[name].to_json(message, name)}


def from_json(value: object) -> "PgoutputMessage":
    """Return the message of an object such as ``to_json`` returns.

    Strict: an unknown message, unknown or missing keys, and values of another type raise EncodeError with the path.
    """
    if not isinstance(value, Mapping):
        raise EncodeError(f"a message must be an object, not {value!r:.80}")
    name = value.get("message")
    if not isinstance(name, str) or name not in _MESSAGES:
        raise EncodeError(f"'message' must be one of {', '.join(_MESSAGES)}, not {name!r:.80}")
    content = {key: item for key, item in value.items() if key != "message"}
    return cast("PgoutputMessage", _MESSAGES[name].from_json(content, name))


def _object(cls: type) -> Form:
    """Return the encoding of a generated class: an object of its fields."""
    hints = get_type_hints(cls)
    forms = {field.name: _form(hints[field.name]) for field in fields(cls)}
    absent = {field.name for field in fields(cls) if field.default is None}

    def to_json(value: Any, path: str) -> dict[str, Any]:
        if type(value) is not cls:
            raise refuse(path, f"a {cls.__name__}", value)
        return {name: form.to_json(getattr(value, name), f"{path}.{name}") for name, form in forms.items()}

    def from_json(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise refuse(path, "an object", value)
        value = of_today(cls, value)
        for unknown in (key for key in value if key not in forms):
            raise _misfit(path, f"has no key {unknown!r:.80}: the keys are {', '.join(forms) or 'none'}")
        for missing in (key for key in forms if key not in value and key not in absent):
            raise _misfit(f"{path}.{missing}", "is missing: give it")
        given = {name: form for name, form in forms.items() if name in value}
        return cls(**{name: form.from_json(value[name], f"{path}.{name}") for name, form in given.items()})

    return Form(to_json, from_json)


def _misfit(path: str, reason: str) -> EncodeError:
    return EncodeError(reason, message=path.partition(".")[0], path=path)


def _form(hint: Any) -> Form:
    """Return the encoding for a type hint of a generated class."""
    if hint in LEAVES:
        return LEAVES[hint]
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint)
    members = get_args(hint)
    if get_origin(hint) is tuple:
        return items(_form(members[0]))
    if get_origin(hint) in (Union, UnionType):
        return _union(members)
    raise TypeError(f"{hint!r} has no JSON encoding: add it to {__name__}")


def _union(members: Sequence[Any]) -> Form:
    extended = [member for member in members if isinstance(member, type) and issubclass(member, Extended)]
    others = tuple(member for member in members if member not in extended)
    if extended:
        return one_of({member: _object(member) for member in extended}, _union(others))
    there = [member for member in others if member is not type(None)]
    if len(there) > 1 and set(there) <= _VALUES:
        return VALUE
    form = _form(there[0]) if len(there) == 1 else one_of({get_origin(each) or each: _form(each) for each in there})
    return form if len(there) == len(others) else optional(form)


_VALUES: Final = {value if isinstance(value, type) else type(value) for value in VALUES.values()}

_MESSAGES: Final = {cls.__name__: _object(cls) for cls in BY_TAG.values()}
