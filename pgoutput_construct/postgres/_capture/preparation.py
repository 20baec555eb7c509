"""What a capture checks before its first message: its server, slot and publications against its log."""

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
from pgoutput_construct.postgres._capture.gaps import REMEDY, LogGapError, OnLostSlot, Recovery, begin_anew
from pgoutput_construct.postgres._capture.overlap import Overlap, find_overlap
from pgoutput_construct.postgres._snapshot.snapshots import LostSnapshotError, check_can_copy, imported, read_snapshot
from pgoutput_construct.postgres.connection import (
    Connection,
    check_wal_level,
    current_lsn,
    fetch_row,
    identify,
    is_standby,
)
from pgoutput_construct.postgres.publications import (
    NewPublication,
    check_publications,
    check_tables,
    ensure_publication,
    read_publications,
    read_published,
)
from pgoutput_construct.postgres.slots import (
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
    "Plan",
    "Prepared",
    "check_same_server",
    "parse_history",
    "prepare",
]


_LOG = logging.getLogger("pgoutput_construct")


@dataclass(frozen=True)
class Plan:
    """What a capture was asked to read, and what it may make."""

    slot: str
    """The slot."""
    publications: tuple[str, ...]
    """The publications."""
    options: Mapping[str, Any]
    """Options of START_REPLICATION; None and what is left out is chosen."""
    create_slot: bool = False
    """Create the slot where there is none and the log is empty."""
    failover: bool = False
    """Standbys keep a copy of the slot that is created."""
    slot_timeout: float | None = None
    """Seconds for which the creation of the slot may wait for transactions; None: for ever."""
    new_log: bool = False
    """The log may be empty although the slot exists, and may have been read before."""
    new_publication: NewPublication | None = None
    """Create the publication where it does not exist."""
    copies: Callable[[], Connection] | None = None
    """Opens a connection that keeps the snapshot of a slot that is created, for the first copies of tables."""
    on_lost_slot: OnLostSlot = "stop"
    """What to do where changes are missing between the log and its slot."""
    writes: bool = False
    """The server must take what is written (a heartbeat)."""
    said: set[str] = field(default_factory=set)
    """Warnings that were logged: each once."""


@dataclass(frozen=True)
class Prepared:
    """A server that may be read into the log."""

    options: LogOptions
    """All options, none left open."""
    current_lsn: Lsn
    """The end of the server's WAL."""
    confirmed_lsn: Lsn
    """Where the slot is."""
    created_slot: bool
    """The slot was created just now."""
    exported: ExportedSnapshot | None = None
    """The snapshot of the slot that was created, for who copies tables."""
    snapshot: Snapshot | None = None
    """What it contains."""
    overlap: Overlap | None = None
    """What the slot sends again of the log, None where it is not before the log's end."""


def prepare(connection: Connection, plan: Plan, writer: LogWriter, recovery: Recovery) -> Prepared:
    """Check everything that can be checked, in an order in which a failure leaves nothing behind.

    ``connection`` must not become the stream's: a server that has looked at a table, as for pg_publication_tables,
    keeps its present columns in the connection's caches, and would then decode older changes by them (only
    pg_logical_slot_get_changes() empties these caches before it decodes, START_REPLICATION does not). ``recovery`` is
    kept up to date: it outlives a connection that is lost here. Raises ReplicationError and ChangeLogError.
    """
    gap: LogGapError | LostSlotError | None = recovery.gap
    if gap is None:
        try:
            return _prepare(connection, plan, writer)
        except (LogGapError, LostSlotError) as found:
            if plan.on_lost_slot == "stop":
                raise
            gap = found
    check_unread(connection, plan.slot)
    facts, _ = _identify(connection, writer)
    options = _resolve(plan, facts, writer.options)
    _check_identity(options, writer)  # a slot of another server is nobody's to drop
    begin_anew(connection, options, writer, gap)
    recovery.gap, recovery.begun_anew = None, True
    return _prepare(connection, plan, writer)


