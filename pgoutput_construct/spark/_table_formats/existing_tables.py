"""The locations of datasets: what exists where a new one is to be written, and is refused or taken over; and links."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.spark._log_view.replicated_tables import plain_path

_REMEDY: Final = "drop or rename it, replicate to another location, or give --adopt (adopt=True) to replace it"


def entries_of(store: LogStore, folder: str) -> set[str]:
    """Return the names of the files and folders in a folder."""
    return {*store.files(folder), *store.folders(folder)}


def remove_entries(store: LogStore, folder: str, names: Iterable[str]) -> None:
    """Remove files, and folders with their content, from a folder."""
    folders = {*store.folders(folder)}
    for name in names:
        if name in folders:
            store.remove(f"{folder}/{name}")
        else:
            store.delete(f"{folder}/{name}")


def files_below(store: LogStore, folder: str, entries: Iterable[str]) -> tuple[str, ...]:
    """Return the files among some entries of a folder, and below these, by their paths from the folder."""
    folders, found = {*store.folders(folder)}, list[str]()
    for name in sorted(entries):
        if name not in folders or _is_link(store, f"{folder}/{name}"):  # what a link leads to is elsewhere
            found.append(name)
            continue
        inside = f"{folder}/{name}"
        found += (f"{name}/{path}" for path in files_below(store, inside, entries_of(store, inside)))
    return tuple(found)


def remove_replaced(store: LogStore, folder: str, there: "ExistingTable") -> None:
    """Remove what a new table has replaced: the new one may have files in the same folders."""
    for name in there.files:
        store.delete(f"{folder}/{name}")
    for name in {*store.folders(folder)} & {*there.entries}:
        if not files_below(store, folder, [name]):
            store.remove(f"{folder}/{name}")


def link_folder(store: LogStore, folder: str, other: str) -> bool:
    """Have the files of a folder in another one, too, without copying them; return False where that cannot be."""
    if not isinstance(store, LocalStore):
        return False
    store.remove(other)
    source = store.directory / folder
    try:
        for path, folders, names in os.walk(source, onerror=_fail):
            if any((Path(path) / name).is_symlink() for name in folders):  # what it has would not be linked
                raise OSError(f"{path} has a symbolic link")
            target = store.directory / other / Path(path).relative_to(source)
            target.mkdir(parents=True, exist_ok=True)
            for name in names:
                os.link(Path(path) / name, target / name)
    except OSError:  # a file system without hard links, or a folder that cannot be listed
        store.remove(other)
        return False
    return True


def _is_link(store: LogStore, name: str) -> bool:
    return isinstance(store, LocalStore) and (store.directory / name).is_symlink()


def _fail(error: OSError) -> None:
    raise error


class ExistingTable(NamedTuple):
    """A table, or a directory with files, that this warehouse did not write."""

    location: str
    """Its name in a catalog, or its path."""
    columns: T.StructType | None
    """Its columns; None where Spark cannot read it as a table."""
    entries: tuple[str, ...] = ()
    """The names of the files and folders in its directory that are no part of a table of the format."""
    files: tuple[str, ...] = ()
    """The files among them and below them, by their paths from the directory: they go once the table is replaced."""


def existing_files(
    spark: SparkSession, warehouse: Warehouse, folder: str, entries: Iterable[str], lists: bool
) -> ExistingTable:
    """Return what some entries of a folder are, which are no part of a table of the format; columns are of Parquet.

    Args:
        spark: A session.
        warehouse: Where the folder is.
        folder: Its name there.
        entries: The names of the files and folders in it.
        lists: Whether to list the files, which takes long where there are many.
    """
    names, path = tuple(sorted(entries)), f"{warehouse.path}/{folder}"
    files = files_below(warehouse.store, folder, names) if lists else ()
    return ExistingTable(path, columns_of_files(spark, path), names, files)


def refusal(there: ExistingTable, wanted: T.StructType) -> PgoutputError:
    """Return the error of a table of others, given the columns that are to be written."""
    if there.columns is None:
        found = "Spark cannot read it as a table"
    else:
        found = "; ".join(_differences(there.columns, wanted)) or "it has the columns that are to be written"
    return PgoutputError(f"{there.location} exists already, and is not of this warehouse ({found}): {_REMEDY}")


def columns_of_files(spark: SparkSession, path: str) -> T.StructType | None:
    """Return the columns of Parquet files in a directory; None where it has none, or they cannot be read."""
    try:
        return spark.read.parquet(plain_path(path)).schema
    except AnalysisException:
        return None
    except Exception as error:  # Spark has no class of its own for a file that is not Parquet
        if "CANNOT_READ_FILE_FOOTER" in str(error) or "FAILED_READ_FILE" in str(error):
            return None
        raise


def _differences(there: T.StructType, wanted: T.StructType) -> Iterator[str]:
    """Yield how the columns of two tables differ."""
    kinds = {field.name: field.dataType.simpleString() for field in there}
    needed = {field.name: field.dataType.simpleString() for field in wanted}
    for name, kind in kinds.items():
        if kind != needed.get(name, kind):
            yield f"column {name!r} is {kind} there, and would be {needed[name]}"
    for names, what in ((needed.keys() - kinds.keys(), "lacks"), (kinds.keys() - needed.keys(), "has in addition")):
        if names:
            yield f"it {what} {', '.join(map(repr, sorted(names)))}"
