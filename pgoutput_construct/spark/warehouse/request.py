"""What replicate is asked for, checked before anything is started or written."""

from collections.abc import Collection

from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.changelog.store import Address
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark.opened import opened
from pgoutput_construct.spark.warehouse.notes import Warehouse

__all__ = ["check_request"]


def check_request(log: Address, warehouse: Address, into: str, tables: Collection[str] | None) -> Warehouse:
    """Return the warehouse at an address; needs no session.

    Raises:
        ChangeLogError: There is no such log, or it lacks one of ``tables``, which the warehouse does not have either.
        PgoutputError: The tables of the warehouse are of another format.
    """
    place = Warehouse(warehouse)
    known = place.progress()
    if known is not None and known.format != into:
        raise PgoutputError(f"{place.store}: the tables there are {known.format}, not {into}: choose another warehouse")
    if tables is not None:
        # A table that was renamed since is followed by its OID.
        there = {each.version.table for each in place.datasets().values()}
        names = opened(ChangeLog(log)).tables
        for name in sorted({*tables} - there - names.keys()):
            raise ChangeLogError(f"the log has no table {name}: it has {', '.join(names) or 'none'}")
    return place
