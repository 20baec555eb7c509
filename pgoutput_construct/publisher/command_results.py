"""What each replication command of a client gives, but for START_REPLICATION, which begins a stream."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from pgoutput_construct.publisher.answers import show
from pgoutput_construct.publisher.commands import (
    CreateSlot,
    DropSlot,
    IdentifySystem,
    ReadSlot,
    Show,
    TimelineHistory,
)
from pgoutput_construct.publisher.refusals import Refusal, no_copies
from pgoutput_construct.publisher.results import Result
from pgoutput_construct.publisher.slots import PLUGIN
from pgoutput_construct.publisher.switches import OFF_WORDS

if TYPE_CHECKING:
    from pgoutput_construct.publisher.session import Session

__all__ = ["COMMANDS"]


async def _identify(session: "Session", command: IdentifySystem) -> Result:
    about, position = session.publisher.feed.about, session.publisher.feed.position
    columns = [("systemid", "text"), ("timeline", "int8"), ("xlogpos", "text"), ("dbname", "text")]
    row = [about.system_identifier, str(about.timeline), str(position), about.database]
    return Result("IDENTIFY_SYSTEM", columns, [row])


async def _show(session: "Session", command: Show) -> Result:
    return show(session.asker.settings, command.name)


async def _history(session: "Session", command: TimelineHistory) -> Result:
    file = f"{command.timeline:08X}.history"
    if command.timeline != session.publisher.feed.about.timeline:
        raise Refusal("58P01", f'could not open file "pg_wal/{file}": there is none')
    return Result("TIMELINE_HISTORY", [("filename", "text"), ("content", "bytea")], [[file, ""]])


async def _create_slot(session: "Session", command: CreateSlot) -> Result:
    if command.plugin != PLUGIN:
        raise Refusal("58P01", f'could not access file "{command.plugin}": the plugin served is {PLUGIN}')
    if (action := command.options.get("SNAPSHOT") or "nothing") != "nothing":
        raise no_copies(f"there is no snapshot to {action}")
    two_phase = "TWO_PHASE" in command.options and command.options["TWO_PHASE"] not in OFF_WORDS
    owner = session.process_id if command.temporary else None
    session.publisher.slots.create(command.name, command.plugin, two_phase=two_phase, temporary=owner)
    columns = [(name, "text") for name in ("slot_name", "consistent_point", "snapshot_name", "output_plugin")]
    return Result("CREATE_REPLICATION_SLOT", columns, [[command.name, "0/0", None, command.plugin]])


async def _read_slot(session: "Session", command: ReadSlot) -> Result:
    if session.publisher.slots.get(command.name) is not None:
        raise Refusal("0A000", "cannot use READ_REPLICATION_SLOT with a logical replication slot")
    columns = [("slot_type", "text"), ("restart_lsn", "text"), ("restart_tli", "int8")]
    return Result("READ_REPLICATION_SLOT", columns, [[None, None, None]])


async def _drop_slot(session: "Session", command: DropSlot) -> Result:
    slots = session.publisher.slots
    while command.wait and slots.is_active(command.name, session.process_id):
        await asyncio.sleep(0.1)
    slots.drop(command.name, session.process_id)
    return Result("DROP_REPLICATION_SLOT")


COMMANDS: Final[Mapping[type, Callable[..., Awaitable[Result]]]] = {
    IdentifySystem: _identify,
    Show: _show,
    TimelineHistory: _history,
    CreateSlot: _create_slot,
    ReadSlot: _read_slot,
    DropSlot: _drop_slot,
}
"""What gives the result of each command."""
