"""The rules for names and references that a JSON Schema cannot express."""

import keyword
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from tools.language.bounds import BOUND_RULES
from tools.language.condition_rules import CONDITION_RULES, named_versions
from tools.language.elements import Choice, Repeat, Structure
from tools.language.errors import SpecError
from tools.language.fields import Field
from tools.language.framing_rules import FRAMING_RULES
from tools.language.layout_rules import LAYOUT_RULES
from tools.language.model import Message, Part, Spec
from tools.language.names import RESERVED_CLASSES, RESERVED_FIELDS
from tools.language.near import meant
from tools.language.nesting_rules import NESTING_RULES
from tools.language.option_rules import OPTION_RULES, USE_RULES, unused
from tools.language.public_names import PUBLIC_MESSAGE_RULES, PUBLIC_NAME_RULES
from tools.language.row_rules import ROW_RULES
from tools.language.source import Source
from tools.language.wire_names import WIRE_NAME_RULES, renamed

__all__ = ["check", "check_together", "class_names"]

Raise = Callable[[int, str, str], Exception]


def check(spec: Spec, source: Source) -> None:
    """Raise SpecError for each rule that the specification breaks, with the line at fault."""
    for rules in (
        (_parts_exist, *PUBLIC_MESSAGE_RULES, *WIRE_NAME_RULES),  # what was renamed is not blamed on what names it
        NAME_RULES,
        *((rule,) for rule in NESTING_RULES),
        (*LAYOUT_RULES, *ROW_RULES),
        FRAMING_RULES,
        BOUND_RULES,
        PUBLIC_NAME_RULES,
        USE_RULES,
    ):
        problems = [problem for rule in rules if (problem := _problem(rule, spec, source))]
        if problems:
            raise SpecError("\n".join(problems))


def check_together(specs: Iterable[Spec]) -> None:
    """Raise SpecError if specifications are not those of a whole protocol.

    Two may not define the same class name, since the package exports the classes of all. Something depends on each
    parameter, here or in an envelope. Versions have no gap: a server that speaks one speaks all before it.
    """
    seen: dict[str, str] = {}
    together = list(specs)
    for spec in together:
        for before, after in pairwise(spec.versions):
            if after.version > before.version + 1:
                problem = f"version {after.version} follows {before.version}: there is a gap between them"
                remedy = f"Call it {before.version + 1}, or add what is missing."
                raise SpecError(f"{spec.file}:{after.line}: {problem}. {remedy}")
        if parameter := unused(spec, together):
            problem = f"nothing depends on the parameter {parameter.name!r}"
            remedy = f"Write when: {parameter.name} at what is present only then, or remove it."
            raise SpecError(f"{spec.file}:{parameter.line}: {problem}. {remedy}")
        for line, name in class_names(spec):
            if seen.setdefault(name, spec.file) != spec.file:
                problem = f"a class would be called {name} here and in {seen[name]}"
                raise SpecError(f"{spec.file}:{line}: {problem}. Choose another name for one of them.")


def _problem(rule: Callable[[Spec, Raise], None], spec: Spec, source: Source) -> str:
    try:
        rule(spec, source.error)
    except SpecError as error:
        return str(error)
    return ""


def _names(spec: Spec, error: Raise) -> None:
    for structure in spec.structures():
        seen: set[str] = set()
        for line, name in _field_names(structure):
            if keyword.iskeyword(name) or name in RESERVED_FIELDS:
                problem = f"the name {name!r} is a word of Python or of construct"
                raise error(line, problem, "Choose another name.")
            if name in seen:
                remedy = "Choose another name, or let the fields that have it in different versions follow each other."
                raise error(line, f"the name {name!r} is used twice in one structure", remedy)
            seen.add(name)


def _field_names(structure: Structure) -> Iterator[tuple[int, str]]:
    for element in structure.elements:
        yield element.line, element.name
        if isinstance(element, Choice) and not element.valued:
            yield element.line, element.kind_name
        if isinstance(element, Field):
            yield from ((element.line, name) for name in element.formerly)


