"""The command ``pgoutput``, also ``python -m pgoutput_construct.cli``."""

import atexit
import gc
import signal
import sys
from typing import Final

from pgoutput_construct.cli.command_table import COMMANDS
from pgoutput_construct.extras import lacking

__all__ = ["main"]

_ALLOCATIONS: Final = 100_000
"""Allocations between two runs of Python's garbage collector: imports create many permanent objects, messages few
cycles."""


def main() -> None:
    """Run the command line; without click, print how to install what the command needs."""
    # A shell without job control starts background jobs with SIGINT ignored, and Python would leave it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(_ALLOCATIONS)
    atexit.register(gc.freeze)  # otherwise Python collects cycles among all imported objects three times at exit
    if lacking("cli"):
        command = next((argument for argument in sys.argv[1:] if argument in COMMANDS), "decode")
        sys.exit(f"Error: {lacking(*COMMANDS[command].extras)}")
    try:
        from pgoutput_construct.cli.group import cli

        cli(prog_name="pgoutput")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
