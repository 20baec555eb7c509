"""Logs that this process has opened: planning, and each micro-batch, would open the same one again and again."""

from functools import lru_cache

from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.spark.log_tables import LogTables
from pgoutput_construct.spark.source.archives import keep_archives
from pgoutput_construct.spark.source.options import SourceOptions

__all__ = ["address_of", "log_at", "opened_at"]

_latest: dict[str, tuple[dict[str, int], ChangeLog]] = {}


def address_of(options: SourceOptions) -> str:
    """Return where the log of options is."""
    assert options.path is not None
    return options.path


def log_at(address: str) -> ChangeLog:
    """Return the log at an address as it is now.

    What was opened before serves while its files are the same: their names and sizes tell.
    """
    keep_archives()
    files, log = _latest.get(address, ({}, None))
    found = open_store(address).files()
    if log is None or found != files:
        log = ChangeLog(address, log)
        _latest.clear()
        _latest[address] = found, log
    return log


@lru_cache(maxsize=1)  # what was known before the last micro-batch is of no use
def opened_at(log: ChangeLog, as_of: int, types: str = "", lets_pass: bool = False) -> LogTables:
    """Return what is known of a log as of a seq, with types by choice; see ``opened``."""
    return LogTables.from_log(log, as_of, types, lets_pass=lets_pass)
