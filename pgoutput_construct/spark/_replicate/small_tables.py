"""Small tables, brought up to date in Arrow: what changes do to their rows, while their definition stays the same.

A ``SmallTableRule`` says it of a table, and ``SmallTable`` also which changes, and how its dataset has its rows:
``arrow_writes`` writes them. What is not as simple as that is left to Spark.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.columnar import UNTYPED
from pgoutput_construct.spark._heap import shown_bytes
from pgoutput_construct.spark._log_view.change_columns import (
    BEFORE_ALL,
    CHANGED,
    DELETE,
    INSERT,
    POSITION,
    SHAPE,
    SIDE,
    STORED,
    TRUNCATE,
    TURN,
    changes_schema,
)
from pgoutput_construct.spark._log_view.replicated_tables import BaseCopy, ChangePosition
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.spark._parquet_file import RowsFile
from pgoutput_construct.spark._replicate.batch_plan import TableStep
from pgoutput_construct.spark._replicate.table_history import END
from pgoutput_construct.spark._replicate.write_ways import SparkNeededError
from pgoutput_construct.spark._state.change_survey import ChangeSummary
from pgoutput_construct.spark._state.copy_visibility import (
    counted_changes_arrow,
    move_copy_first_arrow,
    restore_copy_lsn_arrow,
)
from pgoutput_construct.spark._state.demands import OnMissing
from pgoutput_construct.spark._state.row_replay import BOTH, Replay, ReplayResult
from pgoutput_construct.spark._table_formats.dataset_columns import DELETED_AT, is_soft
from pgoutput_construct.spark._table_formats.sink import Sink
from pgoutput_construct.stream.rows import SNAPSHOT
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

_FIELD_ID: Final = b"PARQUET:field_id"
"""The metadata of a column that has an ID: under the same name, another column may have been in older files."""
_BYTES: Final = 1 << 22
"""The most bytes of the files of its changes."""
_ROWS: Final = 1 << 18
"""The most rows of a task, and"""
_MEMORY: Final = 1 << 28
"""the most bytes in memory."""
_BATCH: Final = 1 << 13
"""Rows that are in memory, of a file of which some are read;"""
_KEYS: Final = 1 << 22
"""and the most rows that it may have."""
_LEGACY: Final = b"org.apache.spark.legacy"
"""The prefix of keys of a footer by which Spark says that old dates are in the hybrid calendar."""


@dataclass(frozen=True)
class SmallTableRule:
    """What must be known of a small table while its definition stays the same."""

    columns: pa.Schema
    """The present columns, typed."""
    keys: tuple[str, ...] | None
    """Those of the key, None for the full row."""
    unsent: tuple[str, ...]
    """Those that some update did not send."""
    base: BaseCopy | None
    """The copy that it begins with."""
    lacks_rows: bool
    """Whether the log may have changes of rows that are older than it."""


def rows_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of rows: the columns, ``_untyped``, ``_commit_lsn`` and ``_seq``."""
    return pa.schema([*columns, ("_untyped", UNTYPED), ("_commit_lsn", pa.int64()), ("_seq", pa.int64())])


def history_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of a history: the columns, and those of HISTORY."""
    time, text, number = pa.timestamp("us", "UTC"), pa.string(), pa.int64()
    began = [("_untyped", UNTYPED), ("_op", text), ("_commit_lsn", number), ("_seq", number)]
    ended = [("_unchanged", pa.list_(text)), ("_valid_from", time), ("_valid_to", time), ("_ended_by", text)]
    return pa.schema([*columns, *began, *ended])


def soft_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of a table whose deleted rows stay: that of rows, and ``_deleted_at``."""
    return rows_schema(columns).append(pa.field(DELETED_AT, pa.timestamp("us", "UTC")))


def advanced_rows(before: pa.Table | None, changes: pa.Table, rule: SmallTableRule) -> pa.Table:
    """Return the rows of a table after changes (``rows_schema``).

    Args:
        before: The rows before, None for none.
        changes: The changes.
        rule: The table.

    Raises:
        SparkNeededError: The row of a change does not exist, or a value is left open.
    """
    schema = rows_schema(rule.columns)
    counted = counted_changes_arrow(changes, rule.base, with_copy=before is None)
    stored = schema.empty_table() if before is None else move_copy_first_arrow(before.select(schema.names), rule.base)
    done, _ = _replayed(stored.cast(schema), counted, rule)
    rows = pa.table(_rows(done, done.open, rule))
    return restore_copy_lsn_arrow(rows.select(schema.names).cast(schema), rule.base)


