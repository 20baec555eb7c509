"""The rules that a JSON Schema cannot say; each is a function that raises SpecError at the line at fault."""

import keyword
from collections.abc import Callable, Iterable, Iterator

from construct import Container

from tools.language.model import Choice, Element, Field, Message, Repeat, Spec, Structure
from tools.language.source import Source

__all__ = ["check"]

RESERVED = frozenset(name for name in dir(Container) if not name.startswith("_"))
"""Names that a construct Container already uses: a field called items would hide its method."""

ERROR = Callable[[int, str, str], Exception]


def check(spec: Spec, source: Source) -> None:
    """Raise SpecError for the first rule that the specification breaks."""
    for rule in (
        _names,
        _distinct_messages,
        _versions,
        _conditions,
        _states,
        _sizes,
        _choices,
        _repeats,
        _parts,
        _annotations,
        _open_end,
    ):
        rule(spec, source.error)


def _structures(spec: Spec) -> Iterator[Structure]:
    for top in (*spec.messages, *spec.parts):
        yield from top.inside()


def _elements(spec: Spec, kind: type) -> Iterator[Element]:
    return (
        element
        for structure in _structures(spec)
        for element in structure.elements
        if isinstance(element, kind)
    )


def _all_fields(spec: Spec) -> Iterable[Field]:
    return _elements(spec, Field)  # type: ignore[return-value]


def _names(spec: Spec, error: ERROR) -> None:
    for structure in _structures(spec):
        seen: set[str] = set()
        for element in structure.elements:
            names = [element.name]
            if isinstance(element, Choice) and not element.valued:
                names.append(element.kind_name)
            for name in names:
                if keyword.iskeyword(name) or name in RESERVED:
                    raise error(
                        element.line,
                        f"the name {name!r} is a word of Python or of construct",
                        "Choose another name.",
                    )
                if name in seen:
                    raise error(
                        element.line,
                        f"the name {name!r} is used twice in one structure",
                        "Choose another name.",
                    )
                seen.add(name)


def _distinct_messages(spec: Spec, error: ERROR) -> None:
    tags: dict[bytes, str] = {}
    names: set[str] = set()
    for message in spec.messages:
        if message.tag in tags:
            raise error(
                message.line,
                f"message {message.name} has the tag {message.tag!r} of {tags[message.tag]}",
                "Give each message a tag of its own.",
            )
        tags[message.tag] = message.name
    for line, name in _class_names(spec):
        if name in names:
            raise error(line, f"two classes would be called {name}", "Choose another name for one of them.")
        names.add(name)


def _class_names(spec: Spec) -> Iterator[tuple[int, str]]:
    for message in spec.messages:
        yield message.line, message.class_name
    for part in spec.parts:
        yield part.line, part.name
    for structure in _structures(spec):
        for element in structure.elements:
            if isinstance(element, Repeat) and element.class_name:
                yield element.line, element.class_name


def _versions(spec: Spec, error: ERROR) -> None:
    known = [version.version for version in spec.versions]
    for row in (*spec.messages, *_all_fields(spec)):
        if row.since is not None and row.since not in known:
            raise error(
                row.line,
                f"since: {row.since} is no protocol version",
                f"Write one of {known}, or add it to versions.",
            )
    if known != sorted(set(known)):
        raise error(1, f"the versions {known} are not in order", "List each version once, the oldest first.")


def _conditions(spec: Spec, error: ERROR) -> None:
    parameters = {parameter.name: parameter.type for parameter in spec.parameters}
    for field in _all_fields(spec):
        if field.when is not None and parameters.get(field.when) != "bool":
            flags = [name for name, kind in parameters.items() if kind == "bool"]
            raise error(
                field.line,
                f"when: {field.when} is no bool parameter",
                f"Write one of {flags}, or add it to parameters.",
            )
        if field.conditional and field.constant is not None:
            raise error(
                field.line,
                f"the constant {field.name} is conditional",
                "Only fields that an object holds may be absent.",
            )
        if field.since is not None and "proto_version" not in parameters:
            raise error(
                field.line,
                "since needs the parameter proto_version",
                "Add proto_version: {type: int} to parameters.",
            )


