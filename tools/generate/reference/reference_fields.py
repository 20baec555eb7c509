"""The table of a structure's fields: offset, type, name, condition, values, meaning."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tools.generate.reference.reference_text import availability, code, in_python, link, markdown, notation, table
from tools.generate.words import in_words
from tools.language import Alternative, Choice, Field, Repeat, Spec, conditions
from tools.language.elements import Element, Structure

__all__ = ["fields_table", "sizes"]

HEAD = ("Offset", "Type", "Name", "Condition", "Values", "Meaning")


def fields_table(spec: Spec, structure: Structure) -> str:
    """Return the table of a message or part; nested fields have the names of the enclosing ones as prefix."""
    return table(HEAD, _rows(spec, structure, "", 0))


def sizes(spec: Spec, structure: Structure) -> list[int]:
    """Return the possible sizes of a structure in bytes; none if they depend on the bytes."""
    return _offsets(spec, structure.elements, None) or []


def _rows(spec: Spec, structure: Structure, prefix: str, start: int | None) -> Iterator[Sequence[str]]:
    for index, element in enumerate(structure.elements):
        offsets = None if start is None else _offsets(spec, structure.elements[:index], element)
        offset = " or ".join(map(str, offsets or ()))
        match element:
            case Field():
                for each in element.rows:
                    yield _field(spec, each, prefix, offset)
            case Repeat():
                yield from _repeat(spec, element, prefix, offset)
            case Choice():
                yield from _choice(spec, element, prefix, offset)


def _field(spec: Spec, field: Field, prefix: str, offset: str) -> Sequence[str]:
    kind = link(field.part) if field.part else code(notation(field))
    when = [in_words(field.term, code)] if field.conditional else []
    when += [*_server(spec, field)]
    when += [f"{code(field.length)} bytes"] if field.length else []
    when += [f"none where that is {field.absent}"] if field.absent is not None else []
    when += [_length(spec, field)] if field.frames else []
    named: Mapping[Any, str] = field.values or field.bits or {}
    rules = {key: f" ({in_words(term, code)})" for key, term in field.limits.items()}
    values = ", ".join(f"{code(str(key))} {markdown(meaning)}{rules.get(key, '')}" for key, meaning in named.items())
    former = f" Formerly {', '.join(map(code, field.formerly))}." if field.formerly else ""
    return offset, kind, code(prefix + field.name), ", ".join(when), values, markdown(field.description) + former


def _server(spec: Spec, element: Field | Repeat) -> Iterator[str]:
    """Yield the PostgreSQL version that introduced something, unless it follows from the protocol version."""
    known = [version.server for version in spec.versions if version.version == element.since]
    if element.server and element.server not in known:
        yield f"since PostgreSQL {element.server}"


def _length(spec: Spec, field: Field) -> str:
    message = next(message for message in spec.messages if message.length is field)
    always = "".join(f"always {size - len(message.tag)}: " for size in sizes(spec, message))
    return f"{always}bytes from here to the end"


def _repeat(spec: Spec, repeat: Repeat, prefix: str, offset: str) -> Iterator[Sequence[str]]:
    name = f"{prefix}{repeat.name}[]"
    ended = "while bytes remain" if repeat.to_end else "up to a zero byte"
    number = code(repeat.count) if repeat.count else repeat.fixed
    times = f"{number} times" if number else ended
    rule = f"{in_words(repeat.term, code)}: " if repeat.conditional else ""
    times = ", ".join([*_server(spec, repeat), f"{rule}{times}; each is {in_python(repeat.item)}"])
    yield offset, code(repeat.kind), code(name), times, "", markdown(repeat.description)
    if len(repeat.item.elements) == 1 and isinstance(only := repeat.item.elements[0], Field) and not only.variants:
        yield _field(spec, only, f"{name}.", "")
    else:
        yield from _rows(spec, repeat.item, f"{name}.", None)


def _choice(spec: Spec, choice: Choice, prefix: str, offset: str) -> Iterator[Sequence[str]]:
    name = prefix + choice.name
    many = "one of these, or none" if choice.optional else "one of these"
    yield offset, code(choice.kind), code(name), many, "", markdown(choice.description)
    for alternative in choice.alternatives:
        yield from _alternative(spec, alternative, f"{name}={alternative.name}")


def _format(alternative: Alternative) -> Iterator[str]:
    """Yield the meaning of a value's bytes, if it has a class of its own."""
    if alternative.python not in (None, "None", "bytes") and alternative.then is not None:
        words = {"text": "PostgreSQL's text", "binary": "PostgreSQL's binary format", "none": "neither text nor binary"}
        yield f"The bytes are {words[alternative.format]}."


def _alternative(spec: Spec, alternative: Alternative, name: str) -> Iterator[Sequence[str]]:
    known = alternative.server or alternative.since or alternative.until
    rules = [f"since {availability(spec, alternative)}"] if known else []
    since = ", ".join([*rules, *([in_words(alternative.when, code)] if alternative.when else [])])
    yield (
        "",
        code(alternative.notation),
        code(name),
        since,
        "",
        " ".join([markdown(alternative.description), *_format(alternative)]),
    )
    if isinstance(alternative.then, str):
        yield "", link(alternative.then), code(f"{name}.{alternative.then}"), "", "", "Follows the tag."
    elif alternative.then is not None:
        yield from _rows(spec, alternative.then, f"{name}.", None)


def _offsets(spec: Spec, before: Sequence[Element], element: Element | None) -> list[int] | None:
    """Return the possible offsets of an element, by which of the earlier elements are present; None if bytes decide."""
    fields = [each for e in before if isinstance(e, Field) for each in e.variants or (e,)]
    fixed = all(isinstance(e, Field) for e in before)
    if not fixed or any(field.size is None for field in fields):
        return None
    terms = list(dict.fromkeys(field.term for field in fields if field.conditional))
    target = element.term if element is not None else None
    if len(conditions.atoms([*terms, target])) > conditions.MOST:
        return None
    found = set()
    for given, values in conditions.cases([*terms, target], [v.version for v in spec.versions]):
        if conditions.holds(target, given, values):
            found.add(sum(field.size or 0 for field in fields if conditions.holds(field.term, given, values)))
    return sorted(found)
