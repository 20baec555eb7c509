"""Finds and kills child processes of a process."""

import random
from contextlib import suppress

import psutil

from pgoutput_construct.demo.processes import Supervised

__all__ = ["kill_child"]


def kill_child(parent: Supervised, name: str, chance: random.Random) -> bool:
    """Kill a random descendant of a process whose command line contains ``name``; False if there is none."""
    found = []
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(parent.pid).children(recursive=True) if parent.runs else ():
            with suppress(psutil.NoSuchProcess):
                found += [child] if name in " ".join(child.cmdline()) else []
    with suppress(psutil.NoSuchProcess):
        for child in found and [chance.choice(found)]:
            child.kill()
            return True
    return False
