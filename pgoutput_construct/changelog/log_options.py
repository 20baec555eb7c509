"""The options of START_REPLICATION, checked before the server sees them, and those under which a log was captured."""

from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.wire.options import LAYOUT_OPTIONS, Streaming, problems
from pgoutput_construct.wire.protocol import OPTIONS, PROTOCOL_VERSIONS, ReplicationOptions

__all__ = ["LOG_FORMAT", "LogOptions", "StreamOptions", "Streaming", "best_proto_version"]


def best_proto_version(server_version: int) -> int:
    """Return the highest protocol version that a server (``180004`` for 18.4) and this package both support.

    Source: ``LOGICALREP_PROTO_MAX_VERSION_NUM`` in ``logicalproto.h`` of each release.
    """
    major = server_version // 10000
    return max((version for version, first in PROTOCOL_VERSIONS.items() if first <= major), default=1)


@dataclass(frozen=True, kw_only=True)
class StreamOptions(ReplicationOptions):
    """The options of pgoutput in ``START_REPLICATION ... LOGICAL``, as the specification names them.

    Source: PostgreSQL documentation, section "Logical Streaming Replication Parameters".
    """

    slot: str
    """Name of the replication slot."""
    publications: tuple[str, ...]
    """Names of the publications, at least one."""

    def __post_init__(self) -> None:
        names = (self.slot, *(self.publications if isinstance(self.publications, tuple | list) else ("",)))
        if not self.publications or not all(isinstance(name, str) and name for name in names):
            raise ReplicationError("name a slot and at least one publication")
        for problem in problems(self.replication_options()):
            raise ReplicationError(problem)

    def replication_options(self) -> dict[str, object]:
        """Return the options without the names of slot and publications."""
        return {field.name: getattr(self, field.name) for field in fields(ReplicationOptions)}

    def layout(self) -> dict[str, Any]:
        """Return the options that determine the layout of messages: the keywords of ``Session``."""
        return {name: getattr(self, name) for name in LAYOUT_OPTIONS}

    def non_default(self) -> dict[str, object]:
        """Return the options that differ from PostgreSQL's defaults."""
        return {name: value for name, value in self.replication_options().items() if value != OPTIONS[name].default}

    def check_server(self, server_version: int) -> None:
        """Raise ReplicationError if a server of this version (``180004`` for 18.4) does not support an option."""
        major, best = server_version // 10000, best_proto_version(server_version)
        if self.proto_version > best:
            choice = f"choose 1 to {best}"
            raise ReplicationError(f"PostgreSQL {major} does not support proto_version={self.proto_version}: {choice}")
        for name, value in self.non_default().items():
            option = OPTIONS[name]
            needs = {name: option.server}
            if option.values:
                needs[f"{name}={value!r}"] = option.values[value].server
            for what, server in needs.items():
                if major < server:
                    raise ReplicationError(f"the option {what} needs PostgreSQL {server}, the server is {major}")


LOG_FORMAT: Final = 3
"""The log format that is written and read."""

_ONE_LOG: Final = ("system_identifier", "database")
_SAID_BY_EVENT: Final = ("slot", "timeline")


@dataclass(frozen=True, kw_only=True)
class LogOptions(StreamOptions):
    """The options under which a segment was captured: everything that is needed to decode its payloads.

    They may change from one segment to the next, except for the cluster and the database; a change of the slot or the
    timeline is recorded by an event (OPTIONS_CHANGED) in the first segment that has it.
    """

    server_version: int
    """The server's version when the segment was written, such as 180004 for 18.4."""
    system_identifier: str
    """The cluster (``IDENTIFY_SYSTEM``): LSNs of different clusters cannot be compared."""
    database: str
    """The database that was captured."""
    timeline: int | None = None
    """The server's timeline (``IDENTIFY_SYSTEM``); None: unknown."""
    timeline_origin: str | None = None
    """The previous timeline and the LSN at which this one left it, such as ``1 0/3000148``; empty for the first
    timeline. Two standbys that are promoted begin timelines of the same number, which this distinguishes. None if it
    is unknown."""
    log_format: int = LOG_FORMAT
    """The log format of the segment."""

    def changes(self, other: "LogOptions") -> dict[str, tuple[Any, Any]]:
        """Return the options that differ in ``other``, by name: the value here and the value there."""
        if self == other:
            return {}
        mine, theirs = asdict(self), asdict(other)
        return {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}

    def differences(self, other: "LogOptions", said: Collection[str] = ()) -> list[str]:
        """Return why ``other`` cannot continue this log, as ``name: here, not there``; empty if it can.

        Args:
            other: The options of the next segment.
            said: The options whose change is recorded by an event.
        """
        changes = self.changes(other)
        silent = [name for name in _SAID_BY_EVENT if name not in said and None not in changes.get(name, ())]
        return [
            f"{name}: {changes[name][0]!r}, not {changes[name][1]!r}"
            for name in (*_ONE_LOG, *silent)
            if name in changes
        ]
