"""The checks before a stream begins: whether server, slot and publications fit the log; and creating a slot."""

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import psycopg

from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.changelog.log_options import LogOptions, best_proto_version
from pgoutput_construct.changelog.writer import LogWriter
from pgoutput_construct.errors import ChangeLogError, ReplicationError
from pgoutput_construct.postgres._capture.capture_options import CaptureOptions, given_options
from pgoutput_construct.postgres._capture.gaps import REMEDY, LogGapError, Recovery, restart_log
from pgoutput_construct.postgres._capture.overlap import Overlap, find_overlap
from pgoutput_construct.postgres._snapshot.snapshots import (
    LostSnapshotError,
    check_can_copy,
    imported_snapshot,
    read_snapshot,
)
from pgoutput_construct.postgres.connection import (
    Connection,
    check_wal_level,
    current_lsn,
    fetch_row,
    identify,
    is_standby,
    reading_answer,
)
from pgoutput_construct.postgres.publications import (
    NewPublication,
    check_publications,
    check_tables,
    ensure_publication,
    read_publications,
    read_published,
)
from pgoutput_construct.postgres.replication_slots import (
    ExportedSnapshot,
    LostSlotError,
    check_slot,
    check_unread,
    create_slot,
    create_slot_with_snapshot,
    slot_health,
)
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire.protocol import OPTIONS

__all__ = [
    "CapturePlan",
    "PreparedCapture",
    "check_same_server",
    "parse_history",
    "prepare",
]


_LOG = logging.getLogger("pgoutput_construct")


@dataclass(frozen=True)
class CapturePlan:
    """What a capture reads, and what it may create."""

    options: CaptureOptions
    """Its options."""
    publications: tuple[str, ...]
    """The names of the publications."""
    new_publication: NewPublication | None = None
    """The publication to create if it does not exist."""
    copies: Callable[[], Connection] | None = None
    """Opens the connection that creates the slot and holds its snapshot, for the first table copies."""
    warned: set[str] = field(default_factory=set)
    """Warnings that were logged already: each is logged once."""

    @property
    def slot(self) -> str:
        """The name of the slot."""
        return self.options.slot


@dataclass(frozen=True)
class PreparedCapture:
    """A server that passed the checks: its slot may be read into the log."""

    options: LogOptions
    """All options, resolved."""
    current_lsn: Lsn
    """The end of the server's flushed WAL."""
    confirmed_lsn: Lsn
    """The confirmed LSN of the slot."""
    created_slot: bool
    """Whether the slot was created by this call."""
    exported: ExportedSnapshot | None = None
    """The snapshot that was exported with the new slot, for copying tables."""
    snapshot: Snapshot | None = None
    """The transactions that are visible in ``exported``."""
    overlap: Overlap | None = None
    """What the slot sends again of the log; None if it is not before the log's end."""


def prepare(connection: Connection, plan: CapturePlan, writer: LogWriter, recovery: Recovery) -> PreparedCapture:
    """Check everything that can be checked, in an order in which a failure leaves nothing behind.

    Args:
        connection: A replication connection, which must not become the stream's: queries about a table, such as those
            on pg_publication_tables, load its current columns into the backend's caches, by which it would then decode
            older changes (pg_logical_slot_get_changes() invalidates these caches first, START_REPLICATION does not).
        plan: What the capture reads, and what it may create.
        writer: The writer of the log.
        recovery: Updated when the log is restarted: it outlives a connection that is lost meanwhile.

    Raises:
        ReplicationError: The server, its slot or a publication does not fit.
        ChangeLogError: The log does not fit the server, or cannot be read.
    """
    gap: LogGapError | LostSlotError | None = recovery.gap
    if gap is None:
        try:
            return _prepare(connection, plan, writer)
        except (LogGapError, LostSlotError) as found:
            if plan.options.on_lost_slot == "stop":
                raise
            gap = found
    check_unread(connection, plan.slot)
    facts, _ = _identify(connection, writer)
    options = _resolve_options(plan, facts, writer.options)
    _check_identity(options, writer)  # restart_log may drop the slot: not one of another server
    restart_log(connection, options, writer, gap)
    recovery.gap, recovery.restarted = None, True
    return _prepare(connection, plan, writer)