def _states(spec: Spec, error: ERROR) -> None:
    known = [state.name for state in spec.states]
    parameters = [parameter.name for parameter in spec.parameters]
    for message in spec.messages:
        for name in (*message.within, *([message.enters] if message.enters else [])):
            if name not in known:
                raise error(
                    message.line, f"{name!r} is no state", f"Write one of {known}, or add it to states."
                )
    for state in spec.states:
        if state.sets is not None and state.sets not in parameters:
            raise error(
                1,
                f"the state {state.name} sets {state.sets!r}, which is no parameter",
                f"Write one of {parameters}.",
            )


def _sizes(spec: Spec, error: ERROR) -> None:
    for structure in _structures(spec):
        earlier: dict[str, Field] = {}
        used: set[str] = set()
        for element in structure.elements:
            size = element.count if isinstance(element, Repeat) else getattr(element, "length", None)
            if size is not None:
                _check_size(element, size, earlier, used, error)
                used.add(size)
            if isinstance(element, Field):
                earlier[element.name] = element


def _check_size(element: Element, size: str, earlier: dict[str, Field], used: set[str], error: ERROR) -> None:
    field = earlier.get(size)
    if field is None:
        raise error(
            element.line,
            f"{element.name} is measured by {size!r}, which is no earlier field",
            "Name an earlier integer beside it.",
        )
    if (
        field.type is None
        or field.type.python != "int"
        or field.type.signed
        or field.constant is not None
        or field.conditional
    ):
        raise error(
            element.line,
            f"{element.name} is measured by {size!r}, which is not a plain unsigned integer",
            "Name one that is.",
        )
    if size in used:
        raise error(element.line, f"{size!r} measures two fields", "Give each count and length one field.")
    if isinstance(element, Field) and (element.type is None or element.type.notation != "Byten"):
        raise error(
            element.line, f"{element.name} is no Byten, so it has no length", "Remove length, or write Byten."
        )
    if isinstance(element, Field) and element.conditional:
        raise error(element.line, f"{element.name} has a length and a condition", "Put both under a choice.")


def _choices(spec: Spec, error: ERROR) -> None:
    for structure in _structures(spec):
        elements = structure.elements
        for index, element in enumerate(elements):
            if isinstance(element, Choice):
                following = elements[index + 1] if index + 1 < len(elements) else None
                _check_choice(element, following, error)


def _check_choice(choice: Choice, following: Element | None, error: ERROR) -> None:
    tags = [alternative.tag for alternative in choice.alternatives]
    if len(set(tags)) < len(tags):
        raise error(
            choice.line, f"two alternatives of {choice.name} have the same tag", "Give each a tag of its own."
        )
    names = [alternative.name for alternative in choice.alternatives]
    if len(set(names)) < len(names):
        raise error(
            choice.line,
            f"two alternatives of {choice.name} have the same name",
            "Give each a name of its own.",
        )
    if any(a.python for a in choice.alternatives) and not choice.valued:
        raise error(
            choice.line,
            f"only some alternatives of {choice.name} say python",
            "Say it of all of them, or of none.",
        )
    if choice.valued and len({a.python for a in choice.alternatives}) < len(tags):
        raise error(
            choice.line,
            f"two alternatives of {choice.name} have the same python value",
            "Give each a value of its own.",
        )
    for alternative in choice.alternatives:
        _check_value(alternative, error)
    if choice.optional:
        _check_optional(choice, tags, following, error)


def _check_value(alternative: object, error: ERROR) -> None:
    python, then = getattr(alternative, "python", None), getattr(alternative, "then", None)
    constant = python is not None and (python == "None" or python.isupper())
    if python is not None and constant != (then is None):
        line, name = getattr(alternative, "line", 1), getattr(alternative, "name", "")
        remedy = "Without then write None or a NAME; with then write bytes or a ClassName."
        raise error(line, f"the alternative {name} has the python value {python}", remedy)


