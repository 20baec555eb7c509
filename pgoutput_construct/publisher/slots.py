"""The replication slots of a publisher: one for each client, whose confirmed LSNs are stored in a file."""

import json
import posixpath
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from threading import Condition, Lock
from typing import Any, Final, NamedTuple, TypeAlias

from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.json_notes import read_note
from pgoutput_construct.changelog._store.store import Address, LogLock, is_uri
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.wire.types import Lsn

__all__ = ["PLUGIN", "ClientTable", "Slot", "Slots", "TableName", "default_slots_address"]


PLUGIN: Final = "pgoutput"
"""What decodes for all slots."""
TableName: TypeAlias = tuple[str, str]
"""Schema and name of a table."""


class ClientTable(NamedTuple):
    """A table that a client got in the list of published tables.

    A subscription knows tables by name: it applies changes of whichever OID the publisher describes by that name
    (logicalrep_rel_open()). So a table that was renamed is another one to it, until it asks for its tables again.
    """

    relation_oid: int
    """Its OID."""
    name: TableName
    """Its name then."""


@dataclass
class Slot:
    """One slot."""

    name: str
    plugin: str = PLUGIN
    two_phase: bool = False
    two_phase_at: int = 0
    """What is prepared after this LSN is sent as prepared, where ``two_phase`` is set."""
    failover: bool = False
    """Whether standbys would have a copy of it; here it is only what a client asked for."""
    temporary: bool = False
    confirmed: int = 0
    """The LSN up to which its client has confirmed everything; it never goes back."""
    copied: int = -1
    """Copies of tables up to this seq of a change log have been served, or will be, at their positions: LSNs alone do
    not tell (``changelog/timeline.py``)."""
    client: str = ""
    """The application_name of who read from it last: a subscription's is its name, also where it asks for tables."""
    tables: list[ClientTable] = field(default_factory=list)
    """The tables that its client got in the last list: it ignores changes of others
    (should_apply_changes_for_rel())."""
    missed: list[int] = field(default_factory=list)
    """The OIDs of tables that a client first got in a list after some of their changes may have been sent: it gets
    these again."""
    missed_lists: int = 0
    """How many lists have added to ``missed``: a stream that began before the last of them may have sent too early what
    its client knows only since then."""
    withheld: list[int] = field(default_factory=list)
    """The seqs of copies that its client was not served: it gets the later transactions that they contain instead."""
    is_fenced: bool = True
    """Whether a stream of this slot has ended since ``missed`` was noted."""


