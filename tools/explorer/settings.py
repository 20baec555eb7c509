"""What determines how messages are read: options and parameters of states, or a connection's sender and state."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tools.generate.typescript.typescript_names import camel
from tools.language import Option, Spec

__all__ = ["Setting", "settings"]

_SWITCH = (Option("false"), Option("true"))


@dataclass(frozen=True)
class Value:
    """A value of a setting, and the release of PostgreSQL that introduced it."""

    name: str
    description: str = ""
    server: int | None = None


@dataclass(frozen=True)
class Setting:
    """A control of the page, and a name in its addresses."""

    name: str
    description: str
    values: tuple[Value, ...]
    default: str
    property: str | None = None
    """Of a parameter that states set: its property in the layouts of the codec."""


def settings(spec: Spec) -> list[Setting]:
    """Return what determines how messages are read.

    Args:
        spec: The specification of the messages inside of frames, or of a connection.
    """
    return [*(_of_connection(spec) if spec.framed else _of_stream(spec))]


def _of_stream(spec: Spec) -> Iterator[Setting]:
    versions = tuple(Option(str(each.version), each.brings, each.server) for each in spec.versions)
    version = next(each for each in spec.options if each.name == "proto_version")
    for option in (replace(version, values=versions), *spec.layout_options):
        yield _setting(option.name, option.description, option.values or _SWITCH)
    for parameter in spec.state_parameters:
        yield replace(_setting(parameter.name, parameter.description, _SWITCH), property=camel(parameter.name))


def _of_connection(spec: Spec) -> Iterator[Setting]:
    """Yield the sender and the state: by default the one in which a server can send most messages."""
    yield _setting("sender", "Who sends the message.", (Option("server"), Option("client")))
    permitted = Counter(state for each in spec.messages if each.sender != "client" for state in spec.steps(each))
    states = [Option(each.name, each.description) for each in spec.places]
    state = _setting("state", "The state of the connection before the message.", states)
    yield replace(state, default=max((each.name for each in states), key=permitted.__getitem__))


def _setting(name: str, description: str, values: Iterable[Option]) -> Setting:
    found = tuple(Value(each.name, each.description, each.server) for each in values)
    return Setting(name, description, found, found[0].name)
