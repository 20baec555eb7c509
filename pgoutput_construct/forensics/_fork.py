"""Fork: a database, and the tables of a warehouse, as they were at one commit of a change log."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pgoutput_construct.changelog._facts.completeness import begun_without_copy, present_copies
from pgoutput_construct.changelog._index.log_index import LogPoint
from pgoutput_construct.changelog._index.planning import first_commit_after, last_commit
from pgoutput_construct.changelog._store.store import Address
from pgoutput_construct.changelog.reader import ChangeLog, index_as_of
from pgoutput_construct.changelog.timeline import point_at
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import needing
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.wire import Lsn, Timestamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Fork", "ForkPoint", "fork", "fork_point"]


class ForkPoint(NamedTuple):
    """A commit of a log."""

    commit_lsn: Lsn
    """Its LSN."""
    commit_time: Timestamp
    """Its time."""
    seq: int
    """The last seq of the log before the next commit."""
    until: Lsn | None
    """The last LSN before that of the next commit; None where the log has none."""


class Fork(NamedTuple):
    """What was made of a log."""

    point: ForkPoint
    """The commit at which everything is."""
    transactions: int
    """How many transactions, and copies of tables, were applied to the server; 0 without one."""
    rows: dict[str, int]
    """The rows that each table of the server has, by its name in SQL."""
    tables: tuple[str, ...]
    """The tables of the warehouse that were written."""
    lacks: tuple[str, ...]
    """What the log lacks of its tables, so that they are not what the source had."""


def fork_point(log: ChangeLog, at: Lsn | Timestamp, log_point: LogPoint | None = None) -> ForkPoint:
    """Return the last commit at or before an LSN or time; ``log_point`` is that of it, if it is known.

    Raises:
        PgoutputError: The log begins later; or a table was being copied then: its rows are complete only after later
            commits.
    """
    log_point = log_point or point_at(log.index, at)
    seq, following = log_point.seq, first_commit_after(log.index, log_point.seq)
    until = None if following is None else Lsn(following["commit_lsn"] - 1)
    commit = last_commit(log.index, seq) if seq >= log.index.first_seq else None
    if commit is None:
        raise PgoutputError(f"{log.store}: the log has no commit at or before {at}: choose a later LSN or time")
    then = index_as_of(log, log_point)
    complete = {copy.relation_oid for copy in present_copies(then)} | begun_without_copy(then).keys()
    for copy in present_copies(log.index):
        is_made = until is None or copy.snapshot.lsn <= until
        if is_made and copy.seq > seq and copy.relation_oid not in complete:
            after = last_commit(log.index, copy.seq) or commit
            raise PgoutputError(
                f"{log.store}: {full_name(copy)} was being copied at {at}: choose a time from the commit at "
                f"{Lsn(after['commit_lsn'])} on"
            )
    return ForkPoint(Lsn(commit["commit_lsn"]), Timestamp(commit["commit_time"]), seq, until)


def fork(
    log: Address,
    at: Lsn | Timestamp,
    into: str | None = None,
    warehouse: Address | None = None,
    format: str = "parquet",
    *,
    spark: "SparkSession | None" = None,
    host: str = "127.0.0.1",
    on_progress: Callable[[Lsn, Lsn], None] | None = None,
) -> Fork:
    """Make a database, and tables of a warehouse, as they were at one commit: the last one at or before ``at``.

    The tables of the warehouse are written first, by ``spark.replicate(as_of=...)``. Then the server's own subscription
    applies the log up to the same commit, as ``pgoutput replay`` does: missing tables are created, existing ones must
    be empty.

    Args:
        log: The log's address.
        at: The LSN, or the time.
        into: The server: a connection string of libpq; None for none.
        warehouse: The directory or URL of the warehouse; None for none.
        format: The format of its tables: ``parquet``, ``delta``, ``iceberg``.
        spark: The session that writes them, which is needed with a warehouse.
        host: The address of this machine as the server sees it.
        on_progress: Called with the LSN that the server has reached, and the last one.

    Raises:
        ChangeLogError: The log is damaged, or a table of the warehouse cannot be written.
        PgoutputError: There is no such commit, the warehouse is later already, or the server cannot apply the log.
    """
    if into is None and warehouse is None:
        raise PgoutputError("nothing to make: give a server, a warehouse, or both")
    opened = ChangeLog(log)
    # The log may grow until the last of them is made: what is added then does not count for any of them.
    log_point = point_at(opened.index, at)._replace(known=opened.index.last_seq)
    point = fork_point(opened, at, log_point)
    tables: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    if warehouse is not None:
        if spark is None:
            raise PgoutputError("the tables of a warehouse are written by Spark: give its session")
        with needing("spark"):
            from pgoutput_construct.spark import replicate
        batch = replicate(spark, log, warehouse, format, as_of=log_point)
        if batch is not None:
            tables, lacks = tuple(batch.tables), tuple(f"{lack.name}: {lack}" for lack in batch.lacks)
    if into is None:
        return Fork(point, 0, {}, tables, lacks)
    with needing("postgres", "publisher"):
        from pgoutput_construct.publisher.replay import replay
    done = replay(log, into, log_point, host=host, has_dropped=False, on_progress=on_progress)
    return Fork(point, done.transactions, dict(done.tables), tables, tuple(dict.fromkeys([*lacks, *done.lacks])))
