"""The table of commands: the module and the extras of each. This module itself needs no extra."""

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["COMMANDS", "CommandEntry"]


class CommandEntry(NamedTuple):
    """The implementation of one command."""

    module: str
    """The module, which imports no extra other than ``cli`` before the command runs."""
    function: str
    """The name of the click command in it."""
    extras: tuple[str, ...] = ("cli",)
    """The extras that it always needs."""


COMMANDS: Final[Mapping[str, CommandEntry]] = {
    "build": CommandEntry("pgoutput_construct.cli.build_command", "build_command"),
    "capture": CommandEntry("pgoutput_construct.cli.capture_command", "capture_command", ("cli", "postgres")),
    "decode": CommandEntry("pgoutput_construct.cli.decode_command", "decode_command"),
    "demo": CommandEntry("pgoutput_construct.cli.demo_command", "demo_command", ("demo",)),
    "inspect": CommandEntry("pgoutput_construct.cli.inspect_command", "inspect_command"),
    "log": CommandEntry("pgoutput_construct.cli.log_command", "log_command", ("cli", "changelog")),
    "replicate": CommandEntry("pgoutput_construct.cli.replicate_command", "replicate_command", ("cli", "spark")),
    "replay": CommandEntry("pgoutput_construct.cli.replay_command", "replay_command", ("cli", "postgres", "publisher")),
    "serve": CommandEntry("pgoutput_construct.cli.serve_command", "serve_command", ("cli", "publisher")),
    "slots": CommandEntry("pgoutput_construct.cli.slots_command", "slots_command", ("cli", "postgres")),
    "snapshot": CommandEntry("pgoutput_construct.cli.snapshot_command", "snapshot_command", ("cli", "postgres")),
    "tail": CommandEntry("pgoutput_construct.cli.tail_command", "tail_command", ("cli", "postgres")),
    "tables": CommandEntry("pgoutput_construct.cli.tables_command", "tables_command", ("cli", "spark")),
    "verify": CommandEntry("pgoutput_construct.cli.verify_command", "verify_command", ("cli", "spark")),
}
