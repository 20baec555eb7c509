"""Strategies for the parts of messages: text, bytes, repeats, choices and records."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

__all__ = ["After", "Branch", "blobs", "branches", "record", "several", "strings"]

T = TypeVar("T")


class Branch(NamedTuple):
    """A drawn branch of a choice: its tag, and its content."""

    kind: str | None
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


def several(items: SearchStrategy[T], least: int = 0) -> SearchStrategy[tuple[T, ...]]:
    """Return the items of a repeat; always none if the options permit no item."""
    return st.just(()) if items.is_empty else st.lists(items, min_size=least, max_size=4).map(tuple)


def branches(cases: Mapping[str, SearchStrategy[Any]], optional: bool = False) -> SearchStrategy[Branch]:
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
