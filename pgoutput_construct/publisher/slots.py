"""The replication slots of a publisher: one a client, whose confirmed positions are kept in a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any, Final

from pgoutput_construct.changelog.store import Address
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.publisher.slots_file import SlotsFile
from pgoutput_construct.wire.types import Lsn

__all__ = ["PLUGIN", "Slot", "Slots"]

PLUGIN: Final = "pgoutput"
"""What decodes for all slots."""


@dataclass
class Slot:
    """One slot."""

    name: str
    plugin: str = PLUGIN
    two_phase: bool = False
    two_phase_at: int = 0
    """What is prepared behind this position is sent as prepared, where ``two_phase`` is set."""
    temporary: bool = False
    confirmed: int = 0
    """The position up to which its client has confirmed everything; it never goes back."""
    copied: int = -1
    """Copies of tables up to this seq of a change log have been served, or will be, at their places."""


class Slots:
    """The slots; its methods may be called from any thread."""

    def __init__(self, file: Address | None = None, most: int = 1000) -> None:
        """Begin with none.

        Args:
            file: Where they are kept once it was opened: a path, or a URI as of a change log; None: nowhere.
            most: How many there may be.
        """
        self._file = None if file is None else SlotsFile(file)
        self._lock = Lock()
        self._writing = Lock()
        self._active: dict[str, int] = {}
        self._most = most
        self._has_news = False
        self._slots: dict[str, Slot] = {}

    def open(self) -> None:
        """Read those of the file, where there is one, and keep other publishers from it; raises PgoutputError."""
        if self._file is not None:
            try:
                self._slots = _slots(self._file.open(), str(self._file))
            except PgoutputError:
                self._file.close()
                raise

    def close(self) -> None:
        """Let other publishers have the file."""
        if self._file is not None:
            self._file.close()

    def create(self, name: str, plugin: str = PLUGIN, *, two_phase: bool = False, temporary: int | None = None) -> Slot:
        """Make a slot that begins with the first transaction; raise Refusal where there is one of this name.

        Args:
            name: Its name.
            plugin: What decodes for it.
            two_phase: Whether it was asked to decode prepared transactions.
            temporary: The process ID of the connection that it ends with; no other can use it. None: it stays.
        """
        _check_name(name)
        with self._lock:
            if name in self._slots:
                raise Refusal("42710", f'replication slot "{name}" already exists')
            if len(self._slots) >= self._most:
                hint = 'Free one or increase "max_replication_slots".'
                raise Refusal("53400", "all replication slots are in use", hint=hint)
            self._slots[name] = slot = Slot(name, plugin, two_phase, temporary=temporary is not None)
            self._has_news = True
            if temporary is not None:
                self._active[name] = temporary
        self._save_now()
        return slot

    def get(self, name: str) -> Slot | None:
        """Return a slot, None where there is none of this name."""
        return self._slots.get(name)

    def names(self) -> list[str]:
        """Return the names of all slots."""
        return sorted(self._slots)

    def drop(self, name: str, process_id: int = 0) -> None:
        """Remove a slot; raise Refusal where there is none, or where another client has it."""
        with self._lock:
            self._check_free(name, process_id)
            del self._slots[self._known(name).name]
            self._active.pop(name, None)
            self._has_news = True
        self._save_now()

    def is_active(self, name: str, process_id: int = 0) -> bool:
        """Tell whether another client has a slot."""
        return self._active.get(name, process_id) != process_id

    @contextmanager
    def acquired(self, name: str, process_id: int) -> Iterator[Slot]:
        """Hold a slot for one client; raise Refusal where there is none, or where another client has it."""
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
        """Note what a client has confirmed; a position before the present one changes nothing, as in PostgreSQL."""
        if position <= slot.confirmed:
            return
        with self._lock:
            slot.confirmed = position
            self._has_news = True

    def save(self) -> None:
        """Write the positions where they have changed since they were written; raises PgoutputError."""
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
        """Note what a client asked that begins at a position: once one has, its slot sends prepared transactions.

        A subscription asks when its slot is made, and not again (CreateDecodingContext()).
        """
        if asked and not slot.two_phase:
            with self._lock:
                slot.two_phase, slot.two_phase_at = True, start
                self._has_news = True

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


def _slots(kept: Any, file: str) -> dict[str, Slot]:
    try:
        found = {name: Slot(**row) for name, row in kept.items()}
        for slot in found.values():
            _check_types(slot)
        return {name: Slot(**asdict(slot) | {"confirmed": Lsn(slot.confirmed)}) for name, slot in found.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise PgoutputError(f"{file}: no file of slots: {error}. Name another file, or remove it") from error


def _check_types(slot: Slot) -> None:
    for name, value in asdict(Slot("")).items():
        if type(found := getattr(slot, name)) is not type(value):
            raise ValueError(f"{name} of slot {slot.name!r} is {found!r}")


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
