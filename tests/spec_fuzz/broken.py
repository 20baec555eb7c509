"""Specifications with one thing wrong in them, more or less."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.spec_fuzz.field_author import Data
from tests.spec_fuzz.framed import framed_specifications
from tests.spec_fuzz.specifications import specifications

__all__ = ["broken_specifications"]


@st.composite
def broken_specifications(draw: st.DrawFn) -> Data:
    """Return the data of a specification with one thing in it changed, removed, or written twice."""
    data = draw(st.one_of(specifications(), framed_specifications()))
    holders = list(_holders(data))
    holder = draw(st.sampled_from(holders))
    places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if places:
        place = draw(st.sampled_from(places))
        others = [value for other in holders for value in (other.values() if isinstance(other, dict) else other)]
        match draw(st.sampled_from(["remove", "replace", "move", "again"])):
            case "remove":
                del holder[place]
            case "replace":
                holder[place] = draw(st.sampled_from(WRONG))
            case "move":
                holder[place] = deepcopy(draw(st.sampled_from(others)))
            case "again" if isinstance(holder, list):
                holder.append(deepcopy(holder[place]))
    return data


WRONG: tuple[Any, ...] = (
    None, True, 0, 1, 2, -1, "rest", 256, 1 << 64, 1.5, "", "alpha", "Alpha", "None", "bytes", "class", "items", "tag",
    "Int8", "Int64", "Byten", "String", "Byte1('A')", "Int8(7)", "Int64(99999999999999999999)", "1_1_Int8", "\u2028",
    [], {}, ["idle"], [{"field": "Int8", "name": "alpha"}], {1: "one"}, {"a": "letter"}, {3: "two bits"},
)  # fmt: skip
"""What may stand where something else is expected."""


def _holders(data: Any) -> Iterator[Any]:
    """Yield all mappings and lists in data."""
    if isinstance(data, dict | list):
        yield data
        for value in data.values() if isinstance(data, dict) else data:
            yield from _holders(value)