def _prepare(connection: Connection, plan: CapturePlan, writer: LogWriter) -> PreparedCapture:
    facts, timeline = _identify(connection, writer)
    check_wal_level(connection)
    standby = is_standby(connection)
    if plan.options.heartbeat is not None and standby:
        raise ReplicationError("the server is a standby, which cannot write a heartbeat: write one on its primary")
    options = _resolve_options(plan, facts, writer.options)
    options.check_server(facts["server_version"])
    _check_identity(options, writer)
    _check_history(timeline, plan, writer)
    _check_publications(connection, plan, is_new=not writer.noted_lsn)
    with ExitStack() as undoing:
        created, exported = _ensure_slot(connection, plan, options, writer)
        snapshot = None
        if exported is not None:
            undoing.callback(exported.close)
            snapshot = _read_exported_snapshot(connection, exported)
        if not created:
            _check_empty_log(plan, check_slot(connection, plan.slot), writer)
            check_unread(connection, plan.slot)
        confirmed = check_slot(connection, plan.slot)  # again: nobody else moves it from here on
        current = current_lsn(connection)
        if confirmed != writer.position.complete_lsn:
            writer.refresh()
        _check_slot_position(plan, confirmed, writer)
        _check_server_position(current, standby, writer)
        overlap = find_overlap(writer.store, confirmed, writer.position, writer.note) if writer.noted_lsn else None
        undoing.pop_all()
    return PreparedCapture(options, current, confirmed, created, exported, snapshot, overlap)


def _identify(connection: Connection, writer: LogWriter) -> "tuple[dict[str, Any], _Timeline]":
    """Return the fields of LogOptions that identify the server, and its timeline."""
    facts = identify(connection)
    timeline = _read_timeline(connection, facts["timeline"])
    number, logged = writer.noted_timeline
    origin = logged if timeline.problem is not None and number == timeline.number else timeline.origin(timeline.number)
    return facts | {"timeline_origin": origin}, timeline


def check_same_server(connection: Connection, options: LogOptions) -> None:
    """Raise a transient ReplicationError unless ``connection`` is to the server for which ``options`` were resolved."""
    different = [name for name, value in identify(connection).items() if getattr(options, name) != value]
    if different:
        raise ReplicationError(
            f"two connections led to servers with different values of {' and '.join(different)}", transient=True
        )


def _resolve_options(plan: CapturePlan, facts: dict[str, Any], earlier: LogOptions | None) -> LogOptions:
    """Resolve the options that were not given: from the log, or else the best that the server supports."""
    given = given_options(plan.options)
    version = facts["server_version"]
    proto = given.get("proto_version") or (earlier.proto_version if earlier else best_proto_version(version))
    best = [name for name, value in OPTIONS["streaming"].values.items() if proto >= value.since][-1]
    defaults = {"proto_version": proto, "streaming": earlier.streaming if earlier else best}
    return LogOptions(slot=plan.slot, publications=plan.publications, **facts, **{**defaults, **given})


def _check_identity(options: LogOptions, writer: LogWriter) -> None:
    changed = () if writer.options is None else writer.options.differences(options, said=("slot", "timeline"))
    if changed:
        raise ChangeLogError(
            f"the log in {writer.store} belongs to another server or database ({'; '.join(changed)}); connect to that "
            "one, or use another directory and another slot"
        )


def _check_history(timeline: "_Timeline", plan: CapturePlan, writer: LogWriter) -> None:
    logged, origin = writer.noted_timeline
    if logged is not None:
        _check_timeline(timeline, logged, origin, writer.noted_lsn, writer.store)
        if logged != timeline.number:
            text = "the server is now on timeline %d, previously %d: it was promoted or restored"
            _LOG.warning(text, timeline.number, logged)
    if timeline.problem is not None:
        _warn(plan, f"{timeline.problem}; until then another server on a timeline of this number cannot be detected")


def _check_publications(connection: Connection, plan: CapturePlan, is_new: bool) -> None:
    if plan.new_publication is not None:
        if len(plan.publications) != 1:
            raise ReplicationError("only one publication can be created: name it alone")
        ensure_publication(connection, plan.publications[0], plan.new_publication)
    check_publications(connection, plan.publications)
    found = read_publications(connection, plan.publications)
    if is_new:
        check_tables(found)
    for facts in found:
        for warning in facts.warnings():
            _warn(plan, warning)


