"""Which log a log is: whoever keeps a position of one must not apply it to another.

A seq says nothing of the log that it is a position of: every log counts from 0. Neither does a slot, which may be
created again under its name, nor a database, which several logs may be captured from. So each log has an id, made when
its first segment is written and never changed; compaction and prune leave it alone, and a copy of the directory has the
same. It stands in a file of its own: the note ``.confirmed.json`` may be removed, and is written again and again.

A log that lost its slot, and resumed with a new one (``on_lost_slot="snapshot"``), remains the same. A server that went
through pg_upgrade has another system identifier, which a log cannot follow: there a new log begins.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.store import LogStore, MissingFileError
from pgoutput_construct.errors import ChangeLogError

__all__ = ["LogIdentity", "ensure_id", "identity_of"]

_FILE: Final = ".identity.json"


@dataclass(frozen=True)
class LogIdentity:
    """What tells a log from others."""

    system_identifier: str
    """The cluster, as ``IDENTIFY_SYSTEM`` names it."""
    database: str
    """The database in it."""
    slot: str
    """The slot that the log was last captured from."""
    id: str | None = None
    """The log's own id; None in a log of an earlier version, until something is written into it."""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` returns; raise KeyError for anything else."""
        identifier, database, slot = (str(content[name]) for name in ("system_identifier", "database", "slot"))
        return cls(identifier, database, slot, content.get("id"))

    def to_json(self) -> dict[str, Any]:
        """Return it as values of JSON that a person can read."""
        return asdict(self)

    def differences(self, other: "LogIdentity") -> list[str]:
        """Name what makes ``other`` another log, as ``name: here, not there``; nothing for the same log.

        The id decides: a slot may be another one later. A log that had none when this identity was noted gets one
        later; it is then known by the rest.
        """
        if self.id is not None and self.id == other.id:
            return []
        mine, theirs = self.to_json(), other.to_json()
        names = [name for name in mine if self.id is not None or name != "id"]
        different = [name for name in names if mine[name] != theirs[name]]
        return [f"{name}: {mine[name] or 'none'}, not {theirs[name] or 'none'}" for name in different]


def ensure_id(store: LogStore) -> str:
    """Return the id of a log, which gets one where it has none; its writer alone may call this."""
    known = _read(store)
    if known is None:
        known = uuid.uuid4().hex
        store.write(_FILE, json.dumps({"id": known}).encode("ascii"))
    return known


def identity_of(log: ChangeLog) -> LogIdentity:
    """Return what tells a log from others; raises ChangeLogError where the file that has its id is damaged."""
    options = log.options
    return LogIdentity(options.system_identifier, options.database, options.slot, _read(log.store))


def _read(store: LogStore) -> str | None:
    try:
        return str(json.loads(store.read(_FILE))["id"])
    except MissingFileError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ChangeLogError(
            f"{store.place(_FILE)}: damaged: it has the id of the log, which its readers know it by: write "
            f'{{"id": "..."}} with the id that a warehouse has noted (_warehouse.json), or remove it: {error}'
        ) from error
