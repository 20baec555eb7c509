"""A stream as a registered reader of its log: prune keeps what it has not read."""

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.registry import readers, register
from pgoutput_construct.spark.source.offsets import needed_from, offset_at

__all__ = ["advance_reader", "register_reader"]


def register_reader(log: ChangeLog, name: str | None, after: int) -> None:
    """Register a reader that has read all that ended by a seq; without a name do nothing."""
    if name is not None and name not in {reader.name for reader in readers(log.store)}:
        register(log.store, name, needed_from(log.index, after), offset_at(log.index, after).lsn or 0)


def advance_reader(log: ChangeLog, name: str, seq: int) -> None:
    """Note that a reader has read all that ended by a seq; what had begun by then, and ends later, it still needs."""
    known = {reader.name: reader.next_seq for reader in readers(log.store)}
    needed = needed_from(log.index, seq)
    if needed > known.get(name, -1):
        register(log.store, name, needed, offset_at(log.index, seq).lsn or 0)