def _warn(plan: CapturePlan, warning: str) -> None:
    """Log a warning once per capture."""
    if warning not in plan.warned:
        plan.warned.add(warning)
        _LOG.warning("%s", warning)


def _ensure_slot(
    connection: Connection, plan: CapturePlan, options: LogOptions, writer: LogWriter
) -> tuple[bool, ExportedSnapshot | None]:
    """Create the slot if it is requested and does not exist; return whether it was created, and its snapshot."""
    if slot_health(connection, plan.slot):
        return False, None
    if writer.noted_lsn:  # also without create_slot: a slot that is then created by hand would leave a gap
        raise LogGapError(
            f"slot {plan.slot!r} no longer exists, and a new one would not have the changes since the log in "
            f"{writer.store} ended, at {writer.noted_lsn}; {REMEDY}"
        )
    if not plan.options.create_slot and (writer.durable_seq < 0 or plan.options.on_lost_slot == "stop"):
        return False, None
    settings: Any = {
        "two_phase": options.two_phase,
        "failover": plan.options.failover,
        "timeout": plan.options.slot_timeout,
    }
    if plan.copies is not None:
        check_can_copy(connection)
    with ExitStack() as undoing:
        writer.note_slot(plan.slot)
        undoing.callback(writer.note_slot, None)
        exported = None
        if plan.copies is None:
            create_slot(connection, plan.slot, **settings)
        else:
            published = read_published(connection, plan.publications)
            holder = plan.copies()
            undoing.callback(holder.close)
            exported = create_slot_with_snapshot(holder, plan.slot, published=published, **settings)
        undoing.pop_all()
    return True, exported


def _read_exported_snapshot(connection: Connection, exported: ExportedSnapshot) -> Snapshot:
    try:
        with imported_snapshot(connection, exported.name):
            return read_snapshot(connection, exported.lsn)
    except (LostSnapshotError, psycopg.Error) as error:
        text = f"the connection that holds the snapshot of the slot was lost: {error}"
        raise ReplicationError(text, transient=True) from error


def _check_empty_log(plan: CapturePlan, confirmed: Lsn, writer: LogWriter) -> None:
    """Raise ChangeLogError if the log is empty and its slot was not created by the capture of this log.

    The server does not say whether the slot was read before: pg_stat_replication_slots starts from zero after a crash
    of the server, a promotion and pg_stat_reset_replication_slot().
    """
    if plan.options.new_log or writer.noted_lsn or writer.durable_seq >= 0:
        return
    writer.refresh()
    if writer.noted_lsn or writer.durable_seq >= 0 or writer.noted_slot == plan.slot:
        return
    raise ChangeLogError(
        f"the log in {writer.store} is empty, but slot {plan.slot!r} exists already: the server does not send again "
        f"what was confirmed, up to {confirmed}; if a log should be there, for example on a volume that is not "
        "mounted, restore it; to start a new log with the changes that the slot still has, give --new-log "
        "(new_log=True)"
    )


def _check_slot_position(plan: CapturePlan, confirmed: Lsn, writer: LogWriter) -> None:
    noted = writer.noted_lsn
    if noted and confirmed > noted:
        raise LogGapError(
            f"slot {plan.slot!r} is at {confirmed}, but the log in {writer.store} ends at {noted}: the slot was "
            "re-created, or moved by another reader, or the log lost its last segments; the log lacks the changes in "
            f"between; {REMEDY}"
        )


def _check_server_position(current: Lsn, standby: bool, writer: LogWriter) -> None:
    noted = writer.noted_lsn
    if noted <= current:
        return
    if standby:
        # After a restart it replays from its last checkpoint before it requests more WAL from its primary.
        raise ReplicationError(
            f"the standby has received and replayed its primary's WAL up to {current}, the log in {writer.store} "
            f"ends at {noted}: waiting for it to catch up",
            transient=True,
        )
    raise LogGapError(
        f"the server's WAL ends at {current}, before the log in {writer.store} does ({noted}): the server has lost "
        f"WAL, or was restored from a backup; {REMEDY}",
        void_after=current,
    )


_REMEDY = (
    f"; {REMEDY} (to keep standbys ahead of logical slots, list their physical slots in "
    "synchronized_standby_slots, PostgreSQL 17)"
)