def _check_optional(choice: Choice, tags: list[bytes], following: Element | None, error: ERROR) -> None:
    constant = following.constant if isinstance(following, Field) else None
    if choice.valued or not isinstance(constant, bytes):
        raise error(
            choice.line,
            f"the optional choice {choice.name} is not followed by a tag",
            "Follow it by a field such as Byte1('N').",
        )
    if constant in tags:
        raise error(
            choice.line,
            f"the optional choice {choice.name} is followed by one of its own tags",
            "Use another tag after it.",
        )


def _repeats(spec: Spec, error: ERROR) -> None:
    for element in _elements(spec, Repeat):
        assert isinstance(element, Repeat)
        if element.item.single is None and element.class_name is None:
            raise error(
                element.line,
                f"an item of {element.name} has several fields and no class",
                "Add class: SomeName.",
            )
        if all(isinstance(e, Field) and e.conditional for e in element.item.elements):
            raise error(
                element.line,
                f"an item of {element.name} can be empty",
                "Give it a field that is always there.",
            )


def _parts(spec: Spec, error: ERROR) -> None:
    uses = {part.name: set(part.references()) for part in spec.parts}
    for part in spec.parts:
        seen: set[str] = set()
        todo = [part.name]
        while todo:
            for name in uses.get(todo.pop(), ()):
                if name == part.name:
                    raise error(part.line, f"the part {part.name} contains itself", "Break the circle.")
                if name not in seen:
                    seen.add(name)
                    todo.append(name)
    for message in spec.messages:
        _check_references(message, uses, error)
    for part in spec.parts:
        _check_references(part, uses, error)


def _check_references(structure: Structure, uses: dict[str, set[str]], error: ERROR) -> None:
    for name in structure.references():
        if name not in uses:
            line = structure.line if isinstance(structure, Message) else 1
            raise error(line, f"there is no part {name}", f"Write one of {sorted(uses)}, or add it to parts.")


def _annotations(spec: Spec, error: ERROR) -> None:
    for field in _all_fields(spec):
        number = field.type is not None and field.type.python == "int" and field.constant is None
        if (field.values or field.bits) and not number:
            raise error(
                field.line, f"{field.name} is no plain integer, so it has no values or bits", "Remove them."
            )
        if field.values and field.bits:
            raise error(field.line, f"{field.name} has values and bits", "Keep one of them.")
        limit = 1 << 8 * ((field.type.bytes or 0) if field.type else 0)
        _check_values(field, limit, error)
        if isinstance(field.constant, int) and field.constant >= limit:
            raise error(
                field.line,
                f"the constant {field.constant} does not fit {field.notation}",
                "Write a smaller one.",
            )


def _check_values(field: Field, limit: int, error: ERROR) -> None:
    values = list(field.values or ())
    letters = [
        v
        for v in values
        if isinstance(v, str) and len(v) == 1 and v.isascii() and field.type and field.type.bytes == 1
    ]
    numbers = [v for v in values if isinstance(v, int) and not isinstance(v, bool) and 0 <= v < limit]
    if values and len(values) not in (len(letters), len(numbers)):
        raise error(
            field.line,
            f"the values {values} of {field.name} are not all letters or all numbers that fit",
            "Write one kind.",
        )
    for bit in field.bits or ():
        if not isinstance(bit, int) or bit <= 0 or bit & (bit - 1) or bit >= limit:
            raise error(field.line, f"{bit!r} is no bit of {field.name}", "Write 1, 2, 4, 8 and so on.")


def _open_end(spec: Spec, error: ERROR) -> None:
    for structure in _structures(spec):
        last = structure.elements[-1]
        for element in structure.elements:
            open_ended = (
                isinstance(element, Field)
                and element.type
                and element.type.notation == "Byten"
                and not element.length
            )
            if open_ended and not (isinstance(structure, Message) and element is last):
                raise error(
                    element.line,
                    f"{element.name} has no length",
                    "Name the earlier field that holds it: length: NAME.",
                )