def _prepare(connection: Connection, plan: Plan, writer: LogWriter) -> Prepared:
    facts, timeline = _identify(connection, writer)
    check_wal_level(connection)
    standby = is_standby(connection)
    if plan.writes and standby:
        raise ReplicationError("the server is a standby, which takes no heartbeat: have its primary write one")
    options = _resolve(plan, facts, writer.options)
    options.check_server(facts["server_version"])
    _check_identity(options, writer)
    _check_history(timeline, plan, writer)
    _check_publications(connection, plan, is_new=not writer.noted_lsn)
    with ExitStack() as undoing:
        created, exported = _make_slot(connection, plan, options, writer)
        snapshot = None
        if exported is not None:
            undoing.callback(exported.close)
            snapshot = _read(connection, exported)
        if not created:
            _check_empty_log(plan, check_slot(connection, plan.slot), writer)
            check_unread(connection, plan.slot)
        confirmed = check_slot(connection, plan.slot)  # which nobody moves any more
        current = current_lsn(connection)
        if confirmed != writer.position.complete_lsn:
            writer.refresh()
        _check_slot_position(plan, confirmed, writer)
        _check_server_position(current, standby, writer)
        overlap = find_overlap(writer.store, confirmed, writer.position, writer.note) if writer.noted_lsn else None
        undoing.pop_all()
    return Prepared(options, current, confirmed, created, exported, snapshot, overlap)


def _identify(connection: Connection, writer: LogWriter) -> "tuple[dict[str, Any], _Timeline]":
    """Return the fields of LogOptions that the server fills in, and its history."""
    facts = identify(connection)
    timeline = _read_timeline(connection, facts["timeline"])
    number, logged = writer.noted_timeline
    origin = logged if timeline.problem is not None and number == timeline.number else timeline.origin(timeline.number)
    return facts | {"timeline_origin": origin}, timeline


def check_same_server(connection: Connection, options: LogOptions) -> None:
    """Raise ReplicationError, which may pass, unless ``connection`` is to the server that was prepared."""
    different = [name for name, value in identify(connection).items() if getattr(options, name) != value]
    if different:
        raise ReplicationError(f"two connections led to servers with another {' and '.join(different)}", transient=True)


def _resolve(plan: Plan, facts: dict[str, Any], earlier: LogOptions | None) -> LogOptions:
    """Fill in what was left open: as the log has it, or else the best that the server knows."""
    given = {name: value for name, value in plan.options.items() if value is not None}
    version = facts["server_version"]
    proto = given.get("proto_version") or (earlier.proto_version if earlier else best_proto_version(version))
    best = [name for name, value in OPTIONS["streaming"].values.items() if proto >= value.since][-1]
    defaults = {"proto_version": proto, "streaming": earlier.streaming if earlier else best}
    return LogOptions(slot=plan.slot, publications=plan.publications, **facts, **{**defaults, **given})


def _check_identity(options: LogOptions, writer: LogWriter) -> None:
    changed = () if writer.options is None else writer.options.differences(options, said=("slot", "timeline"))
    if changed:
        raise ChangeLogError(
            f"the log in {writer.store} is of another server or database ({'; '.join(changed)}); connect to that one, "
            "or give another directory and another slot"
        )


def _check_history(timeline: "_Timeline", plan: Plan, writer: LogWriter) -> None:
    logged, origin = writer.noted_timeline
    if logged is not None:
        _check_timeline(timeline, logged, origin, writer.noted_lsn, writer.store)
        if logged != timeline.number:
            text = "the server is on timeline %d now, after %d: it was promoted or restored"
            _LOG.warning(text, timeline.number, logged)
    if timeline.problem is not None:
        _warn(plan, f"{timeline.problem}; another server whose timeline has this number is not noticed meanwhile")


def _check_publications(connection: Connection, plan: Plan, is_new: bool) -> None:
    if plan.new_publication is not None:
        if len(plan.publications) != 1:
            raise ReplicationError("name one publication to have it created for tables")
        ensure_publication(connection, plan.publications[0], plan.new_publication)
    check_publications(connection, plan.publications)
    found = read_publications(connection, plan.publications)
    if is_new:
        check_tables(found)
    for facts in found:
        for warning in facts.warnings():
            _warn(plan, warning)


