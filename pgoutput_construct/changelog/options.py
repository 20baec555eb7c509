"""What a client asks of pgoutput, checked before the server sees it."""

from dataclasses import asdict, dataclass

from pgoutput_construct.errors import ReplicationError
from pgoutput_construct.wire.messages import OPTION_SERVERS, OPTION_VALUES, PROTOCOL_VERSIONS
from pgoutput_construct.wire.options import Streaming

__all__ = ["LOG_FORMAT", "LogOptions", "StreamOptions", "Streaming", "best_proto_version"]

_STREAMING_SINCE = OPTION_VALUES["streaming"]
_SWITCHES = ("binary", "messages", "origin", "two_phase")
"""The options that are on or off (origin: asked for or not), and that older servers do not have."""


def best_proto_version(server_version: int) -> int:
    """Return the highest protocol version that a server (``180004`` for 18.4) and this package both know.

    Source: ``LOGICALREP_PROTO_MAX_VERSION_NUM`` in ``logicalproto.h`` of each release.
    """
    major = server_version // 10000
    return max((version for version, first in PROTOCOL_VERSIONS.items() if first <= major), default=1)


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """The options of ``START_REPLICATION ... LOGICAL`` that pgoutput knows.

    Source: PostgreSQL documentation, section "Logical Streaming Replication Parameters".
    """

    slot: str
    """Name of the replication slot."""
    publications: tuple[str, ...]
    """Names of the publications, at least one."""
    proto_version: int = 1
    """Protocol version, 1 to 4."""
    streaming: Streaming = "off"
    """Needs protocol version 2 for ``on``, 4 for ``parallel``."""
    binary: bool = False
    """Values in their types' binary format, where there is one (PostgreSQL 14)."""
    messages: bool = False
    """Also what ``pg_logical_emit_message`` writes (PostgreSQL 14)."""
    origin: str | None = None
    """``none``: only changes that no replication brought; ``any`` or None: all changes (PostgreSQL 16)."""
    two_phase: bool = False
    """Prepared transactions when they are prepared; needs protocol version 3."""

    def __post_init__(self) -> None:
        if not self.slot or not self.publications or not all(self.publications):
            raise ReplicationError("name a slot and at least one publication")
        needed = _STREAMING_SINCE.get(self.streaming)
        if needed is None:
            raise ReplicationError(f"streaming is {self.streaming!r}: choose one of {', '.join(_STREAMING_SINCE)}")
        self._need(f"streaming={self.streaming}", needed)
        if self.two_phase:
            self._need("two_phase", 3)

    def check_server(self, server_version: int) -> None:
        """Raise ReplicationError when a server of this version (``180004``) does not know an option."""
        major = server_version // 10000
        if not 1 <= self.proto_version <= best_proto_version(server_version):
            best = best_proto_version(server_version)
            raise ReplicationError(
                f"PostgreSQL {major} does not know proto_version={self.proto_version}: choose 1 to {best}"
            )
        for option in _SWITCHES:
            since = OPTION_SERVERS[option]
            if getattr(self, option) and major < since:
                raise ReplicationError(f"the option {option} needs PostgreSQL {since}, the server is {major}")

    def _need(self, option: str, proto_version: int) -> None:
        if self.proto_version < proto_version:
            raise ReplicationError(f"{option} needs proto_version {proto_version} or higher, not {self.proto_version}")


LOG_FORMAT = 1
"""The version of this format; a reader refuses another."""


@dataclass(frozen=True, kw_only=True)
class LogOptions(StreamOptions):
    """The options under which a log was captured: all that its payloads need to be decoded."""

    server_version: int
    """Of the server when the segment was written, such as 180004 for 18.4."""
    system_identifier: str
    """The cluster (``IDENTIFY_SYSTEM``): positions of another cannot be compared."""
    database: str
    """The database that was captured."""
    log_format: int = LOG_FORMAT
    """The version of the log's format."""

    def differences(self, other: "LogOptions") -> list[str]:
        """Name the options in which ``other`` cannot go on with this log, as ``name: here, not there``."""
        mine, theirs = asdict(self), asdict(other)
        keys = [key for key in mine if key != "server_version" and mine[key] != theirs[key]]
        return [f"{key}: {mine[key]!r}, not {theirs[key]!r}" for key in keys]
