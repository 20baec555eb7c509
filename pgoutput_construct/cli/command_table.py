"""The table of commands: the module and the extras of each. This module itself needs no extra."""

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["COMMANDS", "GROUPS", "CommandEntry"]


class CommandEntry(NamedTuple):
    """The implementation of one command."""

    group: str
    """What it works on, one of GROUPS: ``--help`` shows the commands by it."""
    function: str
    """The name of the click command, and of its module in ``commands/``."""
    extras: tuple[str, ...] = ("cli",)
    """The extras that it always needs."""

    @property
    def module(self) -> str:
        """The module, which imports no extra other than ``cli`` before the command runs."""
        return f"pgoutput_construct.cli.commands.{self.function}"


MESSAGES: Final = "Messages"
LOGS: Final = "Capture and change log"
TABLES: Final = "Tables"
PUBLISHER: Final = "Publish"
TRIAL: Final = "Try it"
GROUPS: Final = (LOGS, TABLES, PUBLISHER, MESSAGES, TRIAL)
"""In the order of ``--help``."""

COMMANDS: Final[Mapping[str, CommandEntry]] = {
    "capture": CommandEntry(LOGS, "capture_command", ("cli", "postgres")),
    "snapshot": CommandEntry(LOGS, "snapshot_command", ("cli", "postgres")),
    "log": CommandEntry(LOGS, "log_command", ("cli", "changelog")),
    "tail": CommandEntry(LOGS, "tail_command", ("cli", "postgres")),
    "blame": CommandEntry(LOGS, "blame_command", ("cli", "changelog")),
    "undo": CommandEntry(LOGS, "undo_command", ("cli", "postgres")),
    "fixture": CommandEntry(LOGS, "fixture_command", ("cli", "changelog")),
    "slots": CommandEntry(LOGS, "slots_command", ("cli", "postgres")),
    "status": CommandEntry(LOGS, "status_command", ("cli", "changelog")),
    "replicate": CommandEntry(TABLES, "replicate_command", ("cli", "spark")),
    "maintain": CommandEntry(TABLES, "maintain_command", ("cli", "spark")),
    "verify": CommandEntry(TABLES, "verify_command", ("cli", "spark")),
    "tables": CommandEntry(TABLES, "tables_command", ("cli", "spark")),
    "serve": CommandEntry(PUBLISHER, "serve_command", ("cli", "publisher")),
    "replay": CommandEntry(PUBLISHER, "replay_command", ("cli", "postgres", "publisher")),
    "fork": CommandEntry(PUBLISHER, "fork_command", ("cli", "changelog")),
    "conformance": CommandEntry(PUBLISHER, "conformance_command", ("cli", "publisher")),
    "decode": CommandEntry(MESSAGES, "decode_command"),
    "build": CommandEntry(MESSAGES, "build_command"),
    "inspect": CommandEntry(MESSAGES, "inspect_command"),
    "demo": CommandEntry(TRIAL, "demo_command", ("demo",)),
}