def _distinct_messages(spec: Spec, error: Raise) -> None:
    tags: dict[bytes, str] = {}
    for message in spec.messages if not spec.framed else ():
        if message.tag in tags:
            problem = f"message {message.name} has the tag {message.tag!r} of {tags[message.tag]}"
            raise error(message.line, problem, "Give each message a tag of its own.")
        tags[message.tag] = message.name


def _distinct_classes(spec: Spec, error: Raise) -> None:
    seen: set[str] = set()
    types = {name for kind in spec.types for name in (kind.notation, kind.construct)}
    for line, name in class_names(spec):
        if name in RESERVED_CLASSES | types:
            problem = f"the class {name} would hide a name that the package or generated code uses"
            raise error(line, problem, "Choose another name.")
        if name in seen:
            raise error(line, f"two classes would be called {name}", "Choose another name for one of them.")
        seen.add(name)
    alike: dict[str, str] = {}
    for named in spec.named:
        name = named.class_name
        if alike.setdefault(name.lower(), name) != name:
            problem = f"{name} and {alike[name.lower()]} differ only in case"
            raise error(named.line, problem, "Choose another name for one of them.")


def class_names(spec: Spec) -> Iterator[tuple[int, str]]:
    """Yield the names that classes and constants of values have in Python, each with its line."""
    yield from ((named.line, named.class_name) for named in spec.named)
    for structure in spec.structures():
        for element in structure.elements:
            if isinstance(element, Repeat) and element.class_name:
                yield element.line, element.class_name
            elif isinstance(element, Choice):
                yield from ((a.line, name) for a in element.alternatives for name in a.defines)


def _versions(spec: Spec, error: Raise) -> None:
    known = [version.version for version in spec.versions]
    for before, after in pairwise(spec.versions):
        if after.version <= before.version or after.server < before.server:
            problem = (
                f"version {after.version} of PostgreSQL {after.server} follows {before.version} of {before.server}"
            )
            raise error(after.line, f"{problem}: they are not in order", "List each version once, the oldest first.")
    for each in spec.versions if spec.is_postgresql else ():
        if not each.server:
            remedy = "Write server: the first PostgreSQL (major version) that supports it."
            raise error(each.line, "a version has no server", remedy)
    for line, word, version in named_versions(spec):
        if version not in known:
            remedy = f"Write one of {known}, or add it to versions."
            raise error(line, f"{word}: {version} is not a protocol version", remedy)


def _parts_exist(spec: Spec, error: Raise) -> None:
    known = [part.name for part in spec.parts]
    for structure in (*spec.messages, *spec.parts):
        for name in structure.references():
            if name not in known:
                line = structure.line if isinstance(structure, Message | Part) else 1
                problem = f"there is no part {name}{meant(name, known)}"
                raise error(line, problem, f"Write one of {known}, or add it to parts.")


def _parts_end(spec: Spec, error: Raise) -> None:
    uses = {part.name: set(part.references()) for part in spec.parts}
    for part in spec.parts:
        reached: set[str] = set()
        todo = [part.name]
        while todo:
            fresh = uses[todo.pop()] - reached
            reached |= fresh
            todo += fresh
        if part.name in reached:
            raise error(part.line, f"the part {part.name} contains itself", "Break the circle.")


def _deviations(spec: Spec, error: Raise) -> None:
    known = {named.name for named in spec.named}
    for deviation in (d for document in spec.documents for d in document.deviations):
        if deviation.message and deviation.message not in known and deviation.kind != "extra message":
            now = renamed(spec).get(deviation.message.replace(" ", ""))
            hint = f": did you mean {now!r}?" if now else meant(deviation.message, known)
            problem = f"the deviation is about {deviation.message!r}, which is neither a message nor a part{hint}"
            raise error(deviation.line, problem, "Name it as messages or parts do.")
        if deviation.first and deviation.last and deviation.first > deviation.last:
            problem = f"the deviation is from {deviation.first} to {deviation.last}"
            raise error(deviation.line, problem, "Write the older version first.")


NAME_RULES = (
    _names,
    _distinct_messages,
    _distinct_classes,
    _versions,
    *CONDITION_RULES,
    *OPTION_RULES,
    _parts_end,
    _deviations,
)
