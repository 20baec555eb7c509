"""What each replication command of a client gives, but for START_REPLICATION, which begins a stream."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from pgoutput_construct.publisher.answers import show
from pgoutput_construct.publisher.asking import Asker
from pgoutput_construct.publisher.client import ClientConnection
from pgoutput_construct.publisher.commands import (
    AlterSlot,
    CreateSlot,
    DropSlot,
    IdentifySystem,
    ReadSlot,
    Show,
    TimelineHistory,
)
from pgoutput_construct.publisher.conversation import Ended
from pgoutput_construct.publisher.feed import About
from pgoutput_construct.publisher.refusals import Refusal, no_copies
from pgoutput_construct.publisher.results import Result
from pgoutput_construct.publisher.slots import PLUGIN

__all__ = ["COMMANDS"]

_WAIT_SECONDS: Final = 0.1
_TWO_PHASE_CREATED, _TWO_PHASE_ALTERED, _FAILOVER = 15, 18, 17
"""The servers that first have an option of CREATE_REPLICATION_SLOT or ALTER_REPLICATION_SLOT."""
_SWITCH: Final = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


async def _identify(asker: Asker, client: ClientConnection, command: IdentifySystem) -> Result:
    about, position = asker.feed.about, asker.feed.position
    columns = [("systemid", "text"), ("timeline", "int8"), ("xlogpos", "text"), ("dbname", "text")]
    row = [about.system_identifier, str(about.timeline), str(position), about.database]
    return Result("IDENTIFY_SYSTEM", columns, [row])


async def _show(asker: Asker, client: ClientConnection, command: Show) -> Result:
    return show(asker.settings, command.name)


async def _history(asker: Asker, client: ClientConnection, command: TimelineHistory) -> Result:
    file = f"{command.timeline:08X}.history"
    if command.timeline != asker.feed.about.timeline:
        raise Refusal("58P01", f'could not open file "pg_wal/{file}": there is none')
    return Result("TIMELINE_HISTORY", [("filename", "text"), ("content", "bytea")], [[file, ""]])


async def _create_slot(asker: Asker, client: ClientConnection, command: CreateSlot) -> Result:
    if command.plugin != PLUGIN:
        raise Refusal("58P01", f'could not access file "{command.plugin}": the plugin served is {PLUGIN}')
    known = ("snapshot", *_altered(asker.feed.about, created=True))
    _check_options(command.options, known)
    if (action := command.options.get("snapshot") or "nothing") != "nothing":
        raise no_copies(f"there is no snapshot to {action}")
    owner = asker.process_id if command.temporary else None
    application = asker.settings.get("application_name", "")
    switches: Any = {name: _switch(name, value) for name, value in command.options.items() if name != "snapshot"}
    asker.slots.create(command.name, command.plugin, temporary=owner, client=application, **switches)
    columns = [(name, "text") for name in ("slot_name", "consistent_point", "snapshot_name", "output_plugin")]
    return Result("CREATE_REPLICATION_SLOT", columns, [[command.name, "0/0", None, command.plugin]])


async def _alter_slot(asker: Asker, client: ClientConnection, command: AlterSlot) -> Result:
    """Alter a slot as ReplicationSlotAlter() does: it waits until nobody reads from it."""
    known = _altered(asker.feed.about)
    if not known:
        raise Refusal("42601", 'syntax error at or near "ALTER_REPLICATION_SLOT"')
    _check_options(command.options, known)
    switches: Any = {name: _switch(name, value) for name, value in command.options.items()}
    await _until_free(asker, client, command.name)
    asker.slots.alter(command.name, asker.process_id, **switches)
    return Result("ALTER_REPLICATION_SLOT")


def _altered(about: About, created: bool = False) -> tuple[str, ...]:
    """Return the options that a server has for slots that are altered, or created."""
    since = {"two_phase": _TWO_PHASE_CREATED if created else _TWO_PHASE_ALTERED, "failover": _FAILOVER}
    return tuple(name for name, server in since.items() if about.server_version // 10000 >= server)


def _check_options(options: Mapping[str, str | None], known: Sequence[str]) -> None:
    for name in options:
        if name not in known:
            raise Refusal("XX000", f"unrecognized option: {name}")


def _switch(name: str, value: str | None) -> bool:
    """Read a switch as defGetBoolean() does."""
    word = "true" if value is None else value.lower()
    if word not in _SWITCH:
        raise Refusal("42601", f"{name} requires a Boolean value")
    return _SWITCH[word]


async def _until_free(asker: Asker, client: ClientConnection, name: str) -> None:
    while asker.slots.is_active(name, asker.process_id):
        if client.is_left:
            raise Ended  # its client waits no more
        await asyncio.sleep(_WAIT_SECONDS)


async def _read_slot(asker: Asker, client: ClientConnection, command: ReadSlot) -> Result:
    if asker.slots.get(command.name) is not None:
        raise Refusal("0A000", "cannot use READ_REPLICATION_SLOT with a logical replication slot")
    columns = [("slot_type", "text"), ("restart_lsn", "text"), ("restart_tli", "int8")]
    return Result("READ_REPLICATION_SLOT", columns, [[None, None, None]])


async def _drop_slot(asker: Asker, client: ClientConnection, command: DropSlot) -> Result:
    if command.wait:
        await _until_free(asker, client, command.name)
    asker.slots.drop(command.name, asker.process_id)
    return Result("DROP_REPLICATION_SLOT")


COMMANDS: Final[Mapping[type, Callable[..., Awaitable[Result]]]] = {
    IdentifySystem: _identify,
    Show: _show,
    TimelineHistory: _history,
    CreateSlot: _create_slot,
    AlterSlot: _alter_slot,
    ReadSlot: _read_slot,
    DropSlot: _drop_slot,
}
"""What gives the result of each command."""