def recorded_rows(before: pa.Table | None, changes: pa.Table, rule: SmallTableRule) -> pa.Table:
    """Return the history of a table after changes (``history_schema``).

    Args:
        before: The history before, None for none: then the rows of the copy are included.
        changes: The changes.
        rule: The table.

    Raises:
        SparkNeededError: As ``advanced_rows``.
    """
    schema = history_schema(rule.columns)
    there = schema.empty_table() if before is None else before.select(schema.names)
    is_open = pc.is_null(there["_ended_by"])
    stored = there.filter(is_open).drop_columns(["_valid_to", "_ended_by"])
    rows = _intervals(stored.rename_columns({"_valid_from": "_commit_time"}), before is None, changes, rule)
    return pa.concat_tables([there.filter(pc.invert(is_open)), rows.select(schema.names).cast(schema)])


def soft_rows(before: pa.Table | None, changes: pa.Table, rule: SmallTableRule) -> pa.Table:
    """Return the rows of a table whose deleted rows stay after changes (``soft_schema``).

    The rules are those of ``soft_deletes``: a deleted row has the position of the change that deleted it.

    Args:
        before: The rows before, None for none.
        changes: The changes.
        rule: The table.

    Raises:
        SparkNeededError: As ``advanced_rows``; or values of its key may be equal, and differ.
    """
    schema = soft_schema(rule.columns)
    there = schema.empty_table() if before is None else before.select(schema.names)
    is_present = pc.is_null(there[DELETED_AT])
    rows = _intervals(there.filter(is_present).drop_columns([DELETED_AT]), before is None, changes, rule)
    has_ended = rows["_ended_by"].is_valid()
    present = rows.filter(pc.invert(has_ended)).rename_columns({"_valid_to": DELETED_AT})
    ended = rows.filter(has_ended if rule.keys else pc.is_in(rows["_ended_by"], pa.array([DELETE, TRUNCATE])))
    ended = ended.drop_columns([*POSITION]).rename_columns(
        {"_valid_to": DELETED_AT, **dict(zip(END, POSITION, strict=True))}
    )
    deleted = ended.take(pa.array(np.arange(len(ended))[::-1]))  # the last one of each key is first
    chosen = [
        each.select(schema.names).cast(schema) for each in (present, deleted, there.filter(pc.invert(is_present)))
    ]
    return _first_of_keys(pa.concat_tables(chosen), rule.keys)


def _first_of_keys(rows: pa.Table, keys: Sequence[str] | None) -> pa.Table:
    """Return rows of which each has a key that none before it has; all where there is no key."""
    if not keys:
        return rows
    columns = dict[str, Any]()
    for number, name in enumerate(keys):
        if not _is_exact(rows[name].type):
            raise SparkNeededError(f"its deleted rows stay, and the key has values of the type {rows[name].type}")
        columns[f"value{number}"] = rows[name]
        columns[f"text{number}"] = pc.map_lookup(rows["_untyped"], name, "first")
    indexed = pa.table({**columns, "index": np.arange(len(rows))})
    first = indexed.group_by([*columns]).aggregate([("index", "min")])["index_min"]
    return rows.take(first.sort())


def _intervals(stored: pa.Table, with_copy: bool, changes: pa.Table, rule: SmallTableRule) -> pa.Table:
    """Return the stored rows and those that changes made, each with what ended it, if anything: in their order.

    Args:
        stored: The rows before that exist.
        with_copy: Whether the rows of the copy are among the changes.
        changes: The changes.
        rule: The table.

    Raises:
        SparkNeededError: As ``advanced_rows``.
    """
    counted = counted_changes_arrow(changes, rule.base, with_copy=with_copy)
    done, truncates = _replayed(move_copy_first_arrow(stored, rule.base), counted, rule)
    chosen = np.flatnonzero(done.events.comes)
    found = _rows(done, chosen, rule)
    is_copied = pc.equal(found["_commit_lsn"], BEFORE_ALL)
    found["_op"] = pc.if_else(is_copied, SNAPSHOT, done.change_column("_op", chosen))
    found["_valid_from"] = done.change_column("_commit_time", chosen)
    ends = {"_valid_to": "_commit_time", "_ended_by": "_op", **dict(zip(END, POSITION, strict=True))}
    for name, of_change in ends.items():
        found[name] = done.ends(of_change, chosen, truncates[of_change].combine_chunks())
    return restore_copy_lsn_arrow(pa.table(found), rule.base)