def _warn(plan: Plan, warning: str) -> None:
    """Log a warning, each once in a capture."""
    if warning not in plan.said:
        plan.said.add(warning)
        _LOG.warning("%s", warning)


def _make_slot(
    connection: Connection, plan: Plan, options: LogOptions, writer: LogWriter
) -> tuple[bool, ExportedSnapshot | None]:
    """Create the slot where that is asked for; return whether it was, and the snapshot that was made with it."""
    if slot_health(connection, plan.slot):
        return False, None
    if writer.noted_lsn:  # also where none is to be created: who then made one by hand would have a gap
        raise LogGapError(
            f"there is no slot {plan.slot!r} any more, and a new one would not have the changes since the log in "
            f"{writer.store} ended, at {writer.noted_lsn}; {REMEDY}"
        )
    if not plan.create_slot and (writer.durable_seq < 0 or plan.on_lost_slot == "stop"):
        return False, None
    asked: Any = {"two_phase": options.two_phase, "failover": plan.failover, "timeout": plan.slot_timeout}
    if plan.copies is not None:
        check_can_copy(connection)
    with ExitStack() as undoing:
        writer.note_slot(plan.slot)
        undoing.callback(writer.note_slot, None)
        exported = None
        if plan.copies is None:
            create_slot(connection, plan.slot, **asked)
        else:
            published = read_published(connection, plan.publications)
            holder = plan.copies()
            undoing.callback(holder.close)
            exported = create_slot_with_snapshot(holder, plan.slot, published=published, **asked)
        undoing.pop_all()
    return True, exported


def _read(connection: Connection, exported: ExportedSnapshot) -> Snapshot:
    try:
        with imported(connection, exported.name):
            return read_snapshot(connection, exported.lsn)
    except (LostSnapshotError, psycopg.Error) as error:
        text = f"the connection that keeps the snapshot of the slot was lost: {error}"
        raise ReplicationError(text, transient=True) from error


def _check_empty_log(plan: Plan, confirmed: Lsn, writer: LogWriter) -> None:
    """Raise ChangeLogError where the log is empty and the slot is not one that its capture has created.

    Whether the slot was read before cannot be asked: pg_stat_replication_slots begins again with a crash of the server,
    a promotion and pg_stat_reset_replication_slot.
    """
    if plan.new_log or writer.noted_lsn or writer.durable_seq >= 0:
        return
    writer.refresh()
    if writer.noted_lsn or writer.durable_seq >= 0 or writer.noted_slot == plan.slot:
        return
    raise ChangeLogError(
        f"the log in {writer.store} is empty, but slot {plan.slot!r} exists already: what a reader confirmed, up to "
        f"{confirmed}, will not come again; if there should be a log, as on a volume that is not mounted, bring it "
        "back; to begin a new log with the changes that the slot still has, give --new-log (new_log=True)"
    )


def _check_slot_position(plan: Plan, confirmed: Lsn, writer: LogWriter) -> None:
    noted = writer.noted_lsn
    if noted and confirmed > noted:
        raise LogGapError(
            f"slot {plan.slot!r} is at {confirmed}, but the log in {writer.store} ends at {noted}: the slot was "
            "re-created, or moved by another reader, or the log lost its last segments, and the changes between are "
            f"not in the log; {REMEDY}"
        )


def _check_server_position(current: Lsn, standby: bool, writer: LogWriter) -> None:
    noted = writer.noted_lsn
    if noted <= current:
        return
    if standby:
        # After a restart it replays from its last checkpoint, and then asks its primary for what it lacks.
        raise ReplicationError(
            f"the standby has received and replayed its primary's WAL up to {current}, the log in {writer.store} "
            f"ends at {noted}: waiting until it has caught up",
            transient=True,
        )
    raise LogGapError(
        f"the server's WAL ends at {current}, before the log in {writer.store} does ({noted}): the server has lost "
        f"WAL, or was restored from a backup; {REMEDY}",
        void_after=current,
    )


_REMEDY = (
    f"; {REMEDY} (to keep standbys ahead of the readers of slots, name their physical slots in "
    "synchronized_standby_slots, PostgreSQL 17)"
)


