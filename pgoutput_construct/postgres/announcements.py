"""What the log and the operator are told when a stream begins."""

import logging
from typing import Any

from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.postgres.preparation import Prepared
from pgoutput_construct.wire import Lsn

__all__ = ["announce"]

_LOG = logging.getLogger("pgoutput_construct")


def announce(writer: LogWriter, prepared: Prepared) -> None:
    """Let ``writer`` go on under the options of this connection; write into the log what is different from before.

    Raises ChangeLogError when the log cannot go on with them.
    """
    before, now = writer.options, prepared.options
    writer.use(now)
    lsn = writer.position.complete_lsn
    if before is not None and (changes := _changes(before, now)):
        _LOG.warning("the log goes on with other options: %s", "; ".join(map(_described, changes.items())))
        _tell(writer, "options", lsn, **changes)
    _tell(writer, "connected", lsn, timeline=now.timeline, server_version=now.server_version, slot=now.slot)


def _changes(before: Any, now: Any) -> dict[str, list[Any]]:
    names = [name for name in vars(now) if name != "log_format" and getattr(before, name) != getattr(now, name)]
    return {name: [getattr(before, name), getattr(now, name)] for name in names}


def _described(change: tuple[str, list[Any]]) -> str:
    return f"{change[0]}: {change[1][1]!r}, before {change[1][0]!r}"


def _tell(writer: LogWriter, name: str, lsn: Lsn, **details: Any) -> None:
    append_event = getattr(writer, "append_event", None)
    if append_event is not None:
        append_event(name, lsn, **details)