def _replayed(stored: pa.Table, counted: pa.Table, rule: SmallTableRule) -> tuple[ReplayResult, pa.Table]:
    """Replay the changes that count, after the rows before them; return the truncates among them, too, in order."""
    is_truncate = pc.equal(counted["_op"], TRUNCATE)
    truncates = counted.filter(is_truncate).sort_by([("_commit_lsn", "ascending"), ("_seq", "ascending")])
    positions = zip(truncates["_commit_lsn"].to_pylist(), truncates["_seq"].to_pylist(), strict=True)
    events = _ordered(stored, counted.filter(pc.invert(is_truncate)))
    return Replay(tuple(rule.columns.names), rule.keys, rule.unsent, truncates=tuple(positions)).run(events), truncates


def _rows(done: ReplayResult, chosen: Numbers, rule: SmallTableRule) -> dict[str, pa.Array]:
    """Return the rows that events made, with their positions; raise SparkNeededError as ``advanced_rows``."""
    found = done.rows(chosen, rule.columns.names)
    if any(_lacks_key_value(done.changes, name) for name in rule.keys or ()):
        raise SparkNeededError("an old row has no value in a column of its key")
    if found["_unchanged"].null_count < len(chosen) or done.lost.any():
        raise SparkNeededError("a change does not have a value that no row has")
    if len(done.missing) and not rule.lacks_rows:
        raise SparkNeededError("the row of a change does not exist")
    return found | {name: done.change_column(name, chosen) for name in ("_commit_lsn", "_seq")}


def _ordered(stored: pa.Table, changes: pa.Table) -> pa.Table:
    """Return rows before and changes in the order in which they are replayed.

    A change that is applied again has the position of the row that it made: the row, which is complete, comes last.
    """
    made: dict[str, str | list[str]] = {"_op": INSERT, "_unchanged": []}
    known = {*stored.column_names}
    for field in changes.schema:
        if field.name not in known:
            stored = stored.append_column(field, pa.array([made.get(field.name)] * len(stored), field.type))
    unchanged = pc.coalesce(stored["_unchanged"], pa.scalar([], pa.list_(pa.string())))
    stored = stored.set_column(stored.schema.get_field_index("_unchanged"), "_unchanged", unchanged)
    both = pa.concat_tables([stored.select(changes.column_names).cast(changes.schema), changes])
    is_stored = np.arange(len(both)) < len(stored)
    work = {TURN: np.where(is_stored, STORED, CHANGED), SIDE: np.full(len(both), BOTH), SHAPE: np.zeros(len(both), int)}
    for name, values in work.items():
        both = both.append_column(name, pa.array(values))
    order = np.lexsort((is_stored, both["_seq"].to_numpy(), both["_commit_lsn"].to_numpy()))
    return both.take(pa.array(order))


def _is_exact(kind: pa.DataType) -> bool:
    """Return whether values of a type that are equal are the same."""
    types = pa.types
    numbers = types.is_integer(kind) or types.is_decimal(kind) or types.is_boolean(kind)
    times = types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind)
    return numbers or times or types.is_string(kind) or types.is_binary(kind)


def _lacks_key_value(events: pa.Table, name: str) -> bool:
    """Return whether an old row that was sent has no value in a column of its key: PostgreSQL sends none such."""
    before = events["_before"].combine_chunks()
    value = pc.struct_field(before, [before.type.get_field_index(name)])
    text = pc.map_lookup(events["_untyped"], f"_before.{name}", "first")
    has_value = pc.or_(value.is_valid(), text.combine_chunks().is_valid())
    return bool(pc.any(pc.and_(before.is_valid(), pc.invert(has_value))).as_py())


_KINDS: Final = {
    "rows": (rows_schema, advanced_rows),
    "history": (history_schema, recorded_rows),
    "soft": (soft_schema, soft_rows),
}
"""What a dataset may have of a table: the schema of its rows, and what changes make of them."""


