"""What a client asks of pgoutput, checked before the server sees it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgoutput_construct.postgres.connection import ReplicationError
from pgoutput_construct.wire.messages import OPTION_SERVERS, OPTION_VALUES, PROTOCOL_VERSIONS
from pgoutput_construct.wire.options import Streaming

if TYPE_CHECKING:
    from pgoutput_construct.wire import Lsn

__all__ = ["StreamOptions", "Streaming", "best_proto_version"]

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

    def command(self, start_lsn: "Lsn") -> bytes:
        """Write the ``START_REPLICATION`` command that starts at ``start_lsn``, or where the slot is if
        later.
        """
        options = ", ".join(f"{_identifier(key)} {_literal(value)}" for key, value in self._pairs().items())
        slot = _identifier(self.slot)
        position = f"{start_lsn >> 32:X}/{start_lsn & 0xFFFFFFFF:X}"
        return f"START_REPLICATION SLOT {slot} LOGICAL {position} ({options})".encode()

    def _pairs(self) -> dict[str, str]:
        names = ",".join(_identifier(name) for name in self.publications)
        pairs: dict[str, Any] = {"proto_version": self.proto_version, "publication_names": names}
        if self.streaming != "off":
            pairs["streaming"] = self.streaming
        if self.origin is not None:
            pairs["origin"] = self.origin
        pairs |= {name: "true" for name in ("binary", "messages", "two_phase") if getattr(self, name)}
        return {key: str(value) for key, value in pairs.items()}

    def _need(self, option: str, proto_version: int) -> None:
        if self.proto_version < proto_version:
            raise ReplicationError(f"{option} needs proto_version {proto_version} or higher, not {self.proto_version}")


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    # Not psycopg's: replication commands (repl_scanner.l) have no E'' strings, a backslash is itself.
    return "'" + text.replace("'", "''") + "'"
