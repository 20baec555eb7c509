"""Registered readers of a log, one small file each: prune retains what they have not read."""

import json
import re
import time
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np
import pyarrow.compute as pc

from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.json_notes import read_note
from pgoutput_construct.changelog._store.store import Address, LogStore, MissingFileError
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.stream.transaction_reader import COMMITTED
from pgoutput_construct.wire import Lsn

__all__ = [
    "RegisteredReader",
    "advance",
    "forget",
    "next_seq_at",
    "readers",
    "register",
]


_FOLDER: Final = "readers"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class RegisteredReader:
    """A reader, and how far it has read."""

    name: str
    """Its name."""
    next_seq: int
    """The first seq that it has not read: prune retains everything from here on."""
    lsn: Lsn
    """The LSN that it has reached, for display; 0/0 if unknown."""
    time: float
    """When it last reported: seconds since 1970 by its machine's clock."""
    seconds: float | None = None
    """Seconds after its last report until it expires; None: never."""

    def has_expired(self, now: float) -> bool:
        """Return whether it has expired at time ``now`` (seconds since 1970): it did not report for too long."""
        return self.seconds is not None and now - self.time > self.seconds


def register(
    address: Address | LogStore, name: str, next_seq: int, lsn: int = 0, seconds: float | None = None
) -> RegisteredReader:
    """Register a reader that needs everything from ``next_seq`` on, or change how far it has read.

    Args:
        address: The address of the log: a path, a URL, or a store.
        name: Letters, digits, ``.``, ``_`` and ``-``, at most 100.
        next_seq: The first seq that it has not read.
        lsn: The LSN that it has reached, for display.
        seconds: It expires this many seconds after its last ``advance``; None: never. A prune that ignores an
            expired reader reports it.

    Raises:
        ChangeLogError: The name is invalid, or what the reader needs was pruned; then a reader of this name is
            unchanged.
    """
    store = open_store(address)
    reader = RegisteredReader(name, next_seq, Lsn(lsn), time.time(), seconds)
    earlier = _content(store, name)
    _write(store, reader)
    # Written before it is checked, as prune writes its plan before it looks for readers: one of the two sees the other.
    if next_seq < (kept := read_pruned(store).promised):
        _put_back(store, name, earlier)
        raise ChangeLogError(
            f"{store}: reader {name!r} needs seq {next_seq}, but the log was pruned up to seq {kept - 1}"
        )
    return reader


def advance(address: Address | LogStore, name: str, next_seq: int, lsn: int = 0) -> RegisteredReader:
    """Record that a registered reader has read everything before ``next_seq``.

    Args:
        address: The address of the log: a path, a URL, or a store.
        name: The reader.
        next_seq: The first seq that it has not read.
        lsn: The LSN that it has reached, for display.

    Raises:
        ChangeLogError: The reader is not registered, or was further already.
    """
    store = open_store(address)
    reader = _read(store, name)
    if reader is None:
        raise ChangeLogError(
            f"{store}: reader {name!r} is not registered: register it with the first seq that it needs"
        )
    if next_seq < reader.next_seq:
        raise ChangeLogError(f"{store}: reader {name!r} is at seq {reader.next_seq} already, after {next_seq}")
    reader = replace(reader, next_seq=next_seq, lsn=Lsn(lsn), time=time.time())
    _write(store, reader)
    return reader


def forget(address: Address | LogStore, name: str) -> None:
    """Remove a reader, so that prune no longer waits for it; it is no error if it is not registered."""
    open_store(address).delete(_file(name))


def readers(address: Address | LogStore) -> tuple[RegisteredReader, ...]:
    """Return the registered readers by name; raises ChangeLogError for a damaged file."""
    store = open_store(address)
    names = (name.removesuffix(".json") for name in sorted(store.files(_FOLDER)) if name.endswith(".json"))
    found = (_read(store, name) for name in names)
    return tuple(reader for reader in found if reader is not None)


def _file(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ChangeLogError(
            f"{name!r} is not a valid name of a reader: use at most 100 letters, digits, '.', '_' and '-'"
        )
    return f"{_FOLDER}/{name}.json"


def _write(store: LogStore, reader: RegisteredReader) -> None:
    store.write(_file(reader.name), json.dumps(asdict(reader)).encode())


def _content(store: LogStore, name: str) -> bytes | None:
    try:
        return store.read(_file(name))
    except MissingFileError:
        return None


def _put_back(store: LogStore, name: str, content: bytes | None) -> None:
    if content is None:
        store.delete(_file(name))
    else:
        store.write(_file(name), content)


def _read(store: LogStore, name: str) -> RegisteredReader | None:
    reader = read_note(store, _file(name), RegisteredReader, remedy="register the reader again", exact=True)
    return None if reader is None else replace(reader, name=name)


def next_seq_at(log: ChangeLog, lsn: int) -> int:
    """Return the first seq that a reader needs that has read exactly what was committed before an LSN.

    Open transactions count as not read. Raises ChangeLogError if the log was pruned beyond the LSN, or ends before it.
    """
    pruned, first = read_pruned(log.store), log.segments[0].first_seq
    if first and lsn < pruned.lsn:
        raise ChangeLogError(
            f"{log.store}: everything committed before {pruned.lsn} was pruned: {Lsn(lsn)} is too early"
        )
    if lsn > log.complete_lsn:
        raise ChangeLogError(f"{log.store}: the log ends at {log.complete_lsn}, before {Lsn(lsn)}")
    ended = log.transactions()
    ended = ended.filter(pc.equal(ended["outcome"], COMMITTED))
    is_read = ended["commit_lsn"].to_numpy() < lsn
    begins = pc.struct_field(pc.list_element(ended["spans"], 0), "first").to_numpy()
    seqs = ended["seq"].to_numpy()[is_read]
    after = int(seqs[-1]) + 1 if len(seqs) else first
    needed = np.concatenate([begins[~is_read], log.open_transactions()["first_seq"].to_numpy()])
    return max(first, min(after, int(needed.min()) if len(needed) else after))
