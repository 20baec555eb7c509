"""Specifications of messages with a length, as plain data: what a connection can carry."""

from collections.abc import Iterator

from hypothesis import strategies as st

from tests.spec_fuzz.field_author import SIZES, Data, Group
from tests.spec_fuzz.specifications import Author
from tests.spec_fuzz.words import MESSAGES, STATES, TEXTS

__all__ = ["framed_specifications"]


@st.composite
def framed_specifications(draw: st.DrawFn) -> Data:
    """Return the data of a specification of a connection; nearly all of them keep the rules of the language."""
    return _FramedAuthor(draw).specification()


class _FramedAuthor(Author):
    """Writes one specification: no parameters and no options, but lengths, states and senders."""

    nullable = True
    """Whether values may be absent where it writes: not in a branch of a choice."""

    def specification(self) -> Data:
        self.states = self.draw(st.lists(st.sampled_from(STATES), min_size=1, max_size=3, unique=True))
        self.above_zero: list[str] = []
        self.size = {"field": self.one(SIZES)["notation"], "measures": "rest"}
        parts = [self.part() for _ in range(self.up_to(0, 3))]
        data: Data = {"protocol": "fuzzed", "title": self.one(TEXTS), "source": "nowhere"}
        data["states"] = [{"name": name} for name in self.states]
        return data | {"messages": [*self.messages()], "parts": self.draw(st.permutations(parts))}

    def messages(self) -> Iterator[Data]:
        """Yield messages, of which no two begin alike where both can come."""
        untagged = self.states[: self.up_to(0, 1)]
        others = [state for state in self.states if state not in untagged]
        if untagged:
            for code in self.codes(self.up_to(1, 3)):
                yield self.framed(untagged, None, code)
        tags = st.lists(st.sampled_from("BCDEFGRSTbcde"), min_size=1, max_size=3, unique=True)
        for number, tag in enumerate(self.draw(tags) if others else []):
            if (untagged or number) and self.chance(10):  # a tag alone, along with a message that has a length
                yield self.placed(others) | {"blocks": self.gathered([_tag(tag)])}
                continue
            for code in self.codes(self.one([1, 1, 2, 3])):
                yield self.framed(others, tag, code)

    def codes(self, count: int) -> list[Data]:
        """Return constants that tell a number of messages apart; nothing where there is one, now and then."""
        if count == 1 and self.chance(70):
            return [{}]
        row = self.one(SIZES)
        values = self.draw(st.lists(st.integers(0, 255), min_size=count, max_size=count, unique=True))
        return [{"field": f"{row['notation']}({value})", "name": "code"} for value in values]

    def framed(self, states: list[str], tag: str | None, code: Data) -> Data:
        """Return a message that begins with its tag, if any, its length and the constant after that, if any."""
        first = [*([_tag(tag)] if tag else []), self.size | {"name": "length"}, *([code] if code else [])]
        return self.placed(states) | {"blocks": self.blocks(0, 0, first)}

    def placed(self, states: list[str]) -> Data:
        """Return the beginning of a message: its name, sender and states."""
        message: Data = {"name": self.class_name(MESSAGES)} | self.described()
        message |= {"sender": self.one(["server", "client"])} if self.chance(60) else {}
        message["in"] = states if self.chance(60) else [self.one(states)]
        return message | ({"enters": self.one(self.states)} if self.chance(40) else {})

    def part(self) -> Data:
        part = {"name": self.class_name(), "blocks": self.ended(1)} if self.chance(40) else super().part()
        if part["name"] not in self.parts:
            self.parts.append(part["name"])
        if self.begins_above_zero(part["blocks"]):
            self.above_zero.append(part["name"])
        return part

    def begins_above_zero(self, blocks: list[Data]) -> bool:
        """Return whether the first byte of a structure cannot be zero, an empty text excepted."""
        first = blocks[0].get("fields", [{}])[0]
        letters = any(isinstance(value, str) for value in first.get("values", ()))
        return letters or first.get("field") in ("String", *self.above_zero)

    def repeat(self, groups: list[Group], names: set[str], depth: int) -> None:
        if self.chance(50):
            super().repeat(groups, names, depth)
            return
        repeat: Data = {"type": "repeat_1", "name": self.name(names), "until": "Int8(0)"} | self.described()
        groups.append([repeat | {"class": self.class_name(), "blocks": self.ended(depth + 1)}])

    def ended(self, depth: int) -> list[Data]:
        """Return the blocks of an item that cannot begin as what follows the last one does, or nearly always."""
        names = set[str]()
        letters = {"field": "Int8", "name": self.name(names), "values": {"a": "is a", "Z": "is Z"}}
        makers = [{"field": notation, "name": letters["name"]} for notation in ("String", *self.above_zero[-1:])]
        groups: list[Group] = [[self.one([letters, *makers])]]
        for _ in range(self.one([0, 0, 1, 2])):
            self.add(groups, names, depth)
        if self.chance(3):
            groups.reverse()
        return self.gathered([element for group in groups for element in group])

    def bytes_(self, groups: list[Group], names: set[str], depth: int) -> None:
        if not (self.nullable and self.chance(50)):
            super().bytes_(groups, names, depth)
            return
        size = {"field": self.one(SIZES)["notation"], "name": self.name(names), "signed": True}
        groups.append([size, {"field": "Byten", "name": self.name(names), "length": size["name"], "absent": -1}])

    def content(self, depth: int) -> list[Data]:
        self.nullable = self.chance(5)
        fields = super().content(depth)
        self.nullable = True
        return fields


def _tag(letter: str) -> Data:
    return {"field": f"Byte1('{letter}')", "name": "tag"}
