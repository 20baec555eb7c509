"""Nested states: each returns to the state in which it was entered, so it is unfolded once for each of these.

Readers of a stream have one state and no stack. Nested states are therefore unfolded: a state that messages leave by
``returns`` becomes one state for each way into it, called ``stream/block``, which sets the parameters of the enclosing
states as well. No state is entered inside of itself, so the depth is bounded by the number of nested states.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

__all__ = ["MOST_PLACES", "Path", "Step", "repeated", "unfolded"]

MOST_PLACES: Final = 64
"""The most states after unfolding."""

Path = tuple[str, ...]
"""A state, and after it those that were entered in it, the innermost last."""


class Step(NamedTuple):
    """The effect of a message on the state."""

    within: tuple[str, ...]
    """The states in which it is permitted; all, if it names none."""
    enters: str | None
    returns: bool

    def after(self, path: Path, nested: frozenset[str]) -> Path | None:
        """Return the path after it, None if it is not permitted on this path."""
        if self.within and path[-1] not in self.within:
            return None
        if self.returns:
            return path[:-1]
        if self.enters is None or (self.enters == path[-1] and self.enters not in nested):
            return path
        return (*path, self.enters) if self.enters in nested else (self.enters,)


def unfolded(states: Sequence[str], nested: frozenset[str], steps: Sequence[Step]) -> dict[Path, list[Path | None]]:
    """Return every reachable path, grouped by state; each with the path after each step."""
    found: dict[Path, list[Path | None]] = {}
    todo: list[Path] = [(state,) for state in states if state not in nested]
    while todo and len(found) <= MOST_PLACES:
        path = todo.pop(0)
        if path in found or not path:
            continue
        found[path] = [step.after(path, nested) for step in steps]
        todo += [after for after in found[path] if after is not None and len(set(after)) == len(after)]
    return {path: found[path] for state in states for path in found if path[-1] == state}


def repeated(places: Mapping[Path, Sequence[Path | None]]) -> Iterator[tuple[int, str]]:
    """Yield the steps, by index, that enter a state inside of itself, and that state."""
    for afters in places.values():
        for index, after in enumerate(afters):
            if after is not None and len(set(after)) < len(after):
                yield index, after[-1]
