"""What a publisher answers to the SQL functions that make and drop replication slots."""

import re
from collections.abc import Sequence
from typing import Final

from pgoutput_construct.publisher.asking import TEXT, Answer, Asker, known, listed
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.publisher.results import Result
from pgoutput_construct.publisher.slots import PLUGIN
from pgoutput_construct.publisher.switches import ON_WORDS
from pgoutput_construct.wire.types import Lsn

__all__ = ["SLOT_ANSWERS"]

_ARGUMENTS: Final = ("temporary", "twophase", "failover")
"""The optional arguments of pg_create_logical_replication_slot(), in their order."""


def _create(asker: Asker, match: re.Match[str]) -> Result:
    name, plugin = listed(match["texts"])
    if plugin != PLUGIN:
        raise Refusal("58P01", f'could not access file "{plugin}": the plugin served is {PLUGIN}')
    given = _arguments(match["given"] or "")
    owner = asker.process_id if given["temporary"] else None
    slot = asker.slots.create(name, plugin, two_phase=given["twophase"], failover=given["failover"], temporary=owner)
    position = Lsn(slot.confirmed)
    if match["form"].startswith("lsn"):
        return Result("SELECT", [("?column?", "numeric")], [[str(int(position))]])
    if match["form"]:
        return Result("SELECT", [("slot_name", "name"), ("lsn", "pg_lsn")], [[name, str(position)]])
    return Result("SELECT", [("pg_create_logical_replication_slot", "record")], [[f"({name},{position})"]])


def _arguments(text: str) -> dict[str, bool]:
    """Return the optional arguments, given by their places or names; raise Refusal for others."""
    found = dict.fromkeys(_ARGUMENTS, False)
    for place, each in enumerate(filter(None, (part.strip().lower() for part in text.split(",")))):
        name, _, value = (word.strip() for word in each.replace(":=", "=>").rpartition("=>"))
        name = name or (_ARGUMENTS[place] if place < len(_ARGUMENTS) else "")
        if name not in found:
            raise Refusal("42883", f"function pg_create_logical_replication_slot() has no argument {each[:40]}")
        found[name] = value.strip("'") in ON_WORDS
    return found


def _drop(asker: Asker, match: re.Match[str]) -> Result:
    (name,) = listed(match["name"])
    if match["all"] and asker.slots.get(name) is None:
        return Result("SELECT", [("pg_drop_replication_slot", "text")], [])
    asker.slots.drop(name, asker.process_id)
    return Result("SELECT", [("pg_drop_replication_slot", "text")], [[""]])


_FUNCTION: Final = r"(?:pg_catalog\.)?pg_create_logical_replication_slot"
SLOT_ANSWERS: Final[Sequence[tuple[re.Pattern[str], Answer]]] = (
    (
        known(
            rf"SELECT (?P<form>lsn - '0/0'::pg_lsn FROM |\* FROM |){_FUNCTION}\("
            rf"(?P<texts>{TEXT}, ?{TEXT})(?P<given>(?:,[\w ':=>]+)*)\)"
        ),
        _create,
    ),
    (known(rf"SELECT (?:pg_catalog\.)?pg_drop_replication_slot\((?P<name>{TEXT})\)(?P<all>)"), _drop),
    (
        known(
            r"SELECT pg_drop_replication_slot\(slot_name\) FROM pg_replication_slots"
            rf" (?P<all>WHERE) slot_name = (?P<name>{TEXT})"
        ),
        _drop,
    ),
)
"""The queries, and what answers each."""
