"""The table of commands: the module and the extras of each. This module itself needs no extra."""

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["COMMANDS", "CommandEntry"]


class CommandEntry(NamedTuple):
    """The implementation of one command."""

    function: str
    """The name of the click command, and of its module in ``commands/``."""
    extras: tuple[str, ...] = ("cli",)
    """The extras that it always needs."""

    @property
    def module(self) -> str:
        """The module, which imports no extra other than ``cli`` before the command runs."""
        return f"pgoutput_construct.cli.commands.{self.function}"


COMMANDS: Final[Mapping[str, CommandEntry]] = {
    "build": CommandEntry("build_command"),
    "capture": CommandEntry("capture_command", ("cli", "postgres")),
    "decode": CommandEntry("decode_command"),
    "demo": CommandEntry("demo_command", ("demo",)),
    "inspect": CommandEntry("inspect_command"),
    "log": CommandEntry("log_command", ("cli", "changelog")),
    "maintain": CommandEntry("maintain_command", ("cli", "spark")),
    "replicate": CommandEntry("replicate_command", ("cli", "spark")),
    "replay": CommandEntry("replay_command", ("cli", "postgres", "publisher")),
    "serve": CommandEntry("serve_command", ("cli", "publisher")),
    "slots": CommandEntry("slots_command", ("cli", "postgres")),
    "snapshot": CommandEntry("snapshot_command", ("cli", "postgres")),
    "tail": CommandEntry("tail_command", ("cli", "postgres")),
    "tables": CommandEntry("tables_command", ("cli", "spark")),
    "verify": CommandEntry("verify_command", ("cli", "spark")),
}
