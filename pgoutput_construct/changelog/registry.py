"""Who reads a log: registered readers, each a small file in it, so that prune keeps what they have not read yet."""

import json
import re
import time
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np
import pyarrow.compute as pc

from pgoutput_construct.changelog._index.listing import first_promised, read_pruned
from pgoutput_construct.changelog._store.address import open_store
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
    """One reader, and how far it has come."""

    name: str
    """As it was registered."""
    next_seq: int
    """The first seq that it has not read: nothing from here on is pruned."""
    lsn: Lsn
    """The position in the WAL that it has reached, for people; 0/0 when it did not say."""
    time: float
    """When it last said so: seconds since 1970, by its machine's clock."""
    seconds: float | None = None
    """For how long it is waited for after that; None for ever."""

    def has_expired(self, now: float) -> bool:
        """Return whether it has been silent for longer than it asked for at time ``now`` (seconds since 1970)."""
        return self.seconds is not None and now - self.time > self.seconds


def register(
    address: Address | LogStore, name: str, next_seq: int, lsn: int = 0, seconds: float | None = None
) -> RegisteredReader:
    """Register a reader that needs all from ``next_seq`` on, or set where it is.

    Args:
        address: The log's.
        name: Letters, digits, ``.``, ``_`` and ``-``, at most 100.
        next_seq: The first seq that it has not read.
        lsn: The position in the WAL that it has reached, shown to people.
        seconds: For how long without an ``advance`` it is waited for; None for ever. Prune says when it no longer is.

    Raises:
        ChangeLogError: The name cannot be one, or what the reader needs was pruned: a reader of this name stays where
            it was.
    """
    store = open_store(address)
    reader = RegisteredReader(name, next_seq, Lsn(lsn), time.time(), seconds)
    earlier = _content(store, name)
    _write(store, reader)
    # Written before it is checked, as prune writes its plan before it looks at the readers: one of them sees the other.
    if next_seq < (kept := first_promised(store)):
        _put_back(store, name, earlier)
        raise ChangeLogError(f"{store}: reader {name!r} needs seq {next_seq}, but the log was pruned up to {kept - 1}")
    return reader


def advance(address: Address | LogStore, name: str, next_seq: int, lsn: int = 0) -> RegisteredReader:
    """Note that a registered reader has read all before ``next_seq``; raises ChangeLogError when it is not registered,
    or has been further already.
    """
    store = open_store(address)
    reader = _read(store, name)
    if reader is None:
        raise ChangeLogError(f"{store}: no reader {name!r} is registered: register it with the seq that it needs")
    if next_seq < reader.next_seq:
        raise ChangeLogError(f"{store}: reader {name!r} is at seq {reader.next_seq}, {next_seq} is before that")
    reader = replace(reader, next_seq=next_seq, lsn=Lsn(lsn), time=time.time())
    _write(store, reader)
    return reader


def forget(address: Address | LogStore, name: str) -> None:
    """Remove a reader: what only it needed may be pruned; one that is not registered is no error."""
    open_store(address).delete(_file(name))


def readers(address: Address | LogStore) -> tuple[RegisteredReader, ...]:
    """Return the registered readers by name; raises ChangeLogError for a file that describes none."""
    store = open_store(address)
    names = (name.removesuffix(".json") for name in sorted(store.files(_FOLDER)) if name.endswith(".json"))
    found = (_read(store, name) for name in names)
    return tuple(reader for reader in found if reader is not None)


def _file(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ChangeLogError(f"{name!r} cannot name a reader: letters, digits, '.', '_' and '-', at most 100 of them")
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
    file = _file(name)
    try:
        reader = RegisteredReader(**json.loads(store.read(file)))
        return replace(reader, name=name, next_seq=int(reader.next_seq), lsn=Lsn(reader.lsn), time=float(reader.time))
    except MissingFileError:
        return None
    except (ValueError, TypeError) as error:
        raise ChangeLogError(
            f"{store.place(file)}: damaged: it says what a reader still needs; register the reader again: {error}"
        ) from error


def next_seq_at(log: ChangeLog, lsn: int) -> int:
    """Return the first seq that a reader needs who has read all that was committed before a position, and no more.

    Transactions that are open count as not read. Raises ChangeLogError where the log was pruned beyond the position,
    or does not reach it.
    """
    pruned, first = read_pruned(log.store), log.segments[0].first_seq
    if first and lsn < pruned.lsn:
        raise ChangeLogError(f"{log.store}: what was committed before {pruned.lsn} was pruned: {Lsn(lsn)} is too early")
    if lsn > log.complete_lsn:
        raise ChangeLogError(f"{log.store}: the log ends at {log.complete_lsn}: {Lsn(lsn)} is not reached yet")
    ended = log.transactions()
    ended = ended.filter(pc.equal(ended["outcome"], COMMITTED))
    is_read = ended["commit_lsn"].to_numpy() < lsn
    begins = pc.struct_field(pc.list_element(ended["spans"], 0), "first").to_numpy()
    seqs = ended["seq"].to_numpy()[is_read]
    after = int(seqs[-1]) + 1 if len(seqs) else first
    needed = np.concatenate([begins[~is_read], log.open_transactions()["first_seq"].to_numpy()])
    return max(first, min(after, int(needed.min()) if len(needed) else after))