@dataclass(frozen=True)
class _Timeline:
    """One line of a cluster's WAL: a promotion, or a restore to an earlier moment, begins a new one."""

    number: int
    """The timeline on which the server is."""
    ends: Mapping[int, Lsn] = field(default_factory=dict)
    """The timelines from which it descends, and where it left each of them."""
    problem: ReplicationError | None = None
    """Why the history is not known; None where it is."""

    def origin(self, number: int) -> str | None:
        """Return where a timeline of this history began: the one before it and the position, empty for the first.

        None where the history is not known.
        """
        if self.problem is not None:
            return None
        parent = max((earlier for earlier in self.ends if earlier < number), default=None)
        return "" if parent is None else f"{parent} {self.ends[parent]}"


def _read_timeline(connection: Connection, number: int) -> _Timeline:
    """Ask a replication connection for the history of timeline ``number``, which is its server's (IDENTIFY_SYSTEM).

    Source: PostgreSQL documentation, "Streaming Replication Protocol", TIMELINE_HISTORY. The first timeline has none. A
    server runs without the file of its own timeline, too: then the history has a ``problem``.
    """
    if number <= 1:
        return _Timeline(number)
    doing = f"the history of timeline {number} cannot be read; restore its file (pg_wal/*.history)"
    try:
        return _Timeline(number, parse_history(fetch_row(connection, f"TIMELINE_HISTORY {number}", doing=doing)[1]))
    except ReplicationError as error:
        if error.transient:
            raise
        return _Timeline(number, problem=error)


def parse_history(content: Any) -> dict[int, Lsn]:
    """Read a history file: a line per earlier timeline, with its number, where it was left, and the reason."""
    text = bytes(content).decode("utf-8", "replace") if isinstance(content, bytes | memoryview) else str(content)
    lines = (line.split() for line in text.splitlines())
    return {int(words[0]): Lsn(words[1]) for words in lines if len(words) > 1 and not words[0].startswith("#")}


def _check_timeline(server: _Timeline, logged: int, origin: str | None, position: Lsn, log: object) -> None:
    """Check that a position, which a log reached on a timeline, is in the server's past.

    Args:
        server: The history of the server.
        logged: The number of the log's timeline.
        origin: Where that one began (``Timeline.origin``); None for a log that does not have it: numbers alone are
            compared then, though each standby that is promoted takes the next number, whatever others did.
        position: The end of the log.
        log: Its address, for the error.

    Raises:
        LogGapError: It is not.
        ReplicationError: The timelines are different ones, and the server's history is not known.
    """
    if server.problem is not None:
        if logged != server.number:
            raise server.problem
        return
    if logged != server.number and logged not in server.ends:
        raise LogGapError(
            f"the log in {log} is on timeline {logged}, from which the server's timeline {server.number} does not "
            f"descend: it is not the server that was captured, such as an old primary after a failover{_REMEDY}",
            void_after=Lsn(0),
        )
    own = server.origin(logged)
    if origin is not None and own is not None and origin != own:
        raise LogGapError(
            f"the log in {log} is on a timeline {logged} that {_beginning(origin)}, the server's timeline {logged} "
            f"{_beginning(own)}: another standby was promoted, whose changes are not those of the log{_REMEDY}",
            void_after=_common(origin, own),
        )
    end = server.ends.get(logged)
    if end is not None and position > end:
        raise LogGapError(
            f"the log in {log} ends at {position} on timeline {logged}, but the server left that timeline at {end} for "
            f"timeline {server.number}: it was promoted or restored before it had received {position - end} bytes that "
            f"the log holds, and wrote other changes in their place{_REMEDY}",
            void_after=end,
        )


def _beginning(origin: str) -> str:
    """Describe where a timeline began."""
    number, _, lsn = origin.partition(" ")
    return f"left timeline {number} at {lsn}" if origin else "is the first one"


def _common(one: str, other: str) -> Lsn:
    """Return the position up to which two timelines have the same past, 0/0 where that is not known."""
    (number, _, lsn), (same, _, end) = one.partition(" "), other.partition(" ")
    return min(Lsn(lsn), Lsn(end)) if number and number == same else Lsn(0)
