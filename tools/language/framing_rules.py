"""The rules for messages with a length: those of a connection, which follow each other on a socket."""

from collections.abc import Callable, Iterator

from tools.language.elements import Choice, Element, Repeat, Structure
from tools.language.fields import Field
from tools.language.model import Message, Option, Parameter, Spec, Version

__all__ = ["FRAMING_RULES"]

Raise = Callable[[int, str, str], Exception]


def _lengths(spec: Spec, error: Raise) -> None:
    """A message begins with its length, or has it after its tag; all have the same form."""
    first = next((message.length for message in spec.messages if message.length), None)
    for message in spec.messages if first else ():
        if message.length is None and len(message.elements) > 1:
            remedy = "Write measures: rest at the field after the tag, or at the first one."
            raise error(message.line, f"{message.name} has no length, but others have one", remedy)
        if message.length and message.length.type != first.type:  # type: ignore[union-attr]
            raise error(message.line, f"the length of {message.name} has another type", "Use one type for all.")
        if not message.within:
            raise error(message.line, f"{message.name} names no states in which it is permitted", "Write in: [...].")
    for message in spec.messages:
        if message.ignored and (not first or message.sender == "server"):
            problem = f"{message.name} is ignored in a state, but no client sends it on a connection"
            raise error(message.line, problem, "Remove ignored.")
    for state in spec.states if not first else ():
        if state.plain_copy:
            problem = f"the state {state.name} is one of a plain COPY, but no message has a length"
            raise error(state.line, problem, "Remove plain_copy.")
    unknown: list[Version | Parameter | Option] = [*spec.versions, *spec.parameters, *spec.options]
    for row in unknown if first else ():
        problem = "messages with a length depend on versions, parameters or options"
        remedy = "Remove them: a state, or a constant after the length, distinguishes messages of a connection."
        raise error(row.line, problem, remedy)


def _length_fields(spec: Spec, error: Raise) -> None:
    lengths = {id(message.length) for message in spec.messages}
    for field in spec.fields():
        if not field.frames:
            continue
        plain = field.type is not None and field.type.python == "int" and not field.type.signed
        special = field.constant is not None or field.conditional or field.values or field.bits
        if id(field) not in lengths or not plain or special:
            problem = f"{field.name} cannot hold the length of a message"
            remedy = "Write an unsigned integer as the first field of a message, or the first one after its tag."
            raise error(field.line, problem, remedy)


def _told_apart(spec: Spec, error: Raise) -> None:
    """A reader knows the state and the sender: no two messages that it may then receive begin alike."""
    taken: dict[tuple[str, str], list[Message]] = {}
    for message in spec.messages if spec.framed else ():
        for sender, state in _places(message):
            others = taken.setdefault((sender, state), [])
            if alike := next((other for other in others if _begin_alike(message, other)), None):
                both = f"{message.name} and {alike.name} begin alike"
                problem = f"{both} and are both permitted in the state {state!r} of a {sender}"
                remedy = "Give one of them another tag, constant after its length, or state."
                raise error(message.line, problem, remedy)
            others.append(message)


def _places(message: Message) -> Iterator[tuple[str, str]]:
    for sender in (message.sender,) if message.sender else ("server", "client"):
        ignored = message.ignored if sender == "client" else ()
        yield from ((sender, state) for state in dict.fromkeys((*message.within, *ignored)))


def _begin_alike(one: Message, other: Message) -> bool:
    """Return whether a reader could confuse them; a length may begin with a byte that is another one's tag."""
    if one.tag != other.tag:
        return not one.tag or not other.tag
    return one.code_bytes.startswith(other.code_bytes) or other.code_bytes.startswith(one.code_bytes)


def _only_there(spec: Spec, error: Raise) -> None:
    for structure in spec.structures() if not spec.framed else ():
        for element in structure.elements:
            if (isinstance(element, Repeat) and element.terminated) or getattr(element, "absent", None):
                problem = f"{element.name} needs messages with a length"
                raise error(element.line, problem, "Write a count, and a length that is never -1.")


def _absent(spec: Spec, error: Raise) -> None:
    for field in spec.fields():
        if field.absent is not None and field.length is None:
            raise error(field.line, f"{field.name} has no length that could mark it as absent", "Write length.")
    for structure in spec.structures():
        for element in structure.elements:
            for alternative in element.alternatives if isinstance(element, Choice) else ():
                if alternative.then is not None and _can_be_none(alternative.then, spec):
                    problem = f"what follows the tag of the alternative {alternative.name} may be absent"
                    raise error(alternative.line, problem, "Write an alternative without content instead of absent.")


def _can_be_none(then: Structure | str, spec: Spec) -> bool:
    """Return whether a structure consists of a single field that may be absent."""
    single = (spec.part(then) if isinstance(then, str) else then).single
    if not isinstance(single, Field):
        return False
    return _can_be_none(single.part, spec) if single.part else single.absent is not None


def _terminated(spec: Spec, error: Raise) -> None:
    """A zero byte follows the last item, so no item may begin with one."""
    for structure in spec.structures():
        for element in structure.elements:
            if isinstance(element, Repeat) and element.terminated and not _begins_above_zero(element.item, spec):
                problem = f"an item of {element.name} can begin with the byte that ends them"
                raise error(element.line, problem, "Begin it with a String or with one of some letters.")


def _begins_above_zero(item: Structure, spec: Spec) -> bool:
    first: Element = item.elements[0]
    if isinstance(first, Field) and first.part:
        return _begins_above_zero(spec.part(first.part), spec)
    return isinstance(first, Field) and (first.is_text or first.is_letter) and not first.conditional


FRAMING_RULES = (_lengths, _length_fields, _told_apart, _only_there, _absent, _terminated)
