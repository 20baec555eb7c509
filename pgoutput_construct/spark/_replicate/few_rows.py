"""Tables of few rows in formats with a log of commits: the driver reads their files, and writes what has changed.

Spark takes a second to plan and run a MERGE into a table of ten rows, and milliseconds are enough. A table is
**overwritten** by one file, where that is not more than what a merge would write. Where files can say which rows of
others are gone (Iceberg's position deletes), a larger one gets a file of the rows that are new, and one of these
**deletes**; when it has many files, it is overwritten.

A row keeps its ``_commit_lsn`` and ``_seq`` until it changes, by which the rows that are gone are found among those
before. Rows of a copy are counted in another way than changes (``dataset_columns.ROW_KEY``), so a change that commits
at the LSN of the snapshot may have the position of a copied row: then the table is overwritten. ``Sink.new_files`` says
which files a table has, and refuses those that may be read in more than one way.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pgoutput_construct.changelog._segment.block import Flags
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.spark._log_view.change_columns import POSITION, changes_schema
from pgoutput_construct.spark._log_view.replicated_tables import ChangePosition
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._replicate.batch_plan import TableStep
from pgoutput_construct.spark._replicate.sink import DELETES, NewFiles, PresentFile, Sink
from pgoutput_construct.spark._replicate.small_tables import (
    SmallTableRule,
    advanced_rows,
    content_of,
    filled_rows,
    is_simple,
    named_columns,
    read_files,
    rows_schema,
    rule_of,
)
from pgoutput_construct.spark._replicate.staging import StagedRows, write_file
from pgoutput_construct.spark._state.demands import OnMissing

TINY: Final = 1 << 17
"""The most bytes of a table that is always overwritten: a merge would write as much, counting what a commit adds."""
_FILES: Final = 64
"""A table of more files, those of deletes included, is overwritten, so that readers need not open many."""


class _RowsBefore(NamedTuple):
    """The rows of a table, and where they are."""

    rows: pa.Table
    files: tuple[PresentFile, ...]
    """Their files."""
    kept: tuple[Flags, ...]
    """Of each file, which of its rows are there."""


@dataclass(frozen=True)
class FewRows:
    """A table of few rows, of which the driver makes what they are after changes."""

    rule: SmallTableRule
    changes: pa.Table
    """The changes."""
    named: tuple[tuple[str, str], ...]
    """The columns of its rows that the dataset has, each with its name there."""
    last: ChangePosition
    """The position of the last change before: that of rows whose own the dataset does not have."""

    @classmethod
    def from_step(
        cls,
        log: OpenLog,
        sink: Sink,
        step: TableStep,
        changes: StagedRows,
        before: Dataset | None,
        on_missing: OnMissing,
    ) -> Self | None:
        """Return a table, with its changes read; None to fall back to Spark.

        Args:
            log: The log.
            sink: What writes the format.
            step: What is done for the table.
            changes: The changes.
            before: The dataset whose rows count; None for none.
            on_missing: As in ``OpenLog.state``.
        """
        table = log.table(step.table)
        if not is_simple(log, step, table, changes.summary):
            return None
        changed = read_files(sink.warehouse.store, dict.fromkeys(changes.files), changes_schema(table.columns))
        if changed is None:
            return None
        lacks_rows = on_missing == "error" and table.relation_oid in {lack.relation_oid for lack in log.lacks}
        rule, naming = rule_of(table, changes.summary, lacks_rows), sink.naming_of(step.dataset)
        last = (-1, -1) if before is None else before.version.last
        return cls(rule, changed, named_columns(rows_schema(rule.columns), naming), last)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        return rows_schema(self.rule.columns)

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns of the dataset."""
        return pa.schema([self.schema.field(name).with_name(other) for name, other in self.named])

    def after(self, before: pa.Table | None) -> pa.Table | None:
        """Return the rows after the changes, given those before; None if a change needs the general way."""
        try:
            return advanced_rows(None if before is None else before.cast(self.schema), self.changes, self.rule)
        except (PgoutputError, pa.ArrowException):
            return None  # the general way says what is wrong

    def add(self, store: LogStore, files: NewFiles, rows: pa.Table) -> Dataset:
        """Write rows, and commit them: all of a table, or new ones; return its dataset."""
        return files.commit(self._write(store, files, rows))

    def write(self, store: LogStore, files: NewFiles) -> tuple[Dataset, int] | None:
        """Write what has changed, and commit it; None if the general way is needed.

        Args:
            store: The store of the warehouse.
            files: What files the dataset has, and how others become part of it.

        Returns:
            The dataset, and how many rows it has.
        """
        before = self._read(store, files)
        after = None if before is None else self.after(before.rows)
        if before is None or after is None:
            return None
        is_tiny = sum(file.size for file in files.present) <= TINY
        number = len({*files.present, *(name for file in files.present for name in file.deletes)})
        if is_tiny or not files.takes_deletes or number >= _FILES or self._has_position_of(before.rows):
            return files.commit(self._write(store, files, after)), after.num_rows
        was, now = _positions(before.rows), _positions(after)
        if len(np.unique(was)) < len(was) or len(np.unique(now)) < len(now):
            return None  # rows that have no position of their own
        new, gone = after.filter(pa.array(~np.isin(now, was))), ~np.isin(was, now)
        if gone.sum() > len(was) // 2:
            return files.commit(self._write(store, files, after)), after.num_rows
        added = self._write(store, files, new) if new.num_rows else {}
        return files.commit(added, _write_deletes(store, files, before, gone)), after.num_rows

    def _has_position_of(self, before: pa.Table) -> bool:
        """Return whether a change may have the position of a row before: it is applied again, or the row was copied."""
        return bool(np.isin(before[POSITION[0]].to_numpy(), self.changes[POSITION[0]].to_numpy()).any())

    def _read(self, store: LogStore, files: NewFiles) -> _RowsBefore | None:
        """Return the rows before; None where files are not as they are written now."""
        names, _ = zip(*self.named, strict=True)
        opened = lru_cache(maxsize=None)(lambda name: _deletes_of(store, name))
        parts, kept = [files.schema.empty_table()], list[Flags]()
        for file in files.present:
            rows = read_files(store, {file.name: file.size}, files.schema, most=file.size)
            if rows is None:
                return None
            is_kept = np.ones(len(rows), np.bool_)
            for name in file.deletes:
                paths, places = opened(name)
                is_kept[places[paths == file.address]] = False
            parts.append(rows.filter(pa.array(is_kept)))
            kept.append(is_kept)
        rows = pa.concat_tables(parts).rename_columns(names)
        return _RowsBefore(filled_rows(rows, self.schema, self.last), tuple(files.present), tuple(kept))

    def _write(self, store: LogStore, files: NewFiles, rows: pa.Table) -> dict[str, int]:
        """Write rows as a file; return its bytes by its name."""
        names, stored_names = zip(*self.named, strict=True)
        stored = rows.select(names).rename_columns(stored_names).cast(files.schema)
        name, content = f"{files.folder}/part-{uuid4().hex}.parquet", content_of(stored, files.codec)
        write_file(store, name, content)
        return {name: content.size}


