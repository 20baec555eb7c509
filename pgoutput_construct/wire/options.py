"""Options that determine the layout of messages: those of START_REPLICATION, and the stream state.

``options`` checks them as PostgreSQL does, and computes the parameters of the layouts, which every engine takes in the
same order (``PARAMETERS``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire.messages import PgoutputMessage
from pgoutput_construct.wire.protocol import (
    ASKED_BY,
    OPTIONS,
    PARAMETERS,
    PROTOCOL_VERSIONS,
    SINCE,
    STATES,
    TRANSITIONS,
    MoreOptions,
    ParseOptions,
    Streaming,
)
from pgoutput_construct.wire.spec_metadata import Option

__all__ = [
    "LAYOUT_OPTIONS",
    "STATE_PARAMETERS",
    "MoreOptions",
    "Options",
    "Streaming",
    "combinations",
    "first_with",
    "noun",
    "options",
    "problems",
]

STATE_PARAMETERS: Final = tuple(name for name in PARAMETERS if any(name in sets for sets in STATES.values()))
"""The parameters that the stream state sets, such as in_stream."""
LAYOUT_OPTIONS: Final = tuple(name for name in ParseOptions._fields if name not in STATE_PARAMETERS)
"""The options of START_REPLICATION that determine which messages are sent, and their layout."""


@dataclass(frozen=True, slots=True)
class Options:
    """Validated options, and the layout parameters that follow from them."""

    values: tuple[int, ...]
    """The parameters, in the order of PARAMETERS."""
    off: frozenset[str]
    """The layout options that have their default value."""
    unsaid: frozenset[str]
    """The stream state parameters that the caller left out, and that can matter under these options."""

    def parameters(self) -> dict[str, int]:
        """Return the parameters as the keywords that every definition takes."""
        return dict(zip(PARAMETERS, self.values, strict=True))

    def refusal(self, message: type[PgoutputMessage]) -> str | None:
        """Return why a message is not sent under these options, None if it may be."""
        option = ASKED_BY.get(message)
        if option not in self.off:
            return None
        version, said, reason = self.values[0], first_with(message), f"is sent only if the option {option} is on"
        if version < said["proto_version"]:
            reason = f"belongs to protocol version {said['proto_version']} and newer, not to version {version}"
        else:
            del said["proto_version"]
        return f"{reason}: pass {', '.join(f'{name}={value!r}' for name, value in said.items())}"


def options(proto_version: int = 1, streaming: str = "off", in_stream: bool | None = None, **others: Any) -> Options:
    """Return validated options; raise PgoutputError for those that PostgreSQL would refuse.

    Args:
        proto_version: The option proto_version of START_REPLICATION.
        streaming: The option streaming of START_REPLICATION.
        in_stream: Whether a stream is open; None: unknown.
        others: The options and states of MoreOptions.
    """
    given = {"proto_version": proto_version, "streaming": streaming, "in_stream": in_stream, **others}
    for name in given:
        if name not in ParseOptions._fields:
            raise PgoutputError(f"unknown option {name!r}: the options are {', '.join(ParseOptions._fields)}")
    for name in STATE_PARAMETERS:
        if isinstance(given.get(name), str):
            raise PgoutputError(f"{name} must be True or False, not {given[name]!r:.40}")
    layout = {name: given.get(name, OPTIONS[name].default) for name in LAYOUT_OPTIONS}
    for problem in problems(layout):
        raise PgoutputError(problem)
    sets = {name for option, value in layout.items() for name in _sets(OPTIONS[option], value)}
    sets |= {name for name in STATE_PARAMETERS if given.get(name)}
    off = _off(layout)
    values = tuple(layout.get(name, name in sets) for name in PARAMETERS)
    unsaid = frozenset(
        name for name in STATE_PARAMETERS if given.get(name) is None and _can_be_set(name, proto_version, off)
    )
    return Options(values, off, unsaid)


def first_with(message: type[PgoutputMessage]) -> dict[str, Any]:
    """Return the minimal options under which a message is sent: protocol version, and the enabling option."""
    since = SINCE.get(message, min(PROTOCOL_VERSIONS))
    if message not in ASKED_BY:
        return {"proto_version": since}
    option = OPTIONS[ASKED_BY[message]]
    value, known = next((value, known) for value, known in option.values.items() if value != option.default)
    return {"proto_version": max(since, known.since), ASKED_BY[message]: value}


def noun(state: str) -> str:
    """Return the noun in the name of a stream state parameter: ``stream`` of ``in_stream``."""
    return state.removeprefix("in_").replace("_", " ")


def _off(layout: Mapping[str, object]) -> frozenset[str]:
    return frozenset(name for name, value in layout.items() if OPTIONS[name].values and value == OPTIONS[name].default)


def _sets(option: Option, value: object) -> tuple[str, ...]:
    return option.values[value].sets if option.values else ()


def _can_be_set(parameter: str, proto_version: int, off: frozenset[str]) -> bool:
    """Return whether, under these options, some message enters a state that sets the parameter."""
    return any(
        proto_version >= SINCE.get(message, 0) and ASKED_BY.get(message) not in off
        for message, steps in TRANSITIONS.items()
        for before, after in steps.items()
        if parameter in STATES[after] and before != after
    )


def problems(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the errors in option values, by the rules of pgoutput_startup() and parse_output_parameters()."""
    version = given.get("proto_version", OPTIONS["proto_version"].default)
    if type(version) is not int or version not in PROTOCOL_VERSIONS:
        yield f"proto_version must be one of {list(PROTOCOL_VERSIONS)}, not {version!r:.40}"
        return
    for name, value in given.items():
        option = OPTIONS[name]
        known = option.values
        if known and (type(value) not in (str, bool) or value not in known):
            *most, last = map(repr, known)
            yield f"{name} must be {', '.join(most)} or {last}, not {value!r:.40}"
        elif known and version < known[value].since:
            yield f"{name}={value!r} needs proto_version {known[value].since} or newer, not {version}"
        elif not known and value not in (None, option.default) and version < option.since:
            yield f"{name} needs proto_version {option.since} or newer, not {version}"


def combinations() -> Iterator[ParseOptions]:
    """Yield every possible combination of protocol version, options and stream state."""
    for version in PROTOCOL_VERSIONS:
        others = [OPTIONS[name].values for name in LAYOUT_OPTIONS[1:]]
        for values in product(*others):
            layout: dict[str, Any] = dict(zip(LAYOUT_OPTIONS, (version, *values), strict=True))
            if not any(problems(layout)):
                yield from (ParseOptions(**layout | state) for state in _states(version, _off(layout)))


def _states(proto_version: int, off: frozenset[str]) -> list[dict[str, bool]]:
    """Return the distinct parameters of the reachable states."""
    reached = {sets for sets in STATES.values() if all(_can_be_set(name, proto_version, off) for name in sets)}
    return [{name: name in sets for name in STATE_PARAMETERS} for sets in sorted(reached, key=sorted)]
