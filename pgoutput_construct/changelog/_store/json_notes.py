"""Reads JSON that any process may have written: small, of finite numbers, and of the types that annotations say.

A dataclass (or NamedTuple, or TypedDict) that describes a note is its schema, so that a note is checked by what uses
it. Measured: jsonschema takes 0.25 s to import, nearly as long as pyarrow.

The store is read before anything is parsed: an error of the store (no permission, no answer) is not damage of the note,
and must not be reported as such. Most notes are guards, and the remedy for a damaged one is to remove it.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

from pgoutput_construct.changelog._store.store import LogStore, MissingFileError
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.wire import Lsn, Timestamp

__all__ = ["from_json", "parse_json", "read_note"]

_T = TypeVar("_T")
_Reader = Callable[[Any], Any]

_LARGEST_NOTE: Final = 2**26
_DEEPEST: Final = 64
"""How deeply lists and objects of unspecified types may be nested: json itself gives up at about 1,000."""
_INT64: Final = range(-(2**63), 2**63)
"""What a log has are 64-bit integers, also LSNs: Arrow and NumPy cannot hold larger ones."""


def read_note(
    store: LogStore,
    name: str,
    kind: type[_T],
    *,
    remedy: str,
    what: str = "damaged",
    exact: bool = False,
) -> _T | None:
    """Return a note of a store, None if there is no such file.

    Args:
        store: The store.
        name: The name of the file.
        kind: The type that it is to have (see ``from_json``).
        remedy: What to do about a damaged one.
        what: What is wrong with a damaged one.
        exact: Refuse fields that the type does not have.

    Raises:
        ChangeLogError: The note is damaged, or the store's own error.
    """
    try:
        content = store.read(name, most=_LARGEST_NOTE)
    except MissingFileError:
        return None
    try:
        return from_json(kind, parse_json(content), exact=exact)
    except ValueError as error:
        raise ChangeLogError(f"{store.path_of(name)}: {what}: {error}; {remedy}") from error


def parse_json(text: bytes | str) -> Any:
    """Parse JSON; raise ValueError for anything else, NaN and infinite numbers, and nesting beyond all limits."""
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def from_json(kind: type[_T], value: Any, *, exact: bool = False) -> _T:
    """Return the value of a type that JSON values describe.

    Objects become dataclasses, TypedDicts or mappings; lists become NamedTuples, tuples, frozensets or lists. An LSN is
    a number, or its text. A mapping may have integers as keys.

    Args:
        kind: The type; of its fields those without a default are required.
        value: The parsed JSON.
        exact: Refuse fields that a dataclass does not have; otherwise they are ignored.

    Raises:
        ValueError: The value has another type; the text begins with the path of the field.
    """
    return cast("_T", _reader(cast("Any", kind), exact)(value))


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.40} is not a finite number")
    return number


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


@cache
def _reader(kind: Any, exact: bool) -> _Reader:
    """Return the function that turns JSON values into those of a type; ``exact`` refuses fields that it does not have.

    It raises ValueError.
    """
    if kind in _SCALARS:
        return _SCALARS[kind]
    if is_dataclass(kind) or is_typeddict(kind):
        return _object(cast("type", kind), exact)
    if hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        least = len(kind._fields) - len(kind._field_defaults)
        return _row(kind, [_reader(hints[name], exact) for name in kind._fields], least)
    return _collection(get_origin(kind), get_args(kind), exact)


def _collection(origin: Any, arguments: tuple[Any, ...], exact: bool) -> _Reader:
    if origin is Literal:
        return _literal(arguments)
    readers = [_reader(each, exact) for each in arguments if each is not Ellipsis]
    if origin in (Union, UnionType):
        return _union(readers)
    if issubclass(origin, Mapping):
        return _mapping(*readers)
    if origin is tuple and Ellipsis not in arguments:
        return _row(lambda *items: items, readers, len(readers))
    return _list(origin, *readers)


def _object(kind: type, exact: bool) -> _Reader:
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        names, others = [each.name for each in fields(kind)], None
        required = {each.name for each in fields(kind) if each.default is each.default_factory is MISSING}
    else:
        names, others, required = [*hints], _any, {*kind.__required_keys__}  # type: ignore[attr-defined]
    readers = {name: _reader(hints[name], exact) for name in names}

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _mismatch("an object", value)
        if missing := required - value.keys():
            raise ValueError(f"{min(missing)} is missing")
        if exact and (unknown := value.keys() - readers.keys()):
            raise ValueError(f"{min(unknown)!r:.80} is unknown: a later version may have written it")
        found, name = dict[str, Any](), ""
        try:  # once for all fields: events have thousands
            for name, each in value.items():
                if (reader := readers.get(name, others)) is not None:
                    found[name] = reader(each)
        except ValueError as error:
            raise _within(name, error) from None
        return kind(**found)

    return read


def _row(make: Callable[..., Any], readers: list[_Reader], least: int) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, list) or not least <= len(value) <= len(readers):
            raise _mismatch(f"a list of {len(readers)}", value)
        return make(*_items(zip(readers, value, strict=False)))

    return read


def _list(make: Callable[[Iterable[Any]], Any], reader: _Reader) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise _mismatch("a list", value)
        return make(_items((reader, each) for each in value))

    return read


def _items(pairs: Iterable[tuple[_Reader, Any]]) -> list[Any]:
    found = list[Any]()
    try:
        for reader, each in pairs:
            found.append(reader(each))
    except ValueError as error:
        raise _within(f"[{len(found)}]", error) from None
    return found


def _mapping(read_key: _Reader, read_value: _Reader) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _mismatch("an object", value)
        found, key, number = dict[Any, Any](), "", read_key is _SCALARS[int]
        try:
            for key, each in value.items():
                found[read_key(_number(key) if number else key)] = read_value(each)
        except ValueError as error:
            raise _within(key, error) from None
        return found

    return read


def _number(text: str) -> Any:
    return int(text) if text.removeprefix("-").isdecimal() else text


def _union(readers: list[_Reader]) -> _Reader:
    def read(value: Any) -> Any:
        problem = ValueError()
        for reader in readers:
            try:
                return reader(value)
            except ValueError as error:
                problem = problem if value is None or reader is _null else error
        raise problem

    return read


def _literal(values: tuple[Any, ...]) -> _Reader:
    def read(value: Any) -> Any:
        if value not in values:
            raise _mismatch(f"one of {values}", value)
        return value

    return read


def _within(name: str, error: ValueError) -> ValueError:
    return ValueError(f"{name:.80}: {error}")


def _mismatch(expected: str, value: Any) -> ValueError:
    found = f"{value!r:.60}" if isinstance(value, str | int | float | NoneType) else type(value).__name__
    return ValueError(f"expected {expected}, not {found}")


def _null(value: Any) -> None:
    if value is not None:
        raise _mismatch("null", value)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _mismatch("true or false", value)
    return value


def _int(value: Any) -> int:
    if type(value) is not int:
        raise _mismatch("an integer", value)
    if value not in _INT64:
        raise ValueError("the number does not fit into 64 bits")
    return value


def _float(value: Any) -> float:
    return value if type(value) is float else float(_int(value))


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise _mismatch("a string", value)
    if not value.isascii():
        value.encode("utf-8", "surrogateescape")  # raises ValueError for what is no text and no bytes
    return value


def _lsn(value: Any) -> Lsn:
    number = _int(int(Lsn(value)) if isinstance(value, str) else value)
    if number < 0:
        raise ValueError("an LSN is not negative")
    return Lsn(number)


def _any(value: Any) -> Any:
    if (read := _SCALARS.get(type(value))) is not None:
        return read(value)
    level = [value]
    for _ in range(_DEEPEST):
        for each in level:
            if (read := _SCALARS.get(type(each))) is not None:
                read(each)
        parts = [
            (*each, *each.values()) if isinstance(each, dict) else each for each in level if type(each) in (dict, list)
        ]
        level = [inner for part in parts for inner in part]
        if not level:
            return value
    raise ValueError("it is nested too deeply")


_SCALARS: Final[dict[Any, _Reader]] = {
    Any: _any,
    NoneType: _null,
    bool: _bool,
    int: _int,
    float: _float,
    str: _str,
    Lsn: _lsn,
    Timestamp: lambda value: Timestamp(_int(value)),
}