def _positions(rows: pa.Table) -> Any:
    """Return the positions of rows, each as one value."""
    columns = [rows[name].to_numpy() for name in POSITION]
    return np.ascontiguousarray(np.stack(columns, 1)).view([("", np.int64)] * len(columns)).ravel()


def _deletes_of(store: LogStore, name: str) -> tuple[Any, Any]:
    """Return the addresses of files, and the places of rows in them, that a file says are gone."""
    with store.explained("cannot be read", name), store.open(name) as file:
        found = pq.read_table(file, columns=list(DELETES.names))
    path, place = DELETES.names
    return np.asarray(found[path].to_pylist(), dtype=object), found[place].to_numpy()


def _write_deletes(store: LogStore, files: NewFiles, before: _RowsBefore, gone: Flags) -> dict[str, int]:
    """Write which rows are gone, as a file for each of theirs, of few as one; return the bytes by name."""
    addresses, places, start = list[str](), list[int](), 0
    for file, kept in zip(before.files, before.kept, strict=True):
        there = np.flatnonzero(kept)
        lost = there[gone[start : start + len(there)]]
        start += len(there)
        addresses += [file.address] * len(lost)
        places += lost.tolist()
    if not places:
        return {}
    rows = pa.table([pa.array(addresses), pa.array(places)], schema=DELETES)
    rows = rows.sort_by([(name, "ascending") for name in DELETES.names])
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression=files.codec, store_schema=False)
    name, content = f"{files.folder}/part-{uuid4().hex}-deletes.parquet", sink.getvalue()
    write_file(store, name, content)
    return {name: content.size}
