"""The log that a warehouse is of: another one is refused, unless the warehouse is to adopt it."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from pgoutput_construct.changelog._facts.completeness import lacks_of
from pgoutput_construct.changelog.reader import ChangeLog, identity_of
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.log_tables import LogTables
from pgoutput_construct.spark.log_view import OpenLog
from pgoutput_construct.spark.warehouse.notes import Dataset, Progress, Warehouse
from pgoutput_construct.spark.warehouse.steps import Step

__all__ = ["adopted", "adoption_of", "check_same_log", "check_whole"]


def check_same_log(log: ChangeLog, progress: Progress | None, warehouse: Warehouse) -> None:
    """Raise ChangeLogError where the tables of a warehouse are of another log, or the log has lost what they have."""
    if different := _differences(log, progress):
        raise ChangeLogError(
            f"{warehouse.store}: the tables there are of another log than {log.store} ({'; '.join(different)}): give "
            "the log that they are of, or another warehouse, or --adopt (adopt=True) to make them from this log: "
            f"{'; '.join(_plan(log, warehouse, progress))}"
        )


def adoption_of(log: ChangeLog, progress: Progress | None, warehouse: Warehouse) -> str | None:
    """Say what becomes of the tables of a warehouse that adopts a log; None where they are of this log already."""
    different = _differences(log, progress)
    if not different:
        return None
    plan = "; ".join(_plan(log, warehouse, progress))
    return f"{warehouse.store} adopts {log.store}, another log ({'; '.join(different)}): {plan}"


def adopted(log: ChangeLog, progress: Progress) -> Progress:
    """Return how far a warehouse has come that adopts a log: nowhere; all datasets are of an earlier log."""
    return replace(progress, seq=-1, applied=-1, log=identity_of(log), adopted=progress.batch, lacking=(), own_seqs={})


def _differences(log: ChangeLog, progress: Progress | None) -> list[str]:
    if progress is None:
        return []
    found = [] if progress.log is None else progress.log.differences(identity_of(log))
    if not found and progress.seq > (last := log.index.last_seq):
        found = [f"the tables have all up to seq {progress.seq}, the log ends at seq {last}"]
    return found


def _plan(log: ChangeLog, warehouse: Warehouse, progress: Progress | None) -> Iterator[str]:
    """Yield what becomes of tables, in parts of a sentence."""
    tables = {table.directory: table for table in LogTables.from_log(log).tables.values() if not table.dropped}
    lacking = {lack.relation_oid for lack in lacks_of(log.index)}
    datasets = [each for each in warehouse.readable_datasets()[0].values() if not each.is_history]
    there = {each.directory for each in datasets}
    whole = [name for name in there & tables.keys() if tables[name].relation_oid not in lacking]
    partial = [name for name in there & tables.keys() if tables[name].relation_oid in lacking]
    yield f"replaced, with their histories, by what this log has: {_named(tables[name].qualified for name in whole)}"
    yield f"kept until this log has a copy of them: {_named(tables[name].qualified for name in partial)}"
    yield f"kept, since this log does not have them: {_named(_only_there(datasets, tables.keys()))}"
    yield f"new: {_named(table.qualified for name, table in tables.items() if name not in there)}"
    if progress is not None and progress.reader:
        yield f"the earlier log still waits for its reader {progress.reader}: pgoutput log readers LOG --remove it"


def _only_there(datasets: Collection[Dataset], directories: Collection[str]) -> Iterator[str]:
    return (each.version.table for each in datasets if each.directory not in directories)


def _named(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def check_whole(log: OpenLog, progress: Progress, step: Step) -> None:
    """Raise ChangeLogError for a table that a log has not every row of, and that would replace an earlier log's."""
    lacks = {lack.relation_oid: lack for lack in log.lacks}
    lack, replaced = lacks.get(step.dataset.version.oid), step.replaced
    if lack is not None and replaced is not None and progress.is_foreign(replaced.version):
        raise ChangeLogError(f"{step.table}: its rows of an earlier log are kept: {lack}")
