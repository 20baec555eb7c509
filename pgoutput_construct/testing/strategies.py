"""Hypothesis strategies derived from the construct definitions, so that they generate whatever these can build."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeVar

from construct import Construct, Default, FocusedSeq, IfThenElse, Renamed, Struct, Switch
from construct.expr import BinExpr, UniExpr
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pgoutput_construct.wire.areas import Area, AreaSize
from pgoutput_construct.wire.primitives import Absent, Bits, Constant, Data, FloatNumber, Letter, Number, OneOf, String
from pgoutput_construct.wire.structures import (
    Closed,
    Composed,
    Counted,
    Extending,
    HasBit,
    Kind,
    Length,
    Record,
    Reserved,
    SizeOf,
    Terminated,
    ToEnd,
    Valued,
)
from pgoutput_construct.wire.types import FieldedBytes, Float

__all__ = ["any_of"]

Strategy = SearchStrategy[Any]
T = TypeVar("T")


_MUCH = 1 << 16
"""More bytes than any strategy draws for a part."""


class Branch(NamedTuple):
    """A drawn branch of a choice: its tag, and its content."""

    kind: str | int | None
    value: Any


class After(NamedTuple):
    """A strategy that depends on the values of earlier fields."""

    of: Callable[[Mapping[str, Any]], SearchStrategy[Any]]


def strings() -> SearchStrategy[str]:
    """Return strs as ``parse`` returns them: without NUL, and with surrogates only for bytes that are not UTF-8."""
    raw = st.binary(max_size=24).map(lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
    return st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=24) | raw


def blobs() -> SearchStrategy[bytes]:
    """Return bytes of any content."""
    return st.binary(max_size=48)


def several(items: SearchStrategy[T], least: int = 0, most: int = 4) -> SearchStrategy[tuple[T, ...]]:
    """Return the items of a repeat; always none if the options permit no item."""
    return st.just(()) if items.is_empty else st.lists(items, min_size=least, max_size=most).map(tuple)


def exactly(items: SearchStrategy[T], number: int) -> SearchStrategy[tuple[T, ...]]:
    """Return the items of a repeat with a given number of them; nothing if the options permit no item."""
    return st.nothing() if items.is_empty and number else several(items, number, number)


def branches(cases: Mapping[str | int, SearchStrategy[Any]], optional: bool = False) -> SearchStrategy[Branch]:
    """Return the branches of a choice; also no branch if it is optional."""
    possible = {kind: strategy for kind, strategy in cases.items() if not strategy.is_empty}
    taken = [st.builds(Branch, st.just(kind), strategy) for kind, strategy in possible.items()]
    return st.one_of(*taken, *([st.just(Branch(None, None))] if optional else []))


@st.composite
def record(draw: st.DrawFn, cls: Callable[..., T], /, **fields: SearchStrategy[Any] | After) -> T:
    """Return objects of a message class; a field that is a Branch also sets the field of its kind."""
    values: dict[str, Any] = {}
    for name, strategy in fields.items():
        value = draw(strategy.of(values) if isinstance(strategy, After) else strategy)
        if isinstance(value, Branch):
            values[f"{name}_kind"] = value.kind
        values[name] = value.value if isinstance(value, Branch) else value
    return cls(**values)


def any_of(cls: type, definition: Struct, parameters: Mapping[str, Any], complete: bool = False) -> Strategy:
    """Return the objects of a message class that its definition can build under some parameters.

    Args:
        cls: The message class.
        definition: Its definition.
        parameters: The parameters of the layouts.
        complete: Whether each repeat has an item, and each optional choice a branch.
    """
    return record(cls, **_fields(definition, {"_params": parameters, "complete": complete}))


def _fields(struct: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the strategies of an object's fields, without constants, counts and lengths.

    The strategy of a field that depends on earlier ones is an After: its presence on a bit, its length on a list.
    """
    found: dict[str, Any] = {}
    kind: Any = None
    context = {**context, "longest": {each.name: _longest(each) for each in struct.subcons}}
    for each in struct.subcons:
        content = _content(each)
        if isinstance(content, Kind):
            kind = content  # the Switch over it follows
        elif isinstance(content, Switch):
            optional = kind.before is not None and not context["complete"]
            cases = _cases(kind, content.cases, context)
            holding = {tag: cases[tag] for tag in cases if content.cases.get(tag, Absent) is not Absent}
            found[each.name] = branches(holding if context["complete"] and holding else cases, optional)
        elif each.name and not all(isinstance(leaf, _DERIVED) for leaf in _leaves(each)):
            found[each.name] = _after(each, context) if _depends(each) else _strategy(each, context)
    return found


_DERIVED = (Constant, SizeOf, AreaSize, Length, Closed)
"""What no object has."""


def _longest(construct: Any) -> int:
    """Return the most bytes of a part whose length a field is; 0 for another field."""
    return min((leaf.subcon.range[1] for leaf in _leaves(construct) if isinstance(leaf, AreaSize)), default=0)


def _after(construct: Any, context: Mapping[str, Any]) -> After:
    return After(lambda values: _strategy(construct, {**context, **values}))


