"""What the log and the operator are told when a stream begins."""

import logging
from typing import Any

from pgoutput_construct.changelog.events import CONNECTED, OPTIONS_CHANGED
from pgoutput_construct.changelog.options import LogOptions
from pgoutput_construct.changelog.writer import LogWriter

__all__ = ["announce"]

_LOG = logging.getLogger("pgoutput_construct")


def announce(writer: LogWriter, options: LogOptions) -> None:
    """Let ``writer`` go on under ``options``, and write into the log what is different from before.

    Raises ChangeLogError when the log cannot go on with them.
    """
    before, now = writer.options, options
    changes = {} if before is None else before.changes(now)
    changes.pop("log_format", None)
    writer.use(now, said=changes)
    lsn = writer.position.complete_lsn
    if changes:
        _LOG.warning("the log goes on with other options: %s", "; ".join(map(_described, changes.items())))
        writer.append_event(OPTIONS_CHANGED, lsn, **changes)
    told = {"slot": now.slot, "timeline": now.timeline, "server_version": now.server_version}
    writer.append_event(CONNECTED, lsn, **told)


def _described(change: tuple[str, tuple[Any, Any]]) -> str:
    name, (before, now) = change
    return f"{name}: {now!r}, before {before!r}"
