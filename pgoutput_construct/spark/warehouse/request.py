"""What replicate is asked for, checked before anything is started or written."""

import time
from collections.abc import Callable, Collection
from typing import Final

from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark.log_tables import LogTables
from pgoutput_construct.spark.metadata import check_prefix
from pgoutput_construct.spark.warehouse.adoption import check_same_log
from pgoutput_construct.spark.warehouse.notes import Warehouse
from pgoutput_construct.stream.identifiers import normal_name

__all__ = ["await_log", "check_request"]

_TICK: Final = 0.2
"""Seconds between two looks for a log."""


def check_request(
    log: Address,
    warehouse: Address,
    into: str,
    tables: Collection[str] | None,
    waits: bool = False,
    prefix: str | None = None,
    resync: Collection[str] = (),
    adopt: bool = False,
) -> Warehouse:
    """Return the warehouse at an address; needs no session.

    Raises:
        ChangeLogError: There is no such log, unless it is waited for, or it lacks one of ``tables``, which the
            warehouse does not have either, or of ``resync``; or the tables of the warehouse are of another log, which
            it is not to ``adopt``.
        PgoutputError: The tables of the warehouse are of another format, or have another ``prefix``.
    """
    if prefix is not None:
        check_prefix(prefix)
    place = Warehouse(warehouse)
    known = place.progress()
    if known is not None and known.format != into:
        raise PgoutputError(f"{place.store}: the tables there are {known.format}, not {into}: choose another warehouse")
    if known is not None and prefix not in (None, known.prefix):
        raise PgoutputError(
            f"{place.store}: the names of the columns that replicate added there begin with {known.prefix!r}, not "
            f"{prefix!r}: leave out --metadata-prefix (metadata_prefix=), or choose another warehouse"
        )
    if _has_begun(log) or not waits:
        found = ChangeLog(log)
        _check_tables(found, place, tables or (), resync)
        if not adopt:
            check_same_log(found, known, place)
    return place


def await_log(log: Address, stop: Callable[[], bool]) -> bool:
    """Wait until a log has something, as while its capture begins; return False when it is time to stop."""
    while not _has_begun(log):
        if stop():
            return False
        time.sleep(_TICK)
    return True


def _has_begun(log: Address) -> bool:
    return any(name.endswith(".parquet") for name in open_store(log).files())


def _check_tables(log: ChangeLog, place: Warehouse, tables: Collection[str], resync: Collection[str]) -> None:
    # A table that was renamed since is followed by its OID.
    known = {each.version.table for each in place.readable_datasets()[0].values()} if tables else set()
    unknown = {normal_name(table) for table in tables} - known | {normal_name(table) for table in resync}
    if unknown:
        found = LogTables.from_log(log)
        for name in sorted(unknown - found.tables.keys() - found.refused.keys()):
            raise ChangeLogError(f"the log has no table {name}: it has {', '.join(found.tables) or 'none'}")
