"""What the log and the operator are told when a stream begins."""

import logging
from typing import Any

from pgoutput_construct.changelog.events import CONNECTED, CREATED_SLOT, OPTIONS_CHANGED
from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.changelog.visibility import Snapshot
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.wire import Lsn

__all__ = ["announce", "announce_slot"]

_LOG = logging.getLogger("pgoutput_construct")


def announce(writer: LogWriter, options: LogOptions) -> None:
    """Let ``writer`` go on under ``options``, and write into the log what is different from before.

    Raises ChangeLogError when the log cannot go on with them.
    """
    before, now = writer.options, options
    changes = {} if before is None else before.changes(now)
    changes.pop("log_format", None)
    if before is not None and before.timeline_origin is None:
        changes.pop("timeline_origin", None)  # it is known now, and no other one
    writer.use(now, said=changes)
    lsn = writer.position.complete_lsn
    if changes:
        _LOG.warning("the log goes on with other options: %s", "; ".join(map(_described, changes.items())))
        writer.append_event(OPTIONS_CHANGED, lsn, **changes)
    told = {"slot": now.slot, "timeline": now.timeline, "server_version": now.server_version}
    writer.append_event(CONNECTED, lsn, **told)


def announce_slot(writer: LogWriter, slot: str, lsn: Lsn, snapshot: Snapshot | None) -> None:
    """Write into the log that the slot was created, at a position, and what the snapshot contains that came with it."""
    told = None if snapshot is None else [snapshot.xmin, snapshot.xmax, list(snapshot.xip)]
    writer.append_event(CREATED_SLOT, lsn, slot=slot, snapshot=told)


def _described(change: tuple[str, tuple[Any, Any]]) -> str:
    name, (before, now) = change
    return f"{name}: {now!r}, before {before!r}"
