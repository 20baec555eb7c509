"""The commands: where each is, and which extras it needs. This module needs none itself."""

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["COMMANDS", "Place"]


class Place(NamedTuple):
    """One command."""

    module: str
    """Its module, which imports no extra other than ``cli`` before the command runs."""
    function: str
    extras: tuple[str, ...] = ("cli",)
    """What it needs, whatever its arguments are."""


COMMANDS: Final[Mapping[str, Place]] = {
    "build": Place("pgoutput_construct.cli.build", "build_command"),
    "capture": Place("pgoutput_construct.cli.capture", "capture_command", ("cli", "postgres")),
    "decode": Place("pgoutput_construct.cli.decode", "decode_command"),
    "demo": Place("pgoutput_construct.cli.demo", "demo_command", ("demo",)),
    "inspect": Place("pgoutput_construct.cli.inspect", "inspect_command"),
    "log": Place("pgoutput_construct.cli.log", "log_command", ("cli", "changelog")),
    "replicate": Place("pgoutput_construct.cli.replicate", "replicate_command", ("cli", "spark")),
    "replay": Place("pgoutput_construct.cli.replay", "replay_command", ("cli", "postgres", "publisher")),
    "serve": Place("pgoutput_construct.cli.serve", "serve_command", ("cli", "publisher")),
    "slots": Place("pgoutput_construct.cli.slots", "slots_command", ("cli", "postgres")),
    "snapshot": Place("pgoutput_construct.cli.snapshot", "snapshot_command", ("cli", "postgres")),
    "tail": Place("pgoutput_construct.cli.tail", "tail_command", ("cli", "postgres")),
    "tables": Place("pgoutput_construct.cli.tables", "tables_command", ("cli", "spark")),
    "verify": Place("pgoutput_construct.cli.verify", "verify_command", ("cli", "spark")),
}
