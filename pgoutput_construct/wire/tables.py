"""What the rows of the generated tables of options are."""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Option", "OptionValue"]


class OptionValue(NamedTuple):
    """One value of an option."""

    server: int
    """The first PostgreSQL (major version) that has it."""
    since: int
    """The first protocol version that has it."""
    sets: tuple[str, ...] = ()
    """The parameters of the layouts that it sets."""


class Option(NamedTuple):
    """One option of START_REPLICATION."""

    default: object
    """What holds where the option is not given; None where it must be given."""
    values: Mapping[object, OptionValue]
    """The values it can have, empty for those that are numbers or names."""
    server: int
    """The first PostgreSQL (major version) that has it."""
    description: str
    """One line."""