@dataclass(frozen=True)
class SmallTable:
    """A table of few rows, or its history, with the changes since the rows before."""

    rule: SmallTableRule
    changes: tuple[str, ...]
    """The files of its changes."""
    changed: pa.Schema
    """The columns of these."""
    named: tuple[tuple[str, str], ...]
    """The columns of its rows that the dataset has, each with its name there."""
    last: ChangePosition = (-1, -1)
    """The position of the last change before: that of rows whose own the dataset does not have."""
    kind: Literal["rows", "history", "soft"] = "rows"
    """The present rows of the table, its history, or also its deleted rows."""

    @classmethod
    def from_step(
        cls,
        log: OpenLog,
        sink: Sink,
        step: TableStep,
        files: tuple[str, ...],
        summary: ChangeSummary,
        lacking: Collection[int],
    ) -> Self:
        """Return the table of a step that has no ``arrow_obstacle``.

        Args:
            log: The log.
            sink: What writes the format.
            step: What is done for the table.
            files: The files of its changes,
            summary: and their summary.
            lacking: The OIDs of tables of which the log may lack rows (``tables_lacking_rows``).
        """
        table, naming = log.table(step.table), sink.naming_of(step.dataset)
        unsent = tuple(name for name in table.current if name in summary.unsent)
        keys = None if table.replica_identity == RelationReplicaIdentity.FULL else table.key_columns
        rule = SmallTableRule(table.current_columns, keys, unsent, table.base, table.relation_oid in lacking)
        kind: Literal["rows", "history", "soft"] = "soft" if is_soft(step.dataset) else "rows"
        kind = "history" if step.dataset.is_history else kind
        last = (-1, -1) if step.continued is None else step.continued.version.last
        schema = _KINDS[kind][0](rule.columns)
        named = tuple((name, naming.reader_name(name)) for name in schema.names if naming.holds(name))
        return cls(rule, files, changes_schema(table.columns), named, last, kind)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        return _KINDS[self.kind][0](self.rule.columns)

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns of the dataset."""
        return pa.schema([self.schema.field(name).with_name(other) for name, other in self.named])

    def read_changes(self, store: LogStore) -> pa.Table:
        """Return its changes, given the store of their files; raise SparkNeededError as ``read_files``."""
        return read_files(store, self.changes, self.changed, _BYTES)

    def after(self, before: pa.Table | None, changes: pa.Table) -> pa.Table:
        """Return the rows after changes, given those before.

        Raises:
            SparkNeededError: As ``advanced_rows``.
            PgoutputError, pa.ArrowException: A row cannot be read or made; Spark's own error says more.
        """
        return _KINDS[self.kind][1](before, changes, self.rule)

    @property
    def has_keys(self) -> bool:
        """Whether changes name the keys of their rows, by which rows can be found (``keys_of``), and told apart."""
        has_positions = {*POSITION} <= {name for name, _ in self.named}
        is_one = self.kind != "soft"  # a deleted row may have the key of a row, and a TRUNCATE gives many one position
        return (
            is_one
            and has_positions
            and any(_is_exact(self.rule.columns.field(name).type) for name in self.rule.keys or ())
        )

    def keys_of(self, changes: pa.Table) -> dict[str, pa.Array]:
        """Return the values that the key has in changes, before and after them, by the columns of the dataset.

        A column is left out whose equal values may differ, such as -0.0 and 0.0.
        """
        before, names = changes["_before"].combine_chunks(), dict(self.named)
        found = dict[str, pa.Array]()
        for name in self.rule.keys or ():
            if _is_exact(self.rule.columns.field(name).type):
                former = pc.struct_field(before, [before.type.get_field_index(name)])
                found[names[name]] = pa.concat_arrays([changes[name].combine_chunks(), former]).unique()
        return found

    def to_stored(self, rows: pa.Table) -> pa.Table:
        """Return rows as the dataset has them."""
        names, stored_names = zip(*self.named, strict=True)
        return rows.select(names).rename_columns(stored_names)

    def from_stored(self, stored: pa.Table) -> pa.Table:
        """Return rows of the dataset: columns that it does not have are as in ``Sink.read_all_for_replay``."""
        names, _ = zip(*self.named, strict=True)
        found, known = stored.rename_columns(names), dict(zip(POSITION, self.last, strict=True))
        for field in self.schema:
            if field.name not in found.column_names:
                values = pa.repeat(pa.scalar(known.get(field.name), field.type), len(found))
                found = found.append_column(field, values)
        return found.select(self.schema.names)


def read_files(store: LogStore, files: Iterable[str], schema: pa.Schema, most: int) -> pa.Table:
    """Return rows.

    Args:
        store: The store of the files.
        files: The names of the files.
        schema: The columns.
        most: The most bytes that are read of each.

    Raises:
        SparkNeededError: They are more than a task should hold, or files are not as they are written now. That is, they
            have other columns, such as before an ALTER TABLE, or the calendar of Spark before 3.0: a program that puts
            files of Delta Lake together writes them with settings of its own.
    """
    parts, rows = [schema.empty_table()], 0
    for name in files:
        with store.explained("cannot be read", name), store.open(name) as file:
            if (size := file.size()) > most:
                raise SparkNeededError(f"a file has {shown_bytes(size)}, more than {shown_bytes(most)}")
            parquet = _opened(pa.BufferReader(file.read_buffer()), schema)
        rows += parquet.metadata.num_rows
        _check_rows(rows, _ROWS)
        parts.append(parquet.read(schema.names).select(schema.names).cast(schema))
    found = pa.concat_tables(parts)
    check_memory(found.nbytes)
    return found


def _check_rows(rows: int, most: int) -> None:
    if rows > most:
        raise SparkNeededError(f"{rows:,} rows, more than {most:,}")


def check_memory(size: int) -> None:
    """Raise SparkNeededError where rows are more bytes than a task should hold."""
    if size > _MEMORY:
        raise SparkNeededError(f"its rows are more than {shown_bytes(_MEMORY)} in memory")


def read_rows_of_keys(
    store: LogStore, name: str, schema: pa.Schema, keys: Mapping[str, pa.Array], deleted: Numbers
) -> tuple[pa.Table, Flags]:
    """Return the rows of a file that can have some keys, and which these are among all.

    Of most rows the key alone is read.

    Args:
        store: The store of the file.
        name: Its name.
        schema: The columns.
        keys: Values of columns of the key (``SmallTable.keys_of``).
        deleted: The indexes of its deleted rows.

    Raises:
        SparkNeededError: As ``read_files``.
    """
    parts, start, size = [schema.empty_table()], 0, 0
    with store.explained("cannot be read", name), store.open(name) as file:
        parquet = _opened(file, schema)
        _check_rows(parquet.metadata.num_rows, _KEYS)
        chosen = np.ones(parquet.metadata.num_rows, np.bool_)
        for batch in parquet.iter_batches(_BATCH, columns=[*keys]):
            mine = chosen[start : start + len(batch)]
            for column, values in keys.items():
                own = batch[column]
                is_one = pc.is_in(own.cast(values.type), values)
                mine &= pc.or_(is_one, pc.is_null(own)).to_numpy(zero_copy_only=False)  # it may be in ``_untyped``
            start += len(batch)
        chosen[deleted] = False
        _check_rows(int(chosen.sum()), _ROWS)
        start = 0
        for group in range(parquet.num_row_groups):
            end = start + parquet.metadata.row_group(group).num_rows
            batches = parquet.iter_batches(_BATCH, [group], schema.names) if chosen[start:end].any() else ()
            for batch in batches:
                rows = pa.Table.from_batches([batch]).filter(pa.array(chosen[start : start + len(batch)]))
                parts.append(rows.select(schema.names).cast(schema))
                start, size = start + len(batch), size + parts[-1].nbytes
                check_memory(size)
            start = end
    return pa.concat_tables(parts), chosen


def _opened(source: pa.NativeFile, schema: pa.Schema) -> pq.ParquetFile:
    """Return a file that has columns; raise SparkNeededError for one that is not as they are written now."""
    found = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
    is_legacy = any(key.startswith(_LEGACY) for key in found.metadata.metadata or ())
    if is_legacy or not _has_columns(found.schema_arrow, schema):
        raise SparkNeededError("a file of it has other columns, or was written by another program")
    return found


def _has_columns(found: pa.Schema, wanted: pa.Schema) -> bool:
    """Return whether a file has columns, those with an ID under it."""
    return all(
        field.name in found.names and ((id_ := _id(field)) is None or id_ == _id(found.field(field.name)))
        for field in wanted
    )


def _id(field: pa.Field) -> bytes | None:
    found: bytes | None = (field.metadata or {}).get(_FIELD_ID)
    return found


def content_of(rows: pa.Table, codec: str) -> pa.Buffer:
    """Return rows as a file, its pages compressed by a codec of Arrow."""
    sink = pa.BufferOutputStream()
    with RowsFile(sink, rows.schema, codec) as file:
        for batch in rows.to_batches():
            file.write(batch)
    return sink.getvalue()


def tables_lacking_rows(log: OpenLog, on_missing: OnMissing) -> set[int]:
    """Return the OIDs of tables of which the log may have changes of rows that are older than it.

    Where such rows are to be reported, Spark finds them.
    """
    return {lack.relation_oid for lack in log.lacks} if on_missing == "error" else set()
