"""What ``capture`` is to do: the options that callers give."""

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any

from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.writer import SegmentLimits
from pgoutput_construct.postgres._capture.gaps import OnLostSlot
from pgoutput_construct.postgres._capture.pump import CaptureProgress
from pgoutput_construct.postgres._catalog.catalog_watch import OnRewrite
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire.protocol import GivenOptions

__all__ = ["CaptureOptions", "given_options", "names_of"]


@dataclass(frozen=True, repr=False)
class CaptureOptions(GivenOptions):
    """The arguments of ``capture``, but for the connection string; without a repr, as addresses may have keys.

    Conditions to end (``until_lsn``, ``until_idle``, ``duration``) count from where the capture begins: the slot is
    read, and the server's history is that of the log. With such a condition, a capture that cannot begin, since the
    server is unreachable or the slot has another reader, raises the error after ``reconnect_seconds``, or a minute.

    ``proto_version`` and ``streaming`` default to those of the log; in a new log, to the best that the server supports.
    The options of START_REPLICATION may differ from those of earlier captures into the log, which then records an
    event.
    """

    slot: str
    """The name of the replication slot, which must exist unless ``create_slot`` is set."""
    publications: Iterable[str]
    """The names of the publications, which must exist, and be older than the slot. They may differ from those of
    earlier captures into the log, which then records an event."""
    directory: Address
    """The address of the change log: a directory, which is created if it does not exist, or a URI."""
    _: KW_ONLY
    limits: SegmentLimits | None = None
    """When a segment is cut."""
    until_lsn: Lsn | None = None
    """End when everything before this LSN is durable; None for no such end."""
    until_idle: float | None = None
    """End when the server has had nothing to send for this many seconds."""
    duration: float | None = None
    """End this many seconds after the capture began."""
    stop: Callable[[], bool] | None = None
    """Called about every 50 ms; True ends the capture."""
    on_progress: Callable[[CaptureProgress], None] | None = None
    """Called after each segment, and about once a second. ``stop`` and ``on_progress`` are called on a thread of their
    own, so that slow callbacks do not delay the stream; progress reports are merged meanwhile."""
    create_slot: bool = False
    """Create the slot if it does not exist and the log is empty. The server waits for the transactions that are writing
    now, which are logged."""
    failover: bool = False
    """Create the slot with the option failover: standbys synchronize it, and a capture can continue with it after a
    failover (PostgreSQL 17; the standby needs ``sync_replication_slots``)."""
    slot_timeout: float | None = None
    """Seconds after which creating the slot fails; None for no limit."""
    new_log: bool = False
    """Start a log in an empty directory with a slot that this log's capture has not created. Without it that is an
    error: the log may be on a volume that is not mounted, and what was confirmed is not sent again."""
    create_publication: Iterable[str] = ()
    """Tables, as in SQL, and ``schema.*`` for all tables of a schema (PostgreSQL 15, by a superuser). The publication,
    of which there must be one, is created for them if it does not exist. Each table needs a replica identity, unless
    ``publish`` excludes updates and deletes."""
    publish: Iterable[str] = ()
    """The operations of a publication that is created: ``insert``, ``update``, ``delete``, ``truncate``; all of them by
    default."""
    file_mode: int | None = None
    """The mode of the log's files, such as 0o640: of existing ones, and of all that are written into the log from now
    on. By default 0o600; new directories have 0o700."""
    heartbeat: float | None = None
    """Seconds between two logical messages (prefix ``pgoutput_construct``) that the capture writes, so that the slot
    advances while nobody else writes. The role needs no privileges on tables. Not on a standby."""
    transactional_heartbeat: bool = False
    """Write each of them in a transaction, with Begin and Commit."""
    status_interval: float = 10.0
    """Seconds between two status updates to the server, and between two polls of the slot. If the server is silent for
    three intervals, although a reply was requested, the capture reconnects, unless the slot's walsender is active: it
    may decode unpublished changes for hours."""
    reconnect_seconds: float | None = None
    """Seconds after the last contact for which the capture reconnects; None for no limit, but of 60 seconds for a first
    connection if there is a condition to end."""
    snapshot: bool = False
    """Keep the log complete from the first row of each published table: tables without a copy in the log are copied
    alongside the stream, now and when they are published later. A slot that is created provides the snapshot.
    ``until_lsn`` and ``until_idle`` then wait for all copies to be durable. The role needs SELECT on the tables.
    Without this option only the copies that ``snapshot()`` requests are made."""
    workers: int = 2
    """The number of connections that copy a table."""
    snapshot_rate: float | None = None
    """The bytes a second that table copies read at most, over all connections, of what the server sends or of its
    pages, whichever is more; None for no limit. Pages that were read before, and are brought up to date, are not
    counted."""
    on_rewrite: OnRewrite = "snapshot"
    """What to do if rows of a table change without messages, for example if ALTER TABLE rewrites them: ``snapshot``
    copies the table again, ``stop`` raises an error with the remedy."""
    on_lost_slot: OnLostSlot = "stop"
    """What to do if changes were lost, because the slot was dropped, invalidated or moved, or the server has another
    history: ``snapshot`` continues, if necessary with a new slot, and copies all tables again; ``stop`` raises an error
    with the remedy."""
    handle_signals: bool = True
    """Whether SIGINT and SIGTERM end the capture (in the main thread only)."""


def given_options(options: CaptureOptions) -> dict[str, Any]:
    """Return the options of START_REPLICATION that were given; the others are chosen from the log and the server."""
    values = {field.name: getattr(options, field.name) for field in fields(GivenOptions)}
    return {name: value for name, value in values.items() if value is not None}


def names_of(given: Iterable[str]) -> tuple[str, ...]:
    """Return names, of which one may be given as a text."""
    return (given,) if isinstance(given, str) else tuple(given)