def _leaves(construct: Any) -> Iterator[Construct]:
    """Yield the constructs that a field can have under any parameters."""
    match construct:
        case Renamed(subcon=inner) | Default(subcon=inner):
            yield from _leaves(inner)
        case IfThenElse(thensubcon=one, elsesubcon=other):
            yield from _leaves(one)
            yield from () if other is Absent else _leaves(other)
        case _:
            yield construct


def _depends(construct: Any) -> bool:
    """Return whether a field depends on an earlier one: its presence on a bit, or its length on a list."""
    parts: tuple[Any, ...] = ()
    match construct:
        case Renamed(subcon=inner) | Default(subcon=inner) | UniExpr(operand=inner):
            parts = (inner,)
        case IfThenElse(condfunc=condition, thensubcon=one, elsesubcon=other):
            parts = (condition, one, other)
        case BinExpr(lhs=one, rhs=other):
            parts = (one, other)
    is_alike = isinstance(construct, Counted) and construct.alike is not None
    return is_alike or isinstance(construct, HasBit) or any(map(_depends, parts))


def _content(construct: Any, context: Mapping[str, Any] | None = None) -> Construct:
    """Return the construct of a field under some parameters; without parameters, the one if it is present."""
    while isinstance(construct, Renamed | Default | IfThenElse):
        if isinstance(construct, IfThenElse):
            there = context is None or construct.condfunc(context)
            construct = construct.thensubcon if there else construct.elsesubcon
        else:
            construct = construct.subcon
    return construct


def _cases(kind: Kind, cases: Mapping[str | int, Construct], context: Mapping[str, Any]) -> dict[str | int, Strategy]:
    """Return the strategies of the content of each tag that the parameters permit."""
    known = [tag for tag in kind.tags.values() if kind.problem(tag, context) is None]
    return {tag: _strategy(cases[tag], context) if tag in cases else st.none() for tag in known}


def _strategy(construct: Any, context: Mapping[str, Any]) -> Strategy:
    content = _content(construct, context)
    if isinstance(content, Composed):
        return st.fixed_dictionaries(_fields(content.subcon, context)).map(content.made)
    if isinstance(content, Area):
        return _fitting(content.subcon, context["longest"][content.length], context)
    return _held(content, context)


def _fitting(part: Construct, longest: int, context: Mapping[str, Any]) -> Strategy:
    """Return the strategy of a part whose bytes its length can count."""
    found = _strategy(part, context)
    if longest >= _MUCH:
        return found
    return found.filter(lambda value: len(part.build(value, **context["_params"])) <= longest)


def _held(content: Construct, context: Mapping[str, Any]) -> Strategy:
    match content:
        case Counted() | Terminated() | ToEnd():
            return _items(content, context)
        case Extending(condition=extended, principal=principal) if not extended(context):
            alone: Strategy = _fields(content.subcon, context)[principal]
            return alone
        case Record(cls=cls, subcon=struct):
            return record(cls, **_fields(struct, context))
        case FocusedSeq(parsebuildfrom=name):
            focused: Strategy = _fields(content, context)[name]
            return focused
        case Valued(kind=kind, cases=cases, values=values):
            contents = _cases(kind, cases, context)
            return st.one_of([_value(values[tag], tag in cases, contents[tag]) for tag in contents])
    return _primitive(content)


def _items(repeat: Counted | Terminated | ToEnd, context: Mapping[str, Any]) -> Strategy:
    items, number = _strategy(repeat.subcon, context), None
    if isinstance(repeat, Counted):
        number = len(context[repeat.alike]) if repeat.alike else repeat.count
    if isinstance(number, int):
        return exactly(items, number)
    ended = isinstance(repeat, Terminated)
    return several(items.filter(_begins_above_zero) if ended else items, least=int(context["complete"]))


def _value(value: Any, has_content: bool, content: Strategy) -> Strategy:
    """Return the strategy of a tuple value of one kind: a constant, bytes, or a class of bytes."""
    if not has_content:
        return st.just(value)
    return content if value is bytes or issubclass(value, FieldedBytes) else content.map(value)


def _begins_above_zero(item: Any) -> bool:
    """Return whether an item may be in a Terminated: its first text is not empty, so no zero byte begins it."""
    while is_dataclass(item):
        item = getattr(item, fields(item)[0].name)
    return bool(item != "")


def _data(data: Data) -> Strategy:
    if data.fixed_size is not None:
        return st.binary(min_size=data.fixed_size, max_size=data.fixed_size)
    return blobs() if data.absent is None else st.none() | blobs()


def _primitive(construct: Any) -> Strategy:
    match construct:
        case Bits(mask=mask):
            return st.integers(0, mask).map(lambda value: value & mask)
        case OneOf(values=values) | Letter(letters=values):
            return st.sampled_from(values)
        case Number(range=(low, high), convert=convert):
            return st.integers(low, high).map(convert) if convert else st.integers(low, high)
        case FloatNumber():
            return st.floats().map(Float) | st.integers(0, (1 << 64) - 1).map(Float.from_bits)
        case Data():
            return _data(construct)
    assert construct in (String, Absent) or isinstance(construct, Reserved), construct
    return strings() if construct is String else st.none()
