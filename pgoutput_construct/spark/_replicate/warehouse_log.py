"""The log that a warehouse follows: another one is refused or adopted, and the log retains what the warehouse needs.

A table that has everything that ended up to a seq needs of the log only what ended later. Prune removes what ended
before a seq, and no transaction that crosses it: so a table lacks changes exactly where the log begins after the seq
that follows its own, unless a later copy, or the table's first row, makes up for them. A table that lacks nothing is
brought up to date by its changes alone, whatever else of it was pruned (``prune(states=False)``): its copy, the
descriptions of columns that it no longer has, its last change.

A warehouse is a registered reader of its log, so that prune retains what it has not applied. A table in trouble is a
reader of its own until it recovers: it retains what it needs, as an inactive slot of PostgreSQL does, and prune names
it; the warehouse itself advances with the other tables.
"""

import logging
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from re import sub
from typing import Final

from pgoutput_construct.changelog._facts.completeness import Lack, lacks_of, present_copies
from pgoutput_construct.changelog._facts.copies import snapshot_command
from pgoutput_construct.changelog._index.planning import last_commit
from pgoutput_construct.changelog.prune import needs_of
from pgoutput_construct.changelog.reader import ChangeLog, identity_of
from pgoutput_construct.changelog.registry import forget, readers, register
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.lake._notes import Dataset, Progress, Warehouse
from pgoutput_construct.lake._versions import Version
from pgoutput_construct.spark._log_view.log_tables import LogTables
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._replicate.column_rules import ColumnRules
from pgoutput_construct.spark._replicate.dataset_names import DEFAULT_NAMES, DatasetNames
from pgoutput_construct.spark._source.micro_batches import first_needed_seq

_LOG: Final = logging.getLogger("pgoutput_construct")
_LONGEST: Final = 60
_LONGEST_READER: Final = 100


@dataclass(frozen=True)
class Coverage:
    """What a log still has for the tables of a warehouse."""

    progress: Progress
    """How far the warehouse has come."""
    first_seq: int
    """The first seq that the log has."""

    def has_gap(self, version: Version) -> bool:
        """Return whether the log lacks changes that came after a version of a table."""
        return self.progress.to_seq(version) < self.first_seq - 1

    def next_version(self, before: Version, now: Version) -> Version:
        """Return the version after ``before``, given what the log has of the table ``now``.

        What was pruned since is as it was: the table's copy, its last change, and columns that it no longer has.
        """
        if not self.first_seq or self.has_gap(before):
            return now
        was, shape = before.shape, now.shape
        if shape.copy is None and was.copy is not None and was.copy < self.progress.to_seq(before):
            shape = replace(shape, copy=was.copy)
        forgotten = {name: kind for name, kind in was.columns.items() if name not in shape.columns}
        if forgotten and not {*forgotten} & {*was.current}:
            shape = replace(shape, columns={**shape.columns, **forgotten})
        last = before.last if now.last < before.last and before.last[1] < self.first_seq else now.last
        return replace(now, shape=shape, last=last)

    def pruned_tables(self, log: OpenLog, datasets: Iterable[Dataset]) -> dict[int, tuple[str, ChangeLogError]]:
        """Return the tables, by OID, whose changes were pruned before they were applied: name and error."""
        found = {}
        by_oid = {oid: table for table in log.opened.tables.values() for oid in table.relation_oids}
        for dataset in datasets:
            version = dataset.version
            table = by_oid.get(version.oid)
            if self.has_gap(version) and not (table and (table.is_removed(version.oid) or log.is_retained(table))):
                name = version.table if table is None else table.qualified
                error = ChangeLogError(
                    f"{name}: the seqs {self.progress.to_seq(version) + 1} to {self.first_seq - 1} were pruned from "
                    f"{log.log.store} before they were applied, so the table was not updated: copy it again: "
                    f"{snapshot_command(name)}"
                )
                found[version.oid] = name, error
        return found

    def reported_lacks(self, lacks: Iterable[Lack], datasets: Iterable[Dataset]) -> Iterator[Lack]:
        """Yield what a log lacks of tables, without first rows that were pruned after they were applied."""
        whole = {
            each.version.oid
            for each in datasets
            if self.first_seq and not self.has_gap(each.version) and each.version.oid not in self.progress.lacking
        }
        return (lack for lack in lacks if lack.stale_since is not None or lack.relation_oid not in whole)


