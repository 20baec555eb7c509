"""Entries of Delta Lake's log that no retained version of a table needs.

Each commit is a file of the log. Delta Lake keeps them for 30 days (``delta.logRetentionDuration``), and counts whole
days (its MetadataCleanup): a table with a batch each second would have 2.6 million. Maintenance removes them with the
versions that expire, whose data files VACUUM removes.

A version is read from the last checkpoint before it, and the commits since. So all entries before a checkpoint can go
once every version that is retained is that of the checkpoint or a later one. They are removed from the oldest on: what
an interruption leaves is still a log.
"""

import re
from typing import Final

from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.store import LogStore

_ENTRY: Final = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\.(?:.+\.)?(?:parquet|json))")
"""The name of an entry: a commit, its checksum, a checkpoint or a part of one; the number is that of the version."""
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
"""The name of a checkpoint that is one file, which exists as a whole."""


def remove_expired_entries(store: LogStore, folder: str, before: float, latest: int) -> int:
    """Remove the entries of a log that no retained version needs; return how many.

    Args:
        store: The store of the table.
        folder: The folder of the log.
        before: The time, in seconds since 1970, before which versions have expired.
        latest: The latest version whose commit must stay.
    """
    names = sorted(store.files(folder))
    checkpoints = [int(found[1]) for name in names if (found := _CHECKPOINT.fullmatch(name))]
    for checkpoint in sorted((each for each in checkpoints if each <= latest), reverse=True):
        # What was current at the time is this version, or a later one.
        if store.modified(f"{folder}/{checkpoint:020}.checkpoint.parquet") <= before:
            break
    else:
        return 0
    expired = [name for name in names if (found := _ENTRY.fullmatch(name)) and int(found[1]) < checkpoint]
    for name in expired:
        store.delete(f"{folder}/{name}")
        if isinstance(store, LocalStore):
            store.delete(f"{folder}/.{name}.crc")  # Hadoop's checksum
    return len(expired)