class Slots:
    """The slots; its methods may be called from any thread."""

    def __init__(self, file: Address | None = None, most: int = 1000) -> None:
        """Begin with none.

        Args:
            file: Where they are stored once it was opened: a path, or a URL as of a change log; None: nowhere.
            most: The maximum number of slots.
        """
        self._file = None if file is None else _SlotsFile(file)
        self._lock = Lock()
        self._confirming = Condition(self._lock)
        self._writing = Lock()
        self._active: dict[str, int] = {}
        self._most = most
        self._has_news = False
        self._slots: dict[str, Slot] = {}
        self._listings: dict[str, Mapping[ClientTable, Collection[TableName]]] = {}
        """The last list of tables that each client got, by its application_name."""

    def open(self) -> None:
        """Read those of the file, if it exists, and lock it against other publishers; raises PgoutputError."""
        if self._file is not None:
            try:
                self._slots = self._file.open()
            except PgoutputError:
                self._file.close()
                raise

    def close(self) -> None:
        """Release the file for other publishers."""
        if self._file is not None:
            self._file.close()

    def create(
        self,
        name: str,
        plugin: str = PLUGIN,
        *,
        two_phase: bool = False,
        failover: bool = False,
        temporary: int | None = None,
        client: str = "",
    ) -> Slot:
        """Create a slot that begins with the first transaction; raise Refusal where one of this name exists.

        Args:
            name: Its name.
            plugin: What decodes for it.
            two_phase: Whether it was asked to decode prepared transactions.
            failover: Whether it was asked to have copies at standbys.
            temporary: The process ID of the connection with which it ends; no other can use it. None: it is permanent.
            client: The application_name of who creates it.

        Returns:
            The slot.
        """
        _check_name(name)
        if failover and temporary is not None:
            raise _no_failover()
        with self._lock:
            if name in self._slots:
                raise Refusal("42710", f'replication slot "{name}" already exists')
            if len(self._slots) >= self._most:
                hint = 'Free one or increase "max_replication_slots".'
                raise Refusal("53400", "all replication slots are in use", hint=hint)
            slot = Slot(name, plugin, two_phase, failover=failover, client=client)
            slot.temporary = temporary is not None
            slot.tables = sorted(self._listings.get(client, {}))
            self._slots[name] = slot
            self._has_news = True
            if temporary is not None:
                self._active[name] = temporary
        self._save_now()
        return slot

    def get(self, name: str) -> Slot | None:
        """Return a slot, None where none of this name exists."""
        return self._slots.get(name)

    def names(self) -> list[str]:
        """Return the names of all slots."""
        return sorted(self._slots)

    def drop(self, name: str, process_id: int = 0) -> None:
        """Remove a slot; raise Refusal where it does not exist, or another client has it."""
        with self._lock:
            self._check_free(name, process_id)
            del self._slots[self._known(name).name]
            self._active.pop(name, None)
            self._has_news = True
        self._save_now()

    def alter(
        self, name: str, process_id: int = 0, *, two_phase: bool | None = None, failover: bool | None = None
    ) -> None:
        """Change a slot; raise Refusal where it does not exist, or another client has it.

        As in PostgreSQL, the LSN from which prepared transactions are sent as such stays what it was: whoever sets
        ``two_phase`` here rather than by START_REPLICATION may get the end of one whose PREPARE was not sent.

        Args:
            name: The slot.
            process_id: The connection that asks.
            two_phase: Whether it decodes prepared transactions; None: as before.
            failover: Whether standbys have a copy of it; None: as before.
        """
        with self._lock:
            slot = self._known(name)
            self._check_free(name, process_id)
            if failover and slot.temporary:
                raise _no_failover()
            slot.two_phase = slot.two_phase if two_phase is None else two_phase
            slot.failover = slot.failover if failover is None else failover
            self._has_news = True
        self._save_now()

    def is_active(self, name: str, process_id: int = 0) -> bool:
        """Return whether another client has a slot."""
        return self._active.get(name, process_id) != process_id

    @contextmanager
    def acquired(self, name: str, process_id: int) -> Iterator[Slot]:
        """Acquire a slot for one client; raise Refusal where it does not exist, or another client has it."""
        with self._lock:
            slot = self._known(name)
            self._check_free(name, process_id)
            self._active[name] = process_id
        try:
            yield slot
        finally:
            if not slot.temporary:
                del self._active[name]

    def confirm(self, slot: Slot, position: int) -> None:
        """Note the LSN that a client has confirmed; one before the present one changes nothing, as in PostgreSQL."""
        if position <= slot.confirmed:
            return
        with self._confirming:
            slot.confirmed = position
            self._has_news = True
            self._confirming.notify_all()

    def wait_confirmed(self, name: str, position: int, timeout: float) -> Slot:
        """Wait until the client of a slot, which need not exist yet, has confirmed an LSN; return the slot.

        Args:
            name: The slot.
            position: The LSN.
            timeout: Seconds after which TimeoutError is raised, which says what has been confirmed.
        """
        with self._confirming:
            if not self._confirming.wait_for(lambda: self._has_confirmed(name, position), timeout):
                slot = self._slots.get(name)
                state = f"has confirmed {Lsn(slot.confirmed)}" if slot else "does not exist"
                raise TimeoutError(f"slot {name!r} {state}, not {Lsn(position)}, after {timeout:g} seconds")
            return self._slots[name]

    def _has_confirmed(self, name: str, position: int) -> bool:
        return name in self._slots and self._slots[name].confirmed >= position

    def listed(self, client: str, tables: Mapping[ClientTable, Collection[TableName]]) -> None:
        """Note the list of tables that a client got: what it was sent of others, it has ignored.

        Args:
            client: Its application_name.
            tables: The tables, each with the names by which its rows are described in what is served.

        Raises:
            Refusal: It cannot be written: a client that has a table in its list does not ask for it again.
        """
        if not client:
            return
        with self._lock:
            self._listings.pop(client, None)
            self._listings[client] = tables
            if len(self._listings) > self._most:
                del self._listings[next(iter(self._listings))]
            own = [slot for slot in self._slots.values() if client == (slot.client or slot.name)]
            for slot in own:
                self._note(slot, tables, is_shared=len(own) > 1)
        if own:
            self._save_now()

    def read_by(self, slot: Slot, client: str) -> None:
        """Note who reads from a slot, by application_name."""
        with self._lock:
            if slot.client != client:
                slot.client, self._has_news = client, True
                if client in self._listings:
                    is_shared = sum(client == each.client for each in self._slots.values()) > 1
                    self._note(slot, self._listings[client], is_shared)

    def end_stream(self, slot: Slot) -> bool:
        """Return whether a stream must end before its client is sent what it has missed; true once.

        A subscription's worker that is started later waits for the REFRESH that asked for the tables: both lock the
        subscription (InitializeLogRepWorker(), AlterSubscription()). One that is running may not see its result yet.
        """
        if slot.is_fenced:
            return False
        with self._lock:
            slot.is_fenced = self._has_news = True
        return True

    def has_all(self, slot: Slot, tables: Collection[int], lists: int) -> None:
        """Note that a client has what it had missed of some tables, unless another list has added to these since.

        Args:
            slot: The slot.
            tables: The OIDs of the tables.
            lists: ``Slot.missed_lists`` as the stream began that has sent them.
        """
        with self._lock:
            if lists == slot.missed_lists and any(oid in tables for oid in slot.missed):
                slot.missed, self._has_news = [oid for oid in slot.missed if oid not in tables], True

    def _note(self, slot: Slot, tables: Mapping[ClientTable, Collection[TableName]], is_shared: bool) -> None:
        """Note the list of tables that a slot's client got.

        Where slots share an application_name, as subscriptions of several databases may that have one name, each of
        their clients may be the one that asked, or not: it knows for sure what it knew before and what is in the new
        list, too. The other tables of the list are sent again after each such list, to all of these clients; one that
        does not know them ignores them.

        Args:
            slot: The slot.
            tables: The tables, each with the names by which its rows are described.
            is_shared: Whether other slots have this application_name.
        """
        new = set(_ignored(slot.tables, tables))
        if is_shared:
            slot.tables = sorted(table for table in tables if table.relation_oid not in new)
        else:
            oids = {table.relation_oid for table in tables}
            slot.tables = sorted(tables)
            slot.missed = [oid for oid in slot.missed if oid in oids]
        self._has_news = True
        if new and (slot.confirmed or slot.name in self._active):
            slot.missed, slot.is_fenced = sorted({*slot.missed, *new}), False
            slot.missed_lists += 1

    def withhold(self, slot: Slot, seq: int) -> None:
        """Note that a client is not served a copy, before what follows; raise Refusal where that cannot be saved."""
        with self._lock:
            slot.withheld.append(seq)
            self._has_news = True
        self._save_now()

    def save(self) -> None:
        """Write the slots if they have changed since they were written; raises PgoutputError."""
        with self._writing:
            with self._lock:
                if not self._has_news:
                    return
                self._has_news = False
                kept = {name: asdict(slot) for name, slot in self._slots.items() if not slot.temporary}
            try:
                if self._file is not None:
                    self._file.write(kept)
            except PgoutputError:
                self._has_news = True
                raise

    def keep_two_phase(self, slot: Slot, start: int, asked: bool) -> None:
        """Note that a client asked for two phases: its slot sends prepared transactions from then on.

        A subscription asks when its slot is created, and not again: it is saved at once (CreateDecodingContext()).

        Args:
            slot: The slot.
            start: The LSN from which the client reads.
            asked: Whether it asked.

        Raises:
            Refusal: It cannot be saved.
        """
        if asked and not slot.two_phase:
            with self._lock:
                slot.two_phase, slot.two_phase_at = True, start
                self._has_news = True
            self._save_now()

    def forget_temporary(self, process_id: int) -> None:
        """Remove the temporary slots of a connection that ends."""
        with self._lock:
            for name in [name for name, owner in self._active.items() if owner == process_id]:
                del self._slots[name], self._active[name]

    def _known(self, name: str) -> Slot:
        if name not in self._slots:
            raise Refusal("42704", f'replication slot "{name}" does not exist')
        return self._slots[name]

    def _check_free(self, name: str, process_id: int) -> None:
        if self.is_active(name, process_id):
            raise Refusal("55006", f'replication slot "{name}" is active for PID {self._active[name]}')

    def _save_now(self) -> None:
        try:
            self.save()
        except PgoutputError as error:
            raise Refusal("58030", f"could not write the replication slots: {error}") from error


