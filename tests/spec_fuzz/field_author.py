"""The fields of generated specifications: their names, types, conditions, values and sizes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from hypothesis import strategies as st

from tests.spec_fuzz.words import CLASSES, CONSTANTS, NAMES, TAGS, TEXTS

__all__ = ["SIZES", "Data", "FieldAuthor", "Group"]

T = TypeVar("T")
Data = dict[str, Any]
Group = list[Data]
"""Elements that must stay together: an optional choice and the tag after it."""

_TYPES = yaml.safe_load((Path(__file__).parents[2] / "spec" / "types.yaml").read_text("utf-8"))["types"]
_NUMBERS = [row for row in _TYPES if "bytes" in row]
SIZES = [row for row in _NUMBERS if row["python"] == "int" and "(" not in row["notation"] and not row.get("signed")]
"""The types of counts and lengths."""


class FieldAuthor:
    """Draws fields."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.versions: Sequence[int] = ()
        self.flags: list[str] = []
        self.states: list[str] = []
        self.parts: list[str] = []
        self.open_parts: list[str] = []
        """Parts that go on while bytes remain."""
        self.classes = set[str]()

    def one(self, values: Sequence[T]) -> T:
        """Return one of some values."""
        return self.draw(st.sampled_from(values))

    def chance(self, percent: int) -> bool:
        """Return true in that percentage of cases; false when it shrinks."""
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def up_to(self, least: int, most: int) -> int:
        """Return a number."""
        return self.draw(st.integers(least, most))

    def class_name(self, pool: Sequence[str] = CLASSES, spare: str = "Class") -> str:
        """Return a name that no class has yet."""
        free = [name for name in pool if name.replace(" ", "") not in self.classes]
        name = self.one(free) if free else f"{spare}{len(self.classes)}"
        self.classes.add(name.replace(" ", ""))
        return name

    def python(self, what: str) -> str:
        """Return the Python value of an alternative."""
        if what == "CONSTANT":
            return self.class_name(CONSTANTS, "CONSTANT_")
        return self.class_name(CLASSES[:-1]) if what == "Class" else what

    def sized(self, notation: str | None) -> list[Data]:
        """Return a length and the bytes that it measures, now and then along with something else."""
        names = set[str]()
        size = {"field": notation or self.one(SIZES)["notation"], "name": self.name(names)}
        content = {"field": "Byten", "name": self.name(names), "length": size["name"]}
        fields = [size, content]
        if self.chance(10):
            fields = [{"field": self.one(["Byte2", "Byte16"]), "name": content["name"]}]
        if self.chance(10):
            fields.insert(self.up_to(0, len(fields)), self.fixed(names))
        return fields

    def measure(self, groups: list[Group], names: set[str], rule: Data) -> str:
        """Add a count or length somewhere before what follows, under the same condition, and return its name."""
        size = self.field(names, self.one(SIZES))
        sizes = [size | rule] if rule else self.variants(size)
        sizes = [each for each in sizes if "(0)" not in each["field"]]
        sizes = sizes if len(sizes) > 1 or rule else [size]
        by_bit = "bit" in repr(rule)
        groups.insert(len(groups) - (0 if by_bit else min(self.up_to(0, 2), len(groups))), sizes)
        return str(size["name"])

    def field(self, names: set[str], row: Data | None = None) -> Data:
        """Return a number."""
        row = row or self.one(_NUMBERS)
        signed = {"signed": True} if row.get("signed") and row["python"] == "int" else {}
        plain: Data = {"field": row["notation"], "name": self.name(names)}
        return plain | signed | self.described() | self.server()

    def former(self, names: set[str]) -> Data:
        """Return a former name, now and then."""
        return {"formerly": self.one([self.name(names), [self.name(names)]])} if self.chance(8) else {}

    def marked(self, names: set[str]) -> Data:
        """Return a number, now and then with values or bits."""
        row = self.one(_NUMBERS)
        field = self.field(names, row) | self.former(names)
        if row["python"] != "int" or not self.chance(40):
            return field
        top = 8 * row["bytes"] - 1 - bool(row.get("signed"))
        if self.chance(40):
            bits = self.draw(st.sets(st.one_of(st.integers(0, 3), st.integers(0, top)), min_size=1, max_size=3))
            return field | {"bits": self.limited({1 << bit: f"bit {bit}" for bit in sorted(bits)})}
        if row["bytes"] == 1 and not row.get("signed") and self.chance(50):
            letters = self.draw(st.lists(st.sampled_from("abdfnxyzAZ09"), min_size=1, max_size=3, unique=True))
            return field | {"values": self.limited({letter: f"is {letter}" for letter in letters})}
        numbers = st.one_of(st.integers(0, 3), st.integers(0, (2 << top) - 1))
        values = self.draw(st.lists(numbers, min_size=1, max_size=3, unique=True))
        return field | {"values": self.limited({value: f"is {value}" for value in values})}

    def fixed(self, names: set[str]) -> Data:
        """Return a constant."""
        if self.chance(50):
            return {"field": f"Byte1('{self.one(TAGS)}')", "name": self.name(names)}
        row = self.one(SIZES)
        value = self.one([0, 1, 255, (1 << 8 * row["bytes"]) - 1])
        return {"field": f"{row['notation']}({value})", "name": self.name(names)}

    def conditional(self, field: Data, flags: Mapping[str, Sequence[int]] | None = None) -> Data:
        """Return a field that may be absent, now and then; ``flags`` are the bits of those before it, by name."""
        condition = self.condition(flags) if self.chance(30) else {}
        return field | condition | ({"positional": True} if condition and self.chance(15) else {})

    def condition(self, flags: Mapping[str, Sequence[int]] | None = None) -> Data:
        """Return a condition: parameters, versions, bits, several or none of them."""
        when = {"when": self.when(2, flags or {})} if (self.flags or flags) and self.chance(60) else {}
        return when | self.since(50)

    def when(self, depth: int, flags: Mapping[str, Sequence[int]]) -> Any:
        """Return what parameters and bits must be."""
        if depth and self.chance(25):
            if self.chance(50):
                return {"not": self.when(depth - 1, flags)}
            terms = [self.when(depth - 1, flags) for _ in range(self.up_to(2, 3))]
            return {self.one(["all", "any"]): terms}
        if flags and (not self.flags or self.chance(50)):
            name = self.one(sorted(flags))
            return {"bit": self.one(flags[name]), "of": name}
        return self.one(self.flags) if self.flags else {"not": self.when(0, flags)}

    def since(self, percent: int) -> Data:
        """Return the first version, the last one, or both in that percentage of cases."""
        if not self.versions or not self.chance(percent):
            return {}
        first = self.up_to(0, len(self.versions) - 1)
        last = self.up_to(first, len(self.versions) - 1)
        kind = self.up_to(0, 9)
        since = {"since": self.versions[first]} if kind < 7 else {}
        return since | ({"until": self.versions[last]} if kind > 5 else {})

    def first(self, percent: int) -> Data:
        """Return the first version in that percentage of cases."""
        return {"since": self.one(self.versions)} if self.versions and self.chance(percent) else {}

    def limited(self, meanings: Data) -> Data:
        """Return values or bits, some of which have conditions now and then."""
        if not self.chance(40):
            return meanings
        return {
            name: {"meaning": meaning} | ({"when": self.when(1, {})} if self.flags and self.chance(20) else {})
            | self.since(50) if self.chance(50) else meaning
            for name, meaning in meanings.items()
        }  # fmt: skip

    def variants(self, field: Data) -> list[Data]:
        """Return a field as it is in some versions, and as it is in others; or as it is always."""
        if len(self.versions) < 2 or not self.chance(15):
            return [field]
        at = self.up_to(1, len(self.versions) - 1)
        until, since = {"until": self.versions[at - 1]}, {"since": self.versions[at]}
        older = {key: value for key, value in field.items() if key not in ("values", "bits", "when", "since", "until")}
        newer = older | {key: field[key] for key in ("values", "bits") if key in field}
        older["field"] = self.one([row for row in _NUMBERS if _alike(row, field)])["notation"]
        if not field.get("signed") and "(" not in older["field"] and self.chance(25):
            older["field"] += "(0)"
        if any(isinstance(value, str) for value in field.get("values", ())):
            older |= {"field": "Int8", "values": field["values"]}
        return [older | until, newer | since]

    def server(self) -> Data:
        """Return the PostgreSQL that something came with, now and then."""
        return {"server": self.one([10, 14, 20])} if self.chance(10) else {}

    def described(self, percent: int = 10) -> Data:
        """Return a description in that percentage of cases."""
        return {"description": self.one(TEXTS)} if self.chance(percent) else {}

    def name(self, names: set[str], kind: bool = False, plain: bool = False) -> str:
        """Return a name that a structure does not have yet; a tagged choice takes two."""
        free = [name for name in NAMES if name not in names and not (kind and f"{name}_kind" in names)]
        # A choice of values called x_kind next to a field x: the trace takes its tag for that of x.
        name = self.one([name for name in free if not (plain and name.endswith("_kind"))])
        names |= {name, f"{name}_kind"} if kind else {name}
        return name


def _alike(row: Data, field: Data) -> bool:
    """Return whether a type is to readers what that of a field is."""
    own = next(each for each in _NUMBERS if each["notation"] == field["field"])
    signed = bool(row.get("signed")) == bool(field.get("signed")) or row["python"] != "int"
    return row["python"] == own["python"] and signed and not ("(" in row["notation"] and field.get("signed"))
