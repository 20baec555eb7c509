"""The effects of messages that begin and end transactions, and the roles of their fields (xid, gid, LSN, time)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tools.language import conditions
from tools.language.conditions import VERSION
from tools.language.fields import Field
from tools.language.model import Message, Spec

__all__ = ["BOUND_RULES", "EFFECTS", "ROLES", "effect_of", "roles_of"]

Raise = Callable[[int, str, str], Exception]


class Effect(NamedTuple):
    """The possible effect of a message of the groups begin and end."""

    group: str
    needs: tuple[str, ...]
    """The roles that its fields must have."""


EFFECTS: Final[Mapping[str, Effect]] = {
    "begin": Effect("begin", ("xid",)),
    "begin_prepared": Effect("begin", ("xid", "gid", "lsn")),
    "begin_segment": Effect("begin", ("xid", "first")),
    "begin_inner": Effect("begin", ()),
    "commit": Effect("end", ("lsn", "time")),
    "prepare": Effect("end", ("xid", "gid", "lsn", "time")),
    "abort": Effect("end", ()),
    "end_segment": Effect("end", ()),
    "end_inner": Effect("end", ()),
    "commit_streamed": Effect("end", ("xid", "lsn", "time")),
    "abort_streamed": Effect("end", ("xid", "subxid")),
    "prepare_streamed": Effect("end", ("xid", "gid", "lsn", "time")),
    "commit_prepared": Effect("end", ("xid", "gid", "lsn", "time")),
    "rollback_prepared": Effect("end", ("xid", "gid", "lsn", "time")),
}
"""All effects on a transaction."""

ROLES: Final[Mapping[str, tuple[str, str]]] = {
    "xid": ("int", "Int32 (TransactionId)"),
    "subxid": ("int", "Int32 (TransactionId)"),
    "gid": ("str", "String"),
    "lsn": ("Lsn", "Int64 (XLogRecPtr)"),
    "end_lsn": ("Lsn", "Int64 (XLogRecPtr)"),
    "time": ("Timestamp", "Int64 (TimestampTz)"),
    "first": ("int", "Int8"),
}
"""A role of a field: its Python type, and its usual notation."""

_ENDED_BY: Final = {
    "begin": "commit",
    "begin_prepared": "prepare",
    "begin_segment": "end_segment",
    "begin_inner": "end_inner",
}
"""The possible effects of the end of a state, by the effect of the begin that entered it."""


def roles_of(message: Message) -> dict[str, list[Field]]:
    """Return the fields of a begin or an end by role: by ``role``, by name, or the only field of a type.

    Of several LSNs, the one that is not ``end_lsn`` is ``lsn``. Fields with conditions can share a role.
    """
    found: dict[str, list[Field]] = {}
    fields = [element for element in message.exposed if isinstance(element, Field)]
    for field in fields:
        if field.role or (field.name in ROLES and _fits(field, field.name)):
            found.setdefault(field.role or field.name, []).append(field)
    for role in ("xid", "lsn", "time"):
        taken = [field for each in found.values() for field in each]
        left = [field for field in fields if field not in taken and field.notation == ROLES[role][1]]
        if role not in found and len(left) == 1:
            found[role] = left
    return found


def _fits(field: Field, role: str) -> bool:
    return field.type is not None and field.type.python == ROLES[role][0] and field.constant is None


def effect_of(message: Message, spec: Spec) -> str | None:
    """Return the effect of a begin or an end: as written, or as implied by its states and fields; None for neither."""
    if message.effect or message.group not in ("begin", "end") or not spec.states:
        return message.effect
    return _effect_of_begin(message, spec) if message.group == "begin" else _effect_of_end(message, spec)


def _effect_of_begin(message: Message, spec: Spec) -> str:
    roles, outside = roles_of(message), spec.states[0].name
    if message.within and outside not in message.within:
        return "begin_inner"
    return "begin_segment" if "first" in roles else "begin_prepared" if "gid" in roles else "begin"


def _effect_of_end(message: Message, spec: Spec) -> str | None:
    roles, outside = roles_of(message), spec.states[0].name
    begins = {effect_of(begin, spec) for begin in _begins(spec) if begin.enters in message.within}
    if len(begins) == 1:
        return _ENDED_BY[begins.pop() or ""]
    if begins or message.within != (outside,):
        return None
    if "subxid" in roles:
        return "abort_streamed"
    return "commit_prepared" if "gid" in roles else "commit_streamed" if "xid" in roles else None


def _begins(spec: Spec) -> Iterator[Message]:
    return (message for message in spec.messages if message.group == "begin")


def _effects(spec: Spec, error: Raise) -> None:
    """The effect of each begin and end is known, and the transaction that it refers to."""
    for message in spec.messages if spec.states else ():
        _check_roles(message, error)
        if message.group not in ("begin", "end"):
            if message.effect:
                problem = f"{message.name} has the effect {message.effect}, but is neither a begin nor an end"
                raise error(message.line, problem, f"Write group: {EFFECTS[message.effect].group}.")
            continue
        _check_alone(message, spec, error)
        effect = effect_of(message, spec)
        possible = [name for name, each in EFFECTS.items() if each.group == message.group]
        if effect not in possible:
            problem = f"what {message.name} does to a transaction does not follow from its states and fields"
            if effect:
                problem = (
                    f"{message.name} has the effect {effect}, which is none of a message of the group {message.group}"
                )
            raise error(message.line, problem, f"Write effect: one of {possible}.")
        if effect == "abort":
            _check_whole(message, spec, error)
        for role in EFFECTS[effect].needs:
            _check_said(message, effect, role, spec, error)


def _check_alone(message: Message, spec: Spec, error: Raise) -> None:
    """Two ends of one state may commit and abort; the second one must say which it is."""
    if message.group != "end" or message.effect:
        return
    before = spec.messages[: spec.messages.index(message)]
    others = [each for each in spec.messages if each.group == "end" and (each.effect or each in before)]
    for other in others:
        if shared := [state for state in message.within if state in other.within]:
            possible = [name for name, each in EFFECTS.items() if each.group == "end"]
            problem = f"{message.name} ends something in the state {shared[0]!r}, and so does {other.name}"
            raise error(message.line, problem, f"Write what each of them does, effect: one of {possible}.")


def _check_whole(message: Message, spec: Spec, error: Raise) -> None:
    """An abort ends a single piece, which has just been sent."""
    for state in message.within:
        begins = [begin for begin in _begins(spec) if begin.enters == state]
        effects = {effect_of(begin, spec) for begin in begins}
        if not effects or not effects <= {"begin", "begin_prepared"}:
            problem = (
                f"{message.name} has the effect abort, and comes in the state {state!r}, which no begin of a whole "
            )
            remedy = "Let it come where a begin or begin_prepared has led; what came in segments has abort_streamed."
            raise error(message.line, f"{problem}transaction enters", remedy)


def _check_said(message: Message, effect: str, role: str, spec: Spec, error: Raise) -> None:
    """A required role has a field in every version, and with all parameters, with which the message is sent."""
    ways = [roles_of(message).get(role, [])]
    if role == "lsn" and (begins := [begin for begin in _begins(spec) if begin.enters in message.within]):
        # If an end lacks the field, the begins that it may end must have it.
        ways = [[*ways[0], *roles_of(begin).get(role, [])] for begin in begins]
    problem = f"no field of {message.name}, whose effect is {effect}, says the {role} of the transaction"
    remedy = f"Write role: {role} at a field {ROLES[role][1]}"
    for fields in ways:
        if not fields:
            inner = "Or write effect: begin_inner or end_inner of messages inside a transaction."
            raise error(message.line, problem, f"{remedy}. {inner}")
        if case := _unsaid(message, fields, spec):
            raise error(fields[-1].line, f"{problem} {case}", f"{remedy} that is there then.")


def _unsaid(message: Message, fields: Sequence[Field], spec: Spec) -> str | None:
    """Return a version and parameters with which a message is sent and none of some fields is present, or None."""
    terms = [field.term for field in fields]
    known = [version.version for version in spec.versions if version.version >= (message.needs or 0)]
    for given, found in conditions.cases(terms, known):
        if _comes(message, given, spec) and not any(conditions.holds(term, given, found) for term in terms):
            names = [name for name, on in given.items() if on and name != VERSION]
            return f"at protocol version {given.get(VERSION, 1)}{''.join(f' with {name}' for name in names)}"
    return None


def _comes(message: Message, given: Mapping[str, int], spec: Spec) -> bool:
    """Return whether a message can be sent with these parameters: some state, and some options, set them so."""
    by_states = {parameter.name for parameter in spec.state_parameters}
    of_state = {name: bool(on) for name, on in given.items() if name in by_states}
    for name, on in given.items():
        rows = [row for option in spec.options for row in (option, *option.values) if name in row.sets]
        oldest = min((row.since or 0 for row in rows), default=0)
        if on and name != VERSION and oldest > given.get(VERSION, 1):
            return False
    comes = [place for place in spec.places if place.name in spec.steps(message)]
    return any(all((name in place.sets) == on for name, on in of_state.items()) for place in comes)


def _check_roles(message: Message, error: Raise) -> None:
    top = {id(field) for field in message.exposed} if message.group in ("begin", "end") else set()
    for structure in message.inside():
        for field in structure.elements:
            if not isinstance(field, Field) or not field.role:
                continue
            if id(field) not in top:
                problem = f"{field.name} has a role, but is not a field of a begin or an end"
                raise error(field.line, problem, "Remove role.")
            if not _fits(field, field.role):
                problem = f"{field.name} cannot have the role {field.role}: it is no {ROLES[field.role][1]}"
                raise error(field.line, problem, "Write role at a field of that type.")
    for role, fields in roles_of(message).items() if top else ():
        if len(fields) > 1 and not all(field.conditional for field in fields):
            names = ", ".join(field.name for field in fields)
            problem = f"the fields {names} of {message.name} have the role {role} at once"
            raise error(fields[1].line, problem, "Keep one of them, or give each a condition.")


def _opened(spec: Spec, error: Raise) -> None:
    """Rows belong to a transaction: the states in which they are permitted are entered by a begin."""
    begins = list(_begins(spec))
    if not begins or not spec.states or spec.framed:
        return
    outside = _reached(spec, spec.states[0].name, lambda message: message.group == "begin")
    for message in spec.messages:
        if message.group == "change" and (lost := [state for state in spec.steps(message) if state in outside]):
            problem = f"{message.name} comes in the state {lost[0]!r}, which no begin of a transaction opens"
            remedy = f"Write group: begin at what enters {lost[0]!r}, and group: end at what leaves it."
            raise error(message.line, problem, remedy)


def _ways_back(spec: Spec, error: Raise) -> None:
    """A nested state does not lose the parameters of the enclosing one: each way into a state leads back."""
    if spec.framed or not spec.states:
        return
    first, sets = spec.states[0].name, {state.name: set(state.sets) for state in spec.states}
    for message in spec.messages:
        if message.enters is None:
            continue
        alike = {frozenset(sets[state]) for state in message.within}
        fixed = message.enters not in (first, *message.within, *spec.nested)
        if fixed and len(alike) > 1:
            problem = (
                f"{message.name} enters {message.enters!r} from states that set different parameters, "
                f"{', '.join(map(repr, message.within))}: none of them is known after it"
            )
            remedy = "Write returns: true at the message that ends it, or a message, and a state to enter, for each."
            raise error(message.line, problem, remedy)
        for state, after in spec.steps(message).items():
            inside = first not in (state, after)
            if inside and state not in _reached(spec, after, lambda _: False, stop=first):
                problem = f"{message.name} enters {after!r} from {state!r}, and no message leads back to {state!r}"
                remedy = f"Write a message that comes in {after!r} and enters {state!r}, or has returns: true."
                raise error(message.line, problem, remedy)


def _reached(spec: Spec, start: str, excluded: Callable[[Message], bool], stop: str | None = None) -> set[str]:
    """Return the states reachable from one, without some messages, and not through ``stop``."""
    found, todo = {start}, [start]
    while todo:
        state = todo.pop()
        for message in spec.messages:
            after = spec.steps(message).get(state) if not excluded(message) else None
            if after not in (None, stop, *found):
                found.add(after or "")
                todo.append(after or "")
    return found


BOUND_RULES = (_effects, _opened, _ways_back)