def reader_name(warehouse: Warehouse) -> str:
    """Return a new, unique name of a warehouse for a log's registry, beginning with that of its directory."""
    name = warehouse.store.shown.partition("?")[0].rstrip("/").rpartition("/")[2]
    return f"{sub(r'[^A-Za-z0-9_-]+', '-', name).strip('-')[:_LONGEST] or 'warehouse'}-{uuid.uuid4().hex[:12]}"


def register_warehouse(log: ChangeLog, name: str, applied: int) -> bool:
    """Register a warehouse as a reader, or check that it still is one; return whether it is.

    A user who may only read the log cannot register. Prune does not wait for the warehouse then, which is logged.

    Args:
        log: The log.
        name: The reader's name.
        applied: The seq after which the warehouse reads.
    """
    try:
        if name not in {reader.name for reader in readers(log.store)}:
            register(log.store, name, max(first_needed_seq(log.index, applied), log.index.first_seq))
    except ChangeLogError as error:
        _LOG.warning(
            "prune does not wait for this warehouse, which could not be registered as a reader of the log: %s; a table "
            "whose changes are pruned before they are applied will be refused",
            error,
        )
        return False
    return True


def advance_warehouse(log: OpenLog, name: str, applied: int, tables: Collection[int]) -> None:
    """Note in a log that a warehouse has applied everything that ended by a seq.

    Args:
        log: The log.
        name: The reader's name.
        applied: The seq.
        tables: The OIDs of its tables.
    """
    index, store = log.opened.index, log.log.store
    needed = min(first_needed_seq(index, applied), *_early_copy_starts(log, tables), applied + 1)
    last = last_commit(index, applied)
    try:
        known = {reader.name: reader.next_seq for reader in readers(store)}
        if needed > known.get(name, -1):
            register(store, name, needed, 0 if last is None else last["commit_lsn"])
    except ChangeLogError as error:
        _LOG.warning(
            "could not update the position of this warehouse in the log, which retains changes that it has applied: %s",
            error,
        )


def hold_tables(log: ChangeLog, name: str, tables: Mapping[int, str]) -> None:
    """Register tables in trouble as readers of their own that need what the warehouse needs now.

    The warehouse advances without them. Removing such a reader (``pgoutput log readers LOG --remove``) gives up what
    only the table needs: it is not registered again, and is refused once some of that was pruned.

    Args:
        log: The log.
        name: The name of the warehouse as a reader.
        tables: The names of the tables, by OID.
    """
    try:
        known = {reader.name: reader for reader in readers(log.store)}
        if name in known:
            for oid, table in tables.items():
                register(log.store, _table_reader(name, oid, table), known[name].next_seq, known[name].lsn)
    except ChangeLogError as error:
        _LOG.warning("prune does not wait for the tables in trouble %s: %s", ", ".join(tables.values()), error)


def release_tables(log: ChangeLog, name: str, own_seqs: Collection[int]) -> None:
    """Remove the readers of tables in trouble, except those of some OIDs."""
    kept = tuple(_table_reader(name, oid, "") for oid in own_seqs)
    for reader in readers(log.store):
        if reader.name.startswith(f"{name}.") and not reader.name.startswith(kept):
            forget(log.store, reader.name)


def _table_reader(name: str, oid: int, table: str) -> str:
    return f"{name}.{oid}.{sub(r'[^A-Za-z0-9_.-]+', '-', table)}"[:_LONGEST_READER]


def _early_copy_starts(log: OpenLog, tables: Collection[int]) -> Iterator[int]:
    """Yield the seqs of copies whose snapshots see transactions that the log will only have later.

    The copier reads the server while the stream may lag: such a transaction is in the copy, and must not be applied to
    it again, which only the copy in the log says.
    """
    index = log.opened.index
    copies = (copy for copy in present_copies(index) if copy.snapshot.lsn > index.complete_lsn)
    if early := {copy.relation_oid for copy in copies}.intersection(tables):
        yield from (need.seq for need in needs_of(index) if need.relation_oid in early)


