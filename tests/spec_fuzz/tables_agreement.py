"""What the tables around the messages and the reference page say, held against the words of the specification.

They are read from the YAML itself, not from the model that the generator works from.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.spec_fuzz.package import Package
from tools.generate.reference.reference_text import markdown

__all__ = ["PAGE_WORDS", "TABLE_WORDS", "check_page", "check_tables"]

TABLE_WORDS: Final = frozenset(
    """message.in message.enters message.returns message.since message.unasked message.option
    message.effect field.role state.name state.sets option.name option.type option.values option.sets
    option.since option.server value.name value.sets value.since value.server alternative.form""".split()  # noqa: SIM905 - one word a place is easier to read
)
"""Words that check_tables holds against the generated tables."""
PAGE_WORDS: Final = frozenset(
    """message.description part.description field.description repeat.description choice.description
    alternative.description state.description option.description value.description message.server
    part.server field.server repeat.server alternative.server message.sender""".split()  # noqa: SIM905 - one word a place is easier to read
)
"""Words that check_page finds on the reference page."""

_DEEPEST: Final = 5


def check_tables(package: Package, data: Mapping[str, Any]) -> None:
    """Check versions, options, states, effects, roles and formats."""
    forms = {a["name"]: _form(a) for a in _alternatives(data) if "python" in a and _form(a) != "none"}
    assert getattr(package.messages, "FORMS", {}) == forms
    if package.protocol is None:
        return
    tables, classes = package.protocol, vars(package.messages)
    since = {m["name"].replace(" ", ""): m["since"] for m in data["messages"] if "since" in m and "unasked" not in m}
    asked = {m["name"].replace(" ", ""): m["option"] for m in data["messages"] if "option" in m and "unasked" not in m}
    assert {cls.__name__: version for cls, version in tables.SINCE.items()} == since
    assert {cls.__name__: option for cls, option in tables.ASKED_BY.items()} == asked
    for message in data["messages"]:
        if message.get("group") in ("begin", "end"):
            bound = tables.BOUNDS[classes[message["name"].replace(" ", "")]]
            assert bound.effect == message.get("effect", {"begin": "begin", "end": "commit"}[message["group"]])
            for field in (field for block in message["blocks"] for field in block["fields"]):
                assert "role" not in field or field["name"] in bound.roles[field["role"]]
    _check_options(tables, data)
    _check_walks(tables, classes, data)


def _form(alternative: Mapping[str, Any]) -> str:
    return str(alternative.get("form", "text" if alternative.get("python") == "bytes" else "none"))


def _check_options(tables: Any, data: Mapping[str, Any]) -> None:
    servers = {row["version"]: row["server"] for row in data["versions"]}
    oldest = min(servers)
    for option in data["options"]:
        known = tables.OPTIONS[option["name"]]
        assert known.server == option["server"]
        rows = option.get("values") or ([{}, option] if option["type"] == "switch" else [])
        names = [row["name"] for row in option["values"]] if "values" in option else [False, True][: len(rows)]
        assert list(known.values) == names
        for value, row in zip(known.values.values(), rows, strict=True):
            assert (value.since, set(value.sets)) == (row.get("since", oldest), set(_list(row.get("sets", ()))))


def _check_walks(tables: Any, classes: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """Check every walk of a few messages over the states with a stack of them, as the words say."""
    sets = {state["name"]: _list(state.get("sets", ())) for state in data.get("states", ())}
    if not sets:
        return
    nested = {name for m in data["messages"] if m.get("returns") for name in m["in"]}
    seen: set[tuple[str, ...]] = set()
    todo: list[tuple[tuple[str, ...], int]] = [((next(iter(sets)),), 0)]
    while todo:
        stack, depth = todo.pop(0)
        if stack in seen or depth > _DEEPEST:
            continue
        seen.add(stack)
        place = "/".join(stack)
        assert tables.STATES[place] == {name for state in stack for name in sets[state]}
        for message in data["messages"]:
            after = tables.TRANSITIONS[classes[message["name"].replace(" ", "")]].get(place)
            following = _following(message, stack, nested)
            assert after == (None if following is None else "/".join(following)), (message["name"], stack)
            todo += [(following, depth + 1)] if following else []


def _following(message: Mapping[str, Any], stack: tuple[str, ...], nested: set[str]) -> tuple[str, ...] | None:
    if stack[-1] not in message.get("in", stack):
        return None
    if message.get("returns"):
        return stack[:-1]
    entered = message.get("enters", stack[-1])
    return stack if entered == stack[-1] else (*stack, entered) if entered in nested else (entered,)


def check_page(package: Package, data: Mapping[str, Any]) -> None:
    """Check that the reference page says what things are, and since when."""
    page = package.reference_page
    for holder in _holders(data):
        text = holder.get("description")
        assert text is None or markdown(text) in page, text
        is_whole = "blocks" in holder and "type" not in holder
        shown = is_whole or ("since" not in holder and not {"field", "blocks"}.isdisjoint(holder))
        assert not shown or "server" not in holder or f"PostgreSQL {holder['server']}" in page, holder
        assert "sender" not in holder or f"the {holder['sender']}" in page


def _holders(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield all that has a description: messages, parts, states, options, and what stands in layouts."""
    yield from data.get("states", ())
    yield from data.get("options", ())
    for named in (*data["messages"], *data.get("parts", ())):
        yield named
        yield from _inside(named["blocks"])


def _inside(blocks: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for block in blocks:
        yield from block.get("fields", ())
        if "alternatives" in block:
            yield block
            for alternative in block["alternatives"]:
                yield alternative
                then = alternative.get("then", ())
                yield from then if isinstance(then, list) else ()
        elif "blocks" in block:
            yield block
            yield from _inside(block["blocks"])


def _alternatives(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for holder in _holders(data):
        yield from holder.get("alternatives", ())


def _list(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
