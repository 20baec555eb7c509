"""The settings of the vectors: the options and stream states under which messages are sent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from tools.language import Field, Message, Option, Repeat, Spec, conditions
from tools.language.elements import Alternative

__all__ = ["NOT_ASKED", "TOO_OLD", "Setting", "settings"]

TOO_OLD = "version"
NOT_ASKED = "option"


@dataclass(frozen=True)
class Setting:
    """One combination of protocol version, options and stream state."""

    said: Mapping[str, Any]
    """Its keys in a line: options and states by name; empty if the specification has none."""
    parameters: Mapping[str, int]
    """The layout parameters that follow from it."""
    off: frozenset[str] = frozenset()
    """The options that have their default value."""

    @property
    def version(self) -> int:
        """The protocol version; for a specification without versions the lowest possible one."""
        return self.parameters.get("proto_version", 1)

    def has(self, element: Field | Repeat | Alternative, found: Mapping[str, Any] | None = None) -> bool:
        """Return whether a field is present, or a branch is permitted.

        ``found`` are the earlier fields by name; without them a bit in a condition counts as set, or as not set.
        """
        if element.term is None:
            return True
        term = element.term if found is not None else conditions.outside(element.term)
        return conditions.holds(term, self.parameters, found or {})

    def variant(self, field: Field, found: Mapping[str, Any] | None = None) -> Field | None:
        """Return a field under this setting, None if it is absent."""
        there = (each for each in field.variants or (field,) if self.has(each, found))
        return next(there, None)

    def announced(self, spec: Spec, data: bytes) -> Message | None:
        """Return the message that bytes begin, or None; it may be one that is never sent under this setting."""
        if not spec.framed:
            return next((message for message in spec.messages if data[:1] == message.tag), None)
        return next((m for m in spec.messages if _begins(m, data) and self.sends(spec, m)), None)

    def refusal(self, message: Message) -> str | None:
        """Return why a message is never sent under these options, None if it may be."""
        if message.needs and self.version < message.needs:
            return TOO_OLD
        return NOT_ASKED if message.option in self.off and not message.unasked else None

    def sends(self, spec: Spec, message: Message) -> bool:
        """Return whether a message can be sent under this setting, in this state, and by this sender if it has one."""
        if spec.framed:
            (place,) = (place for place in spec.places if place.name == self.said["state"])
            return spec.following(message, self.said["sender"], place) is not None
        here = {name for name, value in self.said.items() if value is True}
        own = {parameter.name for parameter in spec.state_parameters}
        places = [place for place in spec.places if place.name in spec.steps(message)]
        fits = not spec.states or any(set(place.sets) == here & own for place in places)
        return fits and self.refusal(message) is None


def settings(spec: Spec) -> list[Setting]:
    """Return every possible setting, the oldest version first."""
    found = _of_connection(spec) if spec.framed else _settings(spec)
    return list(found) or [Setting({}, {})]


def _of_connection(spec: Spec) -> Iterator[Setting]:
    """Yield a setting for each sender in each state in which it can send something."""
    for state in spec.places:
        for sender in ("client", "server"):
            setting = Setting({"sender": sender, "state": state.name}, {})
            if any(setting.sends(spec, message) for message in spec.messages):
                yield setting


def _begins(message: Message, data: bytes) -> bool:
    """Return whether bytes have the tag of a message, and its constant after the length."""
    if not data.startswith(message.tag):
        return False
    place = len(message.tag) + (message.length.size or 0 if message.length else 0)
    code = message.code_bytes
    return data[place : place + len(code)] == code


def _settings(spec: Spec) -> Iterator[Setting]:
    options = spec.layout_options
    for version, *values in product(spec.versions, *map(_values, options)):
        if all(version.version >= (value.since or 0) for _, value in values):
            said = {"proto_version": version.version} | {o.name: v for o, (v, _) in zip(options, values, strict=True)}
            off = {o.name for o, found in zip(options, values, strict=True) if found == _values(o)[0]}
            sets = {name for _, value in values for name in value.sets}
            yield from _in_states(spec, said, sets, frozenset(off))


def _values(option: Option) -> list[tuple[Any, Option]]:
    """Return the values of an option, the default first, each with the version it needs and the parameters it sets."""
    if option.values:
        return [(value.name, value) for value in option.values]
    return [(False, Option(option.name)), (True, option)]


def _in_states(spec: Spec, said: Mapping[str, Any], sets: set[str], off: frozenset[str]) -> Iterator[Setting]:
    """Yield a setting for each reachable state under these options, without duplicates."""
    names = [parameter.name for parameter in spec.parameters]
    options = Setting(said, {"proto_version": said["proto_version"]}, off)
    coming = (message for message in spec.messages if options.refusal(message) is None)
    entered = {after for message in coming for before, after in spec.steps(message).items() if after != before}
    reached = {place.sets for place in spec.places if not place.sets or place.name in entered}
    for here in sorted(reached or {()}):
        state = {parameter.name: parameter.name in here for parameter in spec.state_parameters}
        given = {name: said.get(name, name in sets or name in here) for name in names}
        yield Setting({**said, **state}, given, off)
