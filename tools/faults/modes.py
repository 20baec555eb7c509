"""The modes of a capture under attack: options of START_REPLICATION, and two_phase of the slot."""

import random
from dataclasses import dataclass, replace
from typing import Any

from pgoutput_construct.changelog.log_options import StreamOptions
from pgoutput_construct.errors import ReplicationError

__all__ = ["MODES", "Mode"]


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to capture, or several between which it changes."""

    name: str
    options: tuple[dict[str, Any], ...]
    """Keywords of capture(): each process takes one of them."""
    two_phase_slot: bool = False
    """Whether the slot is created with two_phase, so that it sends prepared transactions at PREPARE in any case."""

    @property
    def messages(self) -> bool:
        """Whether logical messages are captured."""
        return bool(self.options[0].get("messages"))

    def known_to(self, version: int) -> "Mode | None":
        """Return the part of this mode that a major version of PostgreSQL supports; None for nothing."""
        known = tuple(options for options in self.options if _is_known(options, version))
        return replace(self, options=known) if known else None

    def drawn(self, chance: random.Random) -> dict[str, Any]:
        """Return the keywords of the next process."""
        return chance.choice(self.options)


def _is_known(options: dict[str, Any], version: int) -> bool:
    try:
        StreamOptions(slot="s", publications=("p",), **options).check_server(version * 10000)
    except ReplicationError:
        return False
    return True


def _mode(name: str, proto_version: int, streaming: str = "off", *, slot: bool = False, **options: Any) -> Mode:
    two_phase_slot = slot or bool(options.get("two_phase"))
    return Mode(name, ({"proto_version": proto_version, "streaming": streaming, **options},), two_phase_slot)


def _changing(name: str, *modes: Mode, **options: Any) -> Mode:
    return Mode(
        name, tuple({**mode.options[0], **options} for mode in modes), any(mode.two_phase_slot for mode in modes)
    )


_TEN = (
    _mode("v1", 1),
    _mode("v1-binary-messages", 1, binary=True, messages=True),
    _mode("v1-two-phase-slot", 1, slot=True),
    _mode("v2", 2, "on"),
    _mode("v2-two-phase-slot", 2, "on", slot=True, binary=True),
    _mode("v3-off-two-phase", 3, two_phase=True, messages=True),
    _mode("v3-on-two-phase", 3, "on", two_phase=True, messages=True),
    _mode("v4-on", 4, "on", messages=True),
    _mode("v4-parallel", 4, "parallel", binary=True),
    _mode("v4-parallel-two-phase", 4, "parallel", two_phase=True, binary=True, messages=True),
)
"""Ten modes: every protocol version, streaming, values' format, two phases and messages, with and without."""

_CHANGING = _changing("changing", *_TEN, messages=True)
"""The options change from one process to the next, within one log."""

MODES = (*_TEN, _CHANGING)
