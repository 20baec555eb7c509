"""The classes of the envelope and of a connection that programs use: a message may be renamed, and keeps its role.

A class is found by what does not change, its bytes: who sends it, its tag, and the constant after its length. If the
message has another name now, generated code has the class under both. ``spec/released-names.json`` has the roles of
the messages that programs of today may use.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from tools.language.errors import SpecError
from tools.language.model import Message, Spec

__all__ = ["ROLES", "WIRE_NAME_RULES", "in_role", "renamed", "role"]

Raise = Callable[[int, str, str], Exception]

ROLES: Final = "messages"
"""The key of the roles in the file of released names."""
_FILE: Final = Path(__file__).parents[2] / "spec" / "released-names.json"


def role(message: Message) -> str:
    """Return by what a message is recognised, in words."""
    text = f"a message of the {message.sender or 'server and the client'} with the tag {message.tag!r}"
    text += " and a length" if message.length else ""
    return f"{text} followed by {message.code_bytes!r}" if message.code_bytes else text


@cache
def _released() -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = json.loads(_FILE.read_text("utf-8"))[ROLES]
    return found


def _roles(spec: Spec) -> Mapping[str, str]:
    """Return the roles of the classes that programs use; another protocol has none, whatever it is called."""
    return _released().get(spec.protocol, {}) if spec.is_postgresql else {}


def renamed(spec: Spec) -> dict[str, str]:
    """Return the classes of messages that have another name now, each with that name."""
    return {name: message.class_name for name in _lacking(spec) if (message := _in_role(spec, name)) is not None}


def in_role(spec: Spec, name: str) -> Message:
    """Return the message that a class is for, whatever it is called; raise SpecError if it is for none."""
    found = next((each for each in spec.messages if each.class_name == name), None) or _in_role(spec, name)
    if found is None:
        raise SpecError(f"{spec.protocol} has no message for the class {name}, which the package uses: add one")
    return found


def _lacking(spec: Spec) -> list[str]:
    names = {each.class_name for each in spec.messages}
    return [name for name in _roles(spec) if name not in names]


def _in_role(spec: Spec, name: str) -> Message | None:
    roles = _roles(spec)
    known = [each for each in spec.messages if each.class_name not in roles and role(each) == roles.get(name)]
    return known[0] if len(known) == 1 else None


def _known(spec: Spec, error: Raise) -> None:
    """A message that programs use is there, once, and no other one has its name."""
    for name in _lacking(spec):
        if _in_role(spec, name) is None:
            remedy = f"Call it {name}, or let there be just one such message with another name."
            raise error(1, f"there is no {name} any more, {_roles(spec)[name]}, which programs use", remedy)
    names = set(spec.class_names())
    for name, now in renamed(spec).items():
        if name in names:
            line = in_role(spec, name).line
            raise error(line, f"{now} was called {name}, and that is another class now", "Choose another name for it.")


WIRE_NAME_RULES = (_known,)
