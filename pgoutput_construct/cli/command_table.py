"""The table of commands: the group and the extras of each. This module itself needs no extra."""

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["COMMANDS", "GROUPS", "CommandEntry"]


class CommandEntry(NamedTuple):
    """What is known of a command without its module, ``commands.NAME_command``, which has a function of that name."""

    group: str
    """What it works on, one of GROUPS: ``--help`` shows the commands by it."""
    extras: tuple[str, ...] = ("cli",)
    """The extras that it always needs; the module imports none other than ``cli`` before the command runs."""


MESSAGES: Final = "Messages"
LOGS: Final = "Capture and change log"
TABLES: Final = "Tables"
PUBLISHER: Final = "Publish"
TRIAL: Final = "Try it"
GROUPS: Final = (LOGS, TABLES, PUBLISHER, MESSAGES, TRIAL)
"""In the order of ``--help``."""

COMMANDS: Final[Mapping[str, CommandEntry]] = {
    "capture": CommandEntry(LOGS, ("cli", "postgres")),
    "snapshot": CommandEntry(LOGS, ("cli", "postgres")),
    "log": CommandEntry(LOGS, ("cli", "changelog")),
    "tail": CommandEntry(LOGS, ("cli", "postgres")),
    "blame": CommandEntry(LOGS, ("cli", "changelog")),
    "undo": CommandEntry(LOGS, ("cli", "postgres")),
    "fixture": CommandEntry(LOGS, ("cli", "changelog")),
    "slots": CommandEntry(LOGS, ("cli", "postgres")),
    "status": CommandEntry(LOGS, ("cli", "changelog")),
    "replicate": CommandEntry(TABLES, ("cli", "spark")),
    "maintain": CommandEntry(TABLES, ("cli", "spark")),
    "verify": CommandEntry(TABLES, ("cli", "spark")),
    "tables": CommandEntry(TABLES, ("cli", "spark")),
    "serve": CommandEntry(PUBLISHER, ("cli", "publisher")),
    "replay": CommandEntry(PUBLISHER, ("cli", "postgres", "publisher")),
    "fork": CommandEntry(PUBLISHER, ("cli", "changelog")),
    "conformance": CommandEntry(PUBLISHER, ("cli", "publisher")),
    "decode": CommandEntry(MESSAGES),
    "build": CommandEntry(MESSAGES),
    "inspect": CommandEntry(MESSAGES),
    "demo": CommandEntry(TRIAL, ("demo",)),
}