def _no_failover() -> Refusal:
    return Refusal("0A000", "cannot enable failover for a temporary replication slot")


def _ignored(known: Collection[ClientTable], tables: Mapping[ClientTable, Collection[TableName]]) -> Iterator[int]:
    """Yield the OIDs of the tables of a listing of which a client that knew others has ignored rows.

    It has those that are described by names that it knew, also where an OID is another table's successor.
    """
    names = {table.name for table in known}
    for table, described in tables.items():
        has_all = table.name in names and names.issuperset(described)
        if table not in known and not has_all:
            yield table.relation_oid


def _check_name(name: str) -> None:
    """Check a name as ReplicationSlotValidateName() does."""
    if (
        not name
        or len(name) > 63
        or not all(c.islower() or c.isdigit() or c == "_" for c in name)
        or not name.isascii()
    ):
        hint = "Replication slot names may only contain lower case letters, numbers, and the underscore character."
        raise Refusal("42602", f'replication slot name "{name}" is not valid', hint=hint)


class _SlotsFile:
    """One file, which one publisher has at a time."""

    def __init__(self, address: Address) -> None:
        """Name it by an address as that of a change log; a relative path is made absolute now."""
        head, question, query = str(address).partition("?") if is_uri(address) else (str(address), "", "")
        folder, self._name = posixpath.split(head)
        self._store = open_store(folder + question + query or ".")
        self._lock: LogLock | None = None

    def __str__(self) -> str:
        return self._store.path_of(self._name)

    def open(self) -> dict[str, Slot]:
        """Lock the file against other publishers; return its slots, none for a new one; raises PgoutputError."""
        try:
            self._lock = self._store.lock(self._name)
        except ChangeLogError as error:
            raise PgoutputError(f"{self}: {error}; each publisher has a file of its own (--slots)") from error
        what, remedy = "invalid slots file", "name another file, or remove it"
        noted = read_note(self._store, self._name, dict[str, Slot], what=what, remedy=remedy, exact=True) or {}
        return {name: replace(each, confirmed=Lsn(each.confirmed)) for name, each in noted.items()}

    def write(self, content: Any) -> None:
        """Replace the file, durably; raises PgoutputError, also where another publisher has it now."""
        if self._lock is not None:
            self._lock.check()
        self._store.write(self._name, json.dumps(content, indent=1).encode())

    def close(self) -> None:
        """Release it."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def default_slots_address(address: Address) -> Address:
    """Return the default address of the slots of a change log, or of another file: next to it."""
    if not is_uri(address):
        return f"{address}".rstrip("/") + ".slots.json"
    head, question, query = str(address).partition("?")
    return head.rstrip("/") + ".slots.json" + question + query