def check_same_log(log: ChangeLog, progress: Progress | None, warehouse: Warehouse) -> None:
    """Raise ChangeLogError if the tables of a warehouse are of another log, or the log has lost what they have."""
    if different := _differences(log, progress):
        raise ChangeLogError(
            f"{warehouse.store}: the warehouse was written from another log than {log.store} ({'; '.join(different)}): "
            "use that log, or another warehouse, or --adopt (adopt=True) to write the tables from this log: "
            f"{'; '.join(_plan(log, warehouse, progress))}"
        )


def adoption_message(log: ChangeLog, progress: Progress | None, warehouse: Warehouse) -> str | None:
    """Return what becomes of the tables of a warehouse that adopts a log; None if they are of this log already."""
    different = _differences(log, progress)
    if not different:
        return None
    plan = "; ".join(_plan(log, warehouse, progress))
    return f"{warehouse.store} adopts {log.store}, another log ({'; '.join(different)}): {plan}"


def check_own(log: ChangeLog, progress: Progress, version: Version) -> None:
    """Raise ChangeLogError for a dataset whose rows are of a previous log: the error says why, and the remedy.

    Its seq and its OID are those of that log, and must not be looked up in this one.
    """
    if not progress.is_foreign(version):
        return
    names = {table.qualified for table in LogTables.from_log(log).tables.values() if not table.dropped}
    copies = snapshot_command(version.table)
    if version.table in names:
        raise ChangeLogError(
            f"its rows are of a previous log: pgoutput replicate writes it from {log.store} once that has a copy of "
            f"it, which {copies} makes"
        )
    raise ChangeLogError(
        f"the log {log.store} has no such table: its rows are of a previous log, and are not updated any more; to "
        f"update it again, add it to the publication, run {copies}, then pgoutput replicate"
    )


def adopted_progress(log: ChangeLog, progress: Progress) -> Progress:
    """Return the progress of a warehouse that adopts a log: none; all datasets are of an earlier log."""
    now = replace(progress, seq=-1, applied=-1, log=identity_of(log), adopted=progress.batch, lacking=(), own_seqs={})
    return replace(now, rules=ColumnRules.from_notes(progress.rules).forget_tables().to_notes())


def _differences(log: ChangeLog, progress: Progress | None) -> list[str]:
    if progress is None:
        return []
    found = [] if progress.log is None else progress.log.differences(identity_of(log))
    if not found and progress.seq > (last := log.index.last_seq):
        found = [f"the tables have all up to seq {progress.seq}, the log ends at seq {last}"]
    return found


def _plan(log: ChangeLog, warehouse: Warehouse, progress: Progress | None) -> Iterator[str]:
    """Yield what becomes of tables, as parts of a sentence."""
    names = DEFAULT_NAMES if progress is None else DatasetNames.of(progress)
    present = (table for table in LogTables.from_log(log).tables.values() if not table.dropped)
    tables = {names.directory(table, is_history=False): table for table in present}
    lacking = {lack.relation_oid for lack in lacks_of(log.index)}
    datasets = [each for each in warehouse.readable_datasets()[0].values() if not each.is_history]
    there = {each.directory for each in datasets}
    whole = [name for name in there & tables.keys() if tables[name].relation_oid not in lacking]
    partial = [name for name in there & tables.keys() if tables[name].relation_oid in lacking]
    yield f"replaced, with their histories, by what this log has: {_joined(tables[name].qualified for name in whole)}"
    yield f"retained until this log has a copy of them: {_joined(tables[name].qualified for name in partial)}"
    absent = (each.version.table for each in datasets if each.directory not in tables)
    yield f"retained, because this log does not have them: {_joined(absent)}"
    yield f"new: {_joined(table.qualified for name, table in tables.items() if name not in there)}"
    if progress is not None and progress.reader:
        yield f"the earlier log still waits for its reader {progress.reader}: pgoutput log readers LOG --remove it"


def _joined(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