@dataclass(frozen=True)
class _Timeline:
    """A timeline and its ancestors: a promotion, or a point-in-time recovery, begins a new one."""

    number: int
    """The server's current timeline."""
    ends: Mapping[int, Lsn] = field(default_factory=dict)
    """The ancestor timelines, each with the LSN at which the server left it."""
    problem: ReplicationError | None = None
    """Why the history is unknown; None if it is known."""

    def origin(self, number: int) -> str | None:
        """Return where a timeline branched off: its parent and the LSN, the empty string for the first timeline.

        None if the history is unknown.
        """
        if self.problem is not None:
            return None
        parent = max((earlier for earlier in self.ends if earlier < number), default=None)
        return "" if parent is None else f"{parent} {self.ends[parent]}"


def _read_timeline(connection: Connection, number: int) -> _Timeline:
    """Return the history of the server's current timeline ``number``, by the command TIMELINE_HISTORY.

    Source: PostgreSQL documentation, "Streaming Replication Protocol". The first timeline has no history. A server
    also runs without the history file of its own timeline: then the result has a ``problem``.
    """
    if number <= 1:
        return _Timeline(number)
    doing = f"the history of timeline {number} cannot be read; restore its file (pg_wal/*.history)"
    try:
        with reading_answer(doing):
            return _Timeline(number, parse_history(fetch_row(connection, f"TIMELINE_HISTORY {number}", doing=doing)[1]))
    except ReplicationError as error:
        if error.transient:
            raise
        return _Timeline(number, problem=error)


def parse_history(content: Any) -> dict[int, Lsn]:
    """Parse a timeline history file: one line per ancestor, with its number, the LSN where it was left, and a reason.

    Returns the LSNs by timeline.
    """
    text = bytes(content).decode("utf-8", "replace") if isinstance(content, bytes | memoryview) else str(content)
    lines = (line.split() for line in text.splitlines())
    return {int(words[0]): Lsn(words[1]) for words in lines if len(words) > 1 and not words[0].startswith("#")}


def _check_timeline(server: _Timeline, logged: int, origin: str | None, position: Lsn, log: object) -> None:
    """Check that the end of the log is in the server's history.

    Args:
        server: The server's timeline with its ancestors.
        logged: The number of the log's timeline.
        origin: Where that timeline branched off (``_Timeline.origin``); None for a log that does not record it. Then
            only numbers are compared, although every promoted standby takes the next number, whatever others did.
        position: The LSN at which the log ends.
        log: The address of the log, for the error.

    Raises:
        LogGapError: It is not.
        ReplicationError: The timelines differ, and the server's history is unknown.
    """
    if server.problem is not None:
        if logged != server.number:
            raise server.problem
        return
    if logged != server.number and logged not in server.ends:
        raise LogGapError(
            f"the log in {log} is on timeline {logged}, which is no ancestor of the server's timeline "
            f"{server.number}: this is not the server that was captured, but, for example, an old primary after a "
            f"failover{_REMEDY}",
            void_after=Lsn(0),
        )
    own = server.origin(logged)
    if origin is not None and own is not None and origin != own:
        raise LogGapError(
            f"the log in {log} is on a timeline {logged} that {_describe_origin(origin)}, the server's timeline "
            f"{logged} {_describe_origin(own)}: another standby was promoted, whose changes are not those of the "
            f"log{_REMEDY}",
            void_after=_common_lsn(origin, own),
        )
    end = server.ends.get(logged)
    if end is not None and position > end:
        raise LogGapError(
            f"the log in {log} ends at {position} on timeline {logged}, but the server left that timeline at {end} for "
            f"timeline {server.number}: it was promoted or restored before it had received {position - end} bytes of "
            f"WAL that the log has, and wrote other changes at their LSNs{_REMEDY}",
            void_after=end,
        )


def _describe_origin(origin: str) -> str:
    """Describe where a timeline branched off."""
    number, _, lsn = origin.partition(" ")
    return f"branched off timeline {number} at {lsn}" if origin else "is the first one"


def _common_lsn(one: str, other: str) -> Lsn:
    """Return the LSN up to which two timelines share their history, 0/0 if that is unknown."""
    (number, _, lsn), (same, _, end) = one.partition(" "), other.partition(" ")
    return min(Lsn(lsn), Lsn(end)) if number and number == same else Lsn(0)
