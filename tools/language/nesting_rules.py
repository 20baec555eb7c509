"""The rules for states that return to the previous one: there is one, and readers can tell which."""

from collections.abc import Callable

from tools.language.model import Spec
from tools.language.nesting import MOST_PLACES, repeated

__all__ = ["NESTING_RULES"]

Raise = Callable[[int, str, str], Exception]


def _returns(spec: Spec, error: Raise) -> None:
    """A message that returns to the previous state is permitted only where there is one."""
    first = spec.states[0].name if spec.states else ""
    for message in spec.messages:
        if not message.returns:
            continue
        if message.enters or not message.within:
            problem = f"{message.name} returns, and {'enters a state' if message.enters else 'does not say from where'}"
            raise error(message.line, problem, "Write in: [the states that it ends] and no enters.")
        if first in message.within:
            problem = f"{message.name} returns from {first!r}, the first state, which no state comes before"
            raise error(message.line, problem, f"Leave {first!r} out of in.")
        for name in message.within:
            if not any(path[-1] == name for path in spec.paths):
                problem = f"{message.name} returns from {name!r}, which no message enters"
                raise error(message.line, problem, f"Write enters: {name} at the message that begins it.")
    for index, name in repeated(spec.paths):
        problem = f"{spec.messages[index].name} enters {name!r} inside of {name!r}: the nesting is unbounded"
        remedy = f"Leave {name!r}, and the states that are entered in it, out of in."
        raise error(spec.messages[index].line, problem, remedy)
    if len(spec.paths) > MOST_PLACES or len(spec.states) > MOST_PLACES:
        line = spec.states[min(MOST_PLACES, len(spec.states) - 1)].line
        problem = (
            f"states, with those that nest in each other, make more than {MOST_PLACES} that readers must distinguish"
        )
        raise error(line, problem, "Write fewer states, or let fewer be entered in each other.")


def _told_by_layout(spec: Spec, error: Raise) -> None:
    """A reader that starts in the middle knows the set parameters only: they must determine those after a return."""
    sets = {place.name: frozenset(place.sets) for place in spec.places}
    for message in spec.messages if spec.nested and not spec.framed else ():
        known: dict[frozenset[str], str] = {}
        for before, after in spec.steps(message).items():
            other = known.setdefault(sets[before], after)
            if sets[other] != sets[after]:
                problem = f"after {message.name} what is set depends on more than on what was set before it"
                remedy = "Let a state that nests set a parameter that no state around it sets."
                raise error(message.line, problem, remedy)


NESTING_RULES = (_returns, _told_by_layout)
