"""Specifications as plain data: any that the language allows, drawn by Hypothesis."""

from collections.abc import Sequence
from typing import Any

import yaml
from hypothesis import strategies as st

from tests.spec_fuzz.field_author import SIZES, Data, FieldAuthor, Group
from tests.spec_fuzz.words import FLAGS, MESSAGES, STATES, TAGS, TEXTS
from tools.language.names import LINE_KEYS

__all__ = ["Author", "as_yaml", "specifications"]

DEEPEST = 2
"""Structures inside structures."""


@st.composite
def specifications(draw: st.DrawFn) -> Data:
    """Return the data of a specification; nearly all of them keep the rules of the language."""
    return Author(draw).specification()


def as_yaml(data: Data) -> str:
    """Return data as the text of a specification."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


class _Dumper(yaml.SafeDumper):
    """Writes blocks out, since the language has no aliases of them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class Author(FieldAuthor):
    """Writes one specification."""

    has_options = False
    switched: Sequence[Data] = ()
    """The options."""

    def specification(self) -> Data:
        self.versions = self.one([(1, 2, 5), (1,), (1, 2), ()])
        self.flags = self.draw(st.lists(st.sampled_from(FLAGS), max_size=3, unique=True))
        self.states = self.draw(st.lists(st.sampled_from(STATES), max_size=3, unique=True))
        self.has_options = self.chance(50)
        states = [{"name": self.states[0]}, *(self.state(name) for name in self.states[1:])] if self.states else []
        self.switched = self.options({row.get("sets") for row in states}) if self.has_options else []
        parts = [self.part() for _ in range(self.up_to(0, 3))]
        parts += [self.open_part() for _ in range(self.up_to(0, 2))]
        tags = self.draw(st.lists(st.sampled_from("BCDEFGIMPQRSTUVWbcdefg"), min_size=1, max_size=4, unique=True))
        notations = [f"Byte1('{tag}')" if self.chance(80) else f"Int8({ord(tag) ^ 0x80})" for tag in tags]
        messages = [self.message(notation) for notation in notations] + [*self.bounds(), *self.nested()]
        parameters: Data = {name: {"type": "bool"} for name in self.flags}
        if self.versions or self.chance(20):
            parameters["proto_version"] = {"type": "int"}
        order = self.draw(st.permutations(sorted(parameters)))
        data: Data = {"protocol": "fuzzed", "title": self.one(TEXTS), "source": "nowhere"}
        if self.versions:
            data["versions"] = [{"version": v, "server": 9 + v} for v in self.versions]
        data["parameters"] = {name: parameters[name] for name in order}
        data |= {"states": states} if states else {}
        data |= {"options": self.switched} if self.has_options else {}
        return data | {"messages": messages, "parts": self.draw(st.permutations(parts))}

    def options(self, by_states: set[str | None]) -> list[Data]:
        """Return the options: one for each parameter that no state sets."""
        options: list[Data] = []
        if self.versions:
            options.append({"name": "proto_version", "server": 10, "type": "number"})
        for flag in self.flags:
            option: Data = {"name": f"{flag}_option", "server": 10} | self.described(50)
            if flag not in by_states and self.chance(50):
                options.append(option | {"type": "switch", "sets": flag} | self.first(60))
            elif flag not in by_states:
                on = {"name": "on", "server": 11, "sets": [flag]} | self.first(60) | self.described(50)
                values = [{"name": "off", "server": 10}, on]
                options.append(option | {"values": values})
        return [*options, {"name": "names", "server": 10, "type": "names"}]

    def state(self, name: str) -> Data:
        sets = {"sets": self.one(self.flags)} if self.flags and self.chance(60) else {}
        return {"name": name} | sets | self.described()

    def switches(self) -> list[str]:
        """Return the options that can be off."""
        return [row["name"] for row in self.switched if "values" in row or row.get("type") == "switch"]

    def bounds(self) -> list[Data]:
        """Return a begin and an end of a transaction, now and then."""
        if len(self.states) < 2 or not self.chance(25):
            return []
        outside, inside = self.states[:2]
        begin: Data = {"name": self.class_name(MESSAGES), "in": [outside], "enters": inside, "group": "begin"}
        end: Data = {"name": self.class_name(MESSAGES), "in": [inside], "enters": outside, "group": "end"}
        begin |= {"effect": "begin"} if self.chance(70) else {}
        end |= {"effect": "commit"} if self.chance(70) else {}
        xid = {"field": "Int32 (TransactionId)", "name": self.one(["x", "xid"]), "role": "xid"}
        at = [{"field": "Int64 (XLogRecPtr)", "name": "place", "role": "lsn"}]
        at.append({"field": "Int64 (TimestampTz)", "name": "moment", "role": "time"})
        first = {"field": "Byte1('[')", "name": "tag"}
        begin["blocks"] = [{"type": "header", "fields": [first, xid]}]
        end["blocks"] = [{"type": "header", "fields": [first | {"field": "Byte1(']')"}, *at]}]
        return [begin, end]

    def nested(self) -> list[Data]:
        """Return what enters a state that returns to the one before, and what leaves it, now and then."""
        if len(self.states) < 2 or not self.chance(40):
            return []
        name, around = self.states[-1], self.states[:-1]
        enters: Data = {"name": self.class_name(MESSAGES), "in": around, "enters": name}
        returns: Data = {"name": self.class_name(MESSAGES), "in": [name], "returns": True}
        tags = ("(", ")")
        for message, tag in zip((enters, returns), tags, strict=True):
            message["blocks"] = self.blocks(0, 0, [{"field": f"Byte1('{tag}')", "name": "tag"}])
        return [enters, returns]

    def part(self) -> Data:
        name = self.class_name()
        about = self.described() | self.server()
        if self.chance(40):  # a row, as TupleData is one
            number, names = self.one(SIZES), set[str]()
            count = self.field(names, number)
            repeat = {"type": "repeat_1", "name": self.name(names), "count": count["name"]}
            blocks = [{"type": "header", "fields": [count]}, repeat | {"blocks": [self.valued(set(), 1)]}]
            part = {"name": name, **about, "blocks": blocks}
        else:
            part = {"name": name, **about, "blocks": self.blocks(0, 1)}
        self.parts.append(name)
        return part

    def open_part(self) -> Data:
        """Return a part that goes on while bytes remain."""
        names, groups = set[str](), list[Group]()
        for _ in range(self.up_to(0, 3)):
            self.add(groups, names, 1)
        elements = [element for group in groups for element in group]
        part = {"name": self.class_name(), **self.described(), **self.server()}
        part["blocks"] = self.gathered([*elements, self.ending(names)])
        self.open_parts.append(part["name"])
        return part

    def ending(self, names: set[str]) -> Data:
        """Return what goes on while bytes remain."""
        name = self.name(names)
        if self.open_parts and self.chance(20):
            return {"field": self.one(self.open_parts), "name": name}
        if self.chance(60):
            return {"field": "Byten", "name": name}
        last = {"type": "repeat_1", "name": name, "while": "bytes remain", "class": self.class_name()}
        return last | {"blocks": self.item(1)}

    def message(self, tag: str) -> Data:
        message: Data = {"name": self.class_name(MESSAGES)} | self.described() | self.server()
        message |= {"option": self.one(self.switches())} if self.switches() and self.chance(25) else {}
        if self.versions and self.chance(25):
            message["since"] = self.one(self.versions)
            message |= {"unasked": "Seen."} if self.chance(30) else {}
        if self.states:
            message["in"] = self.states[:1] if self.chance(5) else self.states
            message |= {"enters": self.one(self.states)} if self.chance(30) else {}
        first = {"field": tag, "name": "tag"}
        return message | {"blocks": self.blocks(0, 0, [first])}

    def blocks(self, depth: int, least: int, first: Sequence[Data] = ()) -> list[Data]:
        """Return the blocks of a structure; ``first`` is what a message begins with: its tag."""
        names: set[str] = {field["name"] for field in first}
        if first and self.has_options:
            names |= LINE_KEYS | {*self.flags}  # the keys of JSON lines, which fields of messages may not have
        groups: list[Group] = []
        for _ in range(self.up_to(least, 4)):
            self.add(groups, names, depth)
        elements = [*first, *(element for group in groups for element in group)]
        if first and self.chance(25):
            elements.append(self.ending(names) | (self.condition() if self.chance(30) else {}))
        return self.gathered(elements or [self.field(names)])

    def gathered(self, elements: list[Data]) -> list[Data]:
        """Return elements as blocks: fields together, now and then in two blocks."""
        blocks: list[Data] = []
        for element in elements:
            if "field" not in element:
                blocks.append(element)
            elif blocks and "fields" in blocks[-1] and not self.chance(10):
                blocks[-1]["fields"].append(element)
            else:
                blocks.append({"type": "body" if blocks else "header", "fields": [element]})
        for at, block in enumerate(blocks):
            if "fields" in block and self.chance(5):
                for place, field in enumerate(block["fields"]):
                    field["field"] = f"{at + 1}_{place + 1}_{field['field']}"
        return blocks

    def add(self, groups: list[Group], names: set[str], depth: int) -> None:
        """Add an element to a structure, with what it needs before it or after it."""
        makers = [self.number, self.number, self.text, self.constant, self.bytes_, self.reference]
        makers += [self.area] if self.open_parts else []
        makers += [self.flagged] if self.chance(30) else []
        makers += [self.repeat, self.choice, self.choice] if depth < DEEPEST else []
        self.one(makers)(groups, names, depth)

    def number(self, groups: list[Group], names: set[str], depth: int) -> None:
        field = self.marked(names)
        variants = self.variants(field)
        groups.append(variants if len(variants) > 1 else [self.conditional(field, _flags(groups))])

    def flagged(self, groups: list[Group], names: set[str], depth: int) -> None:
        """Add a field with bits, and what is there where they are set."""
        bits = {1 << bit: f"bit {bit}" for bit in range(self.up_to(1, 3))}
        field = self.field(names, self.one(SIZES)) | {"bits": self.limited(bits)}
        groups.append([field | (self.condition() if self.chance(30) else {})])
        for _ in range(self.up_to(1, 2)):
            there = {"when": self.when(1, {field["name"]: list(bits)})} | self.since(20)
            kind = self.up_to(0, 3)
            if kind == 0 and depth < DEEPEST:
                size = self.field(names, self.one(SIZES))
                repeat = {
                    "type": "repeat_1",
                    "name": self.name(names),
                    "count": size["name"],
                    "class": self.class_name(),
                }
                groups += [[size | there], [repeat | there | {"blocks": self.item(depth + 1)}]]
            elif kind == 1:
                size = self.field(names, self.one(SIZES))
                data = {"field": "Byten", "name": self.name(names), "length": size["name"]}
                groups += [[size | there], [data | there]]
            else:
                plain = self.marked(names) if kind == 2 else {"field": "String", "name": self.name(names)}
                groups.append([plain | there])

    def text(self, groups: list[Group], names: set[str], depth: int) -> None:
        groups.append([self.conditional({"field": "String", "name": self.name(names)}, _flags(groups))])

    def constant(self, groups: list[Group], names: set[str], depth: int) -> None:
        groups.append([self.fixed(names) | (self.condition(_flags(groups)) if self.chance(10) else {})])

    def bytes_(self, groups: list[Group], names: set[str], depth: int) -> None:
        if self.chance(25):
            block = {"field": self.one(["Byte2", "Byte4", "Byte16"]), "name": self.name(names)}
            groups.append([self.conditional(block, _flags(groups))])
            return
        rule = self.condition(_flags(groups)) if self.chance(20) else {}
        size = self.measure(groups, names, rule)
        groups.append([{"field": "Byten", "name": self.name(names), "length": size} | rule])

    def area(self, groups: list[Group], names: set[str], depth: int) -> None:
        """Add a part with a length of its own."""
        rule = self.condition(_flags(groups)) if self.chance(20) else {}
        size = self.measure(groups, names, rule)
        groups.append([{"field": self.one(self.open_parts), "name": self.name(names), "length": size} | rule])

    def reference(self, groups: list[Group], names: set[str], depth: int) -> None:
        if self.parts:
            part = {"field": self.one(self.parts), "name": self.name(names)}
            groups.append([self.conditional(part, _flags(groups))])

    def repeat(self, groups: list[Group], names: set[str], depth: int) -> None:
        rule = self.condition(_flags(groups)) if self.chance(25) else {}
        count: str | int
        counted = [each for group in groups for each in group if isinstance(each.get("count"), str)]
        if self.chance(15):
            count = self.up_to(1, 3)
        elif counted and self.chance(40):
            first = self.one(counted)
            count = first["count"]
            rule = {key: first[key] for key in ("when", "since", "until") if key in first} or rule
        else:
            count = self.measure(groups, names, rule)
        repeat: Data = {"type": "repeat_1", "name": self.name(names), "count": count} | rule | self.described()
        repeat |= self.server()
        blocks = self.item(depth + 1)
        groups.append([repeat | {"class": self.class_name(), "blocks": blocks}])

    def item(self, depth: int) -> list[Data]:
        """Return the blocks of an item; one thing alone more often than chance would give."""
        names = set[str]()
        groups: list[Group] = []
        what = self.up_to(0, 9)
        if what < 4:
            groups.append([self.marked(names)])
        elif what < 6:
            return [self.valued(names, depth)]
        elif what < 7:
            self.one([self.text, self.bytes_, self.reference])(groups, names, depth)
        if self.chance(20) or not groups:
            extra: list[Group] = []
            self.add(extra, names, depth)
            groups = extra + groups if self.chance(50) else groups + extra
        always = self.chance(95)
        elements = [element for group in groups for element in group]
        if always and elements and all(_may_be_absent(element) for element in elements):
            elements.append(self.field(names))
        return self.gathered(elements) or self.gathered([self.field(names)])

    def choice(self, groups: list[Group], names: set[str], depth: int) -> None:
        if self.chance(35):
            groups.append([self.valued(names, depth)])
            return
        name = self.name(names, kind=True)
        tags, free = self.tags(3)
        known = set[str]()
        alternatives = [self.alternative(tag, known, depth) for tag in tags]
        self.keep_one(alternatives)
        choice: Data = {"type": "choice_1", "name": name, "alternatives": alternatives} | self.described()
        if not self.chance(40):
            groups.append([choice])
            return
        following = {"field": self.one(free), "name": self.name(names)}
        groups.append([choice | {"optional": True}, following])

    def tags(self, most: int) -> tuple[list[str], list[str]]:
        """Return the tags of a choice, letters or numbers, and others that it does not have."""
        letters, numbers = [f"Byte1('{tag}')" for tag in TAGS], [f"Int8({tag})" for tag in (0, 1, 10, 39, 92, 128, 255)]
        known = numbers if self.chance(25) else letters
        tags = self.draw(st.lists(st.sampled_from(known), min_size=1, max_size=most, unique=True))
        return tags, [tag for tag in (*letters, *numbers) if _byte(tag) not in map(_byte, tags)]

    def alternative(self, tag: str, known: set[str], depth: int) -> Data:
        alternative: Data = {"field": tag, "name": self.name(known)} | self.rule(20) | self.described()
        alternative |= self.server()
        what = self.up_to(0, 4)
        if what == 0:
            return alternative
        if what == 1 and self.parts:
            return alternative | {"then": self.one(self.parts)}
        return alternative | {"then": self.content(depth)}

    def content(self, depth: int) -> list[Data]:
        """Return the fields of a branch, of which one is exposed."""
        names = set[str]()
        groups: list[Group] = []
        self.one([self.bytes_, self.number, self.text, self.reference])(groups, names, depth)
        groups = groups or [[self.field(names)]]
        if self.chance(20):
            groups.insert(self.up_to(0, len(groups)), [self.fixed(names)])
        return [element for group in groups for element in group]

    def valued(self, names: set[str], depth: int) -> Data:
        """Return a choice whose branch shows in the Python value."""
        tags, _ = self.tags(4)
        pythons = self.draw(st.permutations(["bytes", "None", "CONSTANT", "Class"]))
        same = self.one(SIZES)["notation"] if self.chance(70) else None
        known = set[str]()
        alternatives = []
        for tag, python in zip(tags, pythons, strict=False):
            named: Data = {"field": tag, "name": self.name(known)} | self.rule(15)
            named["python"] = self.python(python)
            then: Data = {"then": self.sized(same)} if python in ("bytes", "Class") else {}
            named |= {"form": self.one(["text", "binary", "none"])} if python == "Class" and self.chance(30) else {}
            if python == "Class" and self.chance(25):
                inside = {each["name"] for each in then["then"]} | {*dir(bytes), "cls", "data"}
                extra = self.marked(inside) if self.chance(70) else {"field": "String", "name": self.name(inside)}
                extra.pop("formerly", None)
                then["then"].insert(0, extra)
            alternatives.append(named | then)
        self.keep_one(alternatives)
        return {"type": "choice_1", "name": self.name(names, plain=True), "alternatives": alternatives}

    def rule(self, percent: int) -> Data:
        """Return the condition of an alternative in that percentage of cases."""
        option = {"option": self.one(self.switches())} if self.switches() and self.chance(percent // 4) else {}
        return (self.condition() if self.chance(percent) else {}) | option

    def keep_one(self, alternatives: list[Data]) -> None:
        """Let one alternative be there in every version, nearly always."""
        if not self.chance(2):
            always = self.one(alternatives)
            for word in ("since", "until", "when", "option"):
                always.pop(word, None)


def _byte(tag: str) -> int:
    """Return the byte that a tag is."""
    return ord(tag[7]) if tag.startswith("Byte1") else int(tag[5:-1])


def _may_be_absent(element: Data) -> bool:
    if "field" not in element:
        is_open = isinstance(element.get("count"), str) or "while" in element or bool(element.get("optional"))
        return is_open or bool({"when", "since", "until"} & set(element))
    return bool({"when", "since", "until", "length"} & set(element))


def _flags(groups: list[Group]) -> dict[str, list[int]]:
    """Return the bits of the fields so far, by name."""
    fields = [each for group in groups for each in group if "bits" in each]
    return {each["name"]: list(each["bits"]) for each in fields}
