"""Net changes merged into a table: by a MERGE statement that Delta Lake and Iceberg both understand, or by parts of it.

``merge_expressions`` says what a merge does, column by column; Parquet, which has no statement, uses it as it is.

A MERGE that also inserts is an outer join that retains the changes. Spark broadcasts only the other side of such a
join, which would be the table, so it shuffles the whole table. Where it is known which rows the table has, the changes
can be given in two statements (``MergeStatements.in_parts``): an INSERT of rows that come, which does not read the
table, and a MERGE of rows that are there, an inner join to which the changes are broadcast. Both must become visible
together, and the rows that the MERGE finds must be counted, since an inner join ignores the others.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type

from pgoutput_construct.changelog._facts.copies import snapshot_command
from pgoutput_construct.lake._versions import VersionShape, is_wider
from pgoutput_construct.spark._execution import error_text
from pgoutput_construct.spark._log_view.added_columns import escaped
from pgoutput_construct.spark._log_view.change_columns import POSITION, column, merge_untyped, quoted, text_array
from pgoutput_construct.spark._state.demands import Demand
from pgoutput_construct.spark._state.equality import exact_key, is_always_typed, same_sql
from pgoutput_construct.spark._table_formats.dataset_columns import ROW_KEY, Naming
from pgoutput_construct.spark._table_formats.sink import NetChanges

_SOURCE: Final = "pgoutput_net_changes"
_THERE: Final = "pgoutput_changed_rows"
"""Those of rows that the table has."""
_BROADCAST: Final = 200_000
"""The most changes that are broadcast to the tasks that read a table."""
_EPOCH: Final = datetime(1970, 1, 1)
_OF_CHANGES: Final = ("_op", "_unchanged", "_key", "_missing")
_LOST: Final = "s._key IS NULL"
"""No row has the values that a change did not send: a row that was deleted before has its key, in the table, too."""


class MergeParts(NamedTuple):
    """Net changes by what becomes of them."""

    comes: int
    """How many rows are new in the table."""
    is_there: int
    """How many rows that the table has are changed or deleted."""


class MergeStatements(NamedTuple):
    """What merges the net changes of ``_SOURCE`` into a table."""

    expressions: "MergeExpressions"
    """What becomes of each column."""
    changes: DataFrame
    """The net changes, which are cached."""
    knows_rows: bool
    """Whether ``_missing`` of a change says whether the table has its row."""

    def whole(self, table: str) -> str:
        """Return the statement that does everything, for a table as SQL has it."""
        return self.expressions.as_merge(table, _SOURCE)

    def in_parts(self) -> MergeParts | None:
        """Count the rows that come, and those that are there; None where that is not known, or they are too many.

        Then ``insert`` and ``update`` do together what ``whole`` does.
        """
        if not self.knows_rows:
            return None
        comes = F.count_if((F.col("_missing") == 0) & (F.col("_op") != "delete"))
        found = self.changes.select(comes.alias("comes"), F.count_if(F.col("_missing") > 0).alias("there")).collect()[0]
        F.broadcast(self.changes.where("_missing > 0")).createOrReplaceTempView(_THERE)
        return MergeParts(found["comes"], found["there"])

    def insert(self, table: str) -> str:
        """Return the statement that inserts the rows that come."""
        return self.expressions.as_insert(table, _SOURCE)

    def update(self, table: str) -> str:
        """Return the statement that changes and deletes the rows that are there."""
        return self.expressions.as_merge(table, _THERE, inserts=False)


@contextmanager
def merge_statements(
    spark: SparkSession, table: str, read: Callable[[], DataFrame], changes: NetChanges, shape: VersionShape
) -> Iterator[MergeStatements]:
    """Yield the statements that merge net changes into a table.

    Columns are added and dropped first: Spark refuses a plan of what was read before that. A statement fails when a
    demand is not met: a change leaves a value open, or must find a row, and the table has no such row.

    Args:
        spark: The session.
        table: The table as SQL has it.
        read: Returns its present rows.
        changes: The net changes.
        shape: The shape of the table after them.
    """
    rows, naming, demand = changes.rows.persist(), changes.naming, changes.demand
    try:
        target = target_columns(rows, naming)
        stored = T.StructType([T.StructField(naming.reader_name(field.name), field.dataType) for field in target])
        for statement in _alterations(table, read().schema, stored):
            spark.sql(statement)
        keys, current = (tuple(map(escaped, names)) for names in (shape.key_columns, shape.current))
        there = naming.from_dataset(read())
        is_looked_up = changes.may_move_values
        found = naming.unescape(with_moved_values(rows, there, keys, current, demand) if is_looked_up else rows)
        found.createOrReplaceTempView(_SOURCE)
        knows_rows = demand.rows and changes.are_all_published and not is_looked_up and changes.most <= _BROADCAST
        yield MergeStatements(merge_expressions(keys, target, changes, is_looked_up), found, knows_rows)
    finally:
        rows.unpersist()


def target_columns(rows: DataFrame, naming: Naming) -> T.StructType:
    """Return the columns that a table has of net changes."""
    return T.StructType([each for each in rows.schema if each.name not in _OF_CHANGES and naming.holds(each.name)])


@contextmanager
def history_statement(
    spark: SparkSession, table: str, there: DataFrame, rows: DataFrame, naming: Naming
) -> Iterator[str]:
    """Yield the statement that puts rows of a history into its table; dropped columns stay in it.

    Args:
        spark: The session.
        table: The table as SQL has it.
        there: Its present rows.
        rows: The rows that are new, or have ended.
        naming: The names of its added columns.
    """
    for statement in _alterations(table, there.schema, rows.schema, drop=False):
        spark.sql(statement)
    rows.createOrReplaceTempView(_SOURCE)
    columns = ", ".join(map(quoted, rows.columns))
    values = ", ".join(f"s.{quoted(name)}" for name in rows.columns)
    same = " AND ".join(
        f"t.{quoted(naming.added_name(name))} = s.{quoted(naming.added_name(name))}" for name in ROW_KEY
    )
    until, by = (quoted(naming.added_name(name)) for name in ("_valid_to", "_ended_by"))
    yield (
        f"MERGE INTO {table} t USING {_SOURCE} s ON {same} "
        f"WHEN MATCHED THEN UPDATE SET t.{until} = s.{until}, t.{by} = s.{by} "
        f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"
    )


def _alterations(table: str, there: T.StructType, target: T.StructType, drop: bool = True) -> Iterator[str]:
    """Yield the statements that make the columns of a table those of ``target``; types may become wider."""
    added = [field for field in target if field.name not in there.names]
    if added:
        columns = ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in added)
        yield f"ALTER TABLE {table} ADD COLUMNS ({columns})"
    for name in there.names:
        if drop and name not in target.names:
            yield f"ALTER TABLE {table} DROP COLUMN {quoted(name)}"
    for field in there:
        if field.name in target.names and is_widened(field.dataType, kind := target[field.name].dataType):
            yield f"ALTER TABLE {table} ALTER COLUMN {quoted(field.name)} TYPE {kind.simpleString()}"


def is_widened(was: T.DataType, now: T.DataType) -> bool:
    """Return whether a type is a wider one than a column had (``is_wider``); only numbers have one."""
    if not (isinstance(was, T.NumericType) and isinstance(now, T.NumericType)):
        return False
    return is_wider(str(to_arrow_type(now)), str(to_arrow_type(was)))


def with_moved_values(
    changes: DataFrame, table: DataFrame, keys: Collection[str], columns: Collection[str], demand: Demand
) -> DataFrame:
    """Return net changes in which only the row with their own key is still to be looked up, given the present rows.

    Values of a row with another key, before a change of the key, are looked up here. ``changes`` are as ``net_changes``
    returns them.
    """
    kinds = {name: changes.schema[name].dataType for name in keys}
    texts = text_array([F.col("_untyped")[F.lit(name)] for name in keys])
    here, was = _exact_key(kinds, texts), _exact_key(kinds, F.col("_key._texts"), "_key")
    moved = (F.size("_unchanged") > 0) & ~here.eqNullSafe(was)
    rows = table.select(here.alias("_at"), F.struct(*map(column, columns), "_untyped").alias("_row"))
    joined = changes.withColumns({"_moved": moved, "_was": was}).join(
        rows, F.col("_moved") & F.col("_was").eqNullSafe(F.col("_at")), "left"
    )
    found = [_resolved_value(name, changes.schema[name].dataType, demand).alias(name) for name in columns]
    untyped = F.when(F.col("_moved"), _texts_of(F.col("_row._untyped"))).otherwise(F.col("_untyped")).alias("_untyped")
    left = F.when(F.col("_moved"), F.array().cast("array<string>")).otherwise(F.col("_unchanged"))
    return joined.select(*found, untyped, *POSITION, "_op", left.alias("_unchanged"), "_missing")


class MergeExpressions(NamedTuple):
    """What a merge does, in Spark's SQL: the changes ``s`` have the names of replays, the table ``t`` its own."""

    on: str
    """The condition under which a change is one of a row of the table."""
    updated: Mapping[str, str]
    """The values of a row that is there, by the names of the table's columns."""
    inserted: Mapping[str, str]
    """The values of a row that comes, by the same names in the same order."""
    comes: str
    """The condition under which a change that finds no row becomes one, or fails."""

    def as_merge(self, table: str, view: str, inserts: bool = True) -> str:
        """Return the statement that merges a view of the changes into a table, with or without what it ``inserts``."""
        updated = ", ".join(f"t.{quoted(name)} = {value}" for name, value in self.updated.items())
        merge = (
            f"MERGE INTO {table} t USING {view} s ON {self.on} "
            "WHEN MATCHED AND s._op = 'delete' THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {updated}"
        )
        values = f"({', '.join(map(quoted, self.inserted))}) VALUES ({', '.join(self.inserted.values())})"
        return f"{merge} WHEN NOT MATCHED AND {self.comes} THEN INSERT {values}" if inserts else merge

    def as_insert(self, table: str, view: str) -> str:
        """Return the statement that inserts the changes of a view whose rows are new in a table."""
        columns, values = ", ".join(map(quoted, self.inserted)), ", ".join(self.inserted.values())
        return f"INSERT INTO {table} ({columns}) SELECT {values} FROM {view} s WHERE s._missing = 0 AND {self.comes}"


def merge_expressions(
    keys: Collection[str], rows: T.StructType, changes: NetChanges, is_looked_up: bool
) -> MergeExpressions:
    """Return what merges net changes into a table.

    Args:
        keys: The columns of the key, under the names of replays.
        rows: The columns of the table, under these names.
        changes: The net changes.
        is_looked_up: Whether values of rows with another key were looked up (``with_moved_values``).
    """
    naming, demand = changes.naming, changes.demand
    lost = "false" if is_looked_up else _LOST
    columns = [name for name in rows.names if name != "_untyped"]
    same = (part for name in keys for part in _same(name, rows[name].dataType, naming))
    on = " AND ".join([*same, *key_conditions(keys, rows, changes)])
    kept = {name: _sent_or_stored(name, demand, naming, lost) for name in columns if name in changes.unsent}
    values = {name: kept.get(name, f"s.{quoted(name)}") for name in columns}
    inserted = {name: _required(name, demand, naming) if name in kept else value for name, value in values.items()}
    if "_untyped" in rows.names:
        values["_untyped"] = _untyped(naming, lost) if kept else "s._untyped"
        inserted["_untyped"] = "s._untyped"
    comes = "s._op <> 'delete'"
    if demand.rows:
        # A change of a row that does not exist becomes an insert that fails.
        checked = "_seq" if "_seq" in rows.names else next(iter(keys))
        comes, inserted[checked] = f"({comes} OR s._missing > 0)", _missing_row_error(keys, demand, naming, checked)
    updated, added = ({naming.reader_name(name): each[name] for name in each} for each in (values, inserted))
    return MergeExpressions(on, updated, added, comes)


def key_conditions(keys: Collection[str], rows: T.StructType, changes: NetChanges) -> Iterator[str]:
    """Yield what is true of the key of every row of a table that the changes can be of.

    Formats look only into files, and parts of files, whose statistics allow it.
    """
    for name in keys:
        if name in changes.bounds:
            stored = f"t.{quoted(changes.naming.reader_name(name))}"
            limits = [_bound(value, rows[name].dataType) for value in changes.bounds[name]]
            for sign, limit in zip((">=", "<="), limits, strict=True):
                if limit is not None:
                    yield f"{stored} {sign} {limit}"


def _bound(value: int | str, kind: T.DataType) -> str | None:
    """Return a bound as a literal; None for a time that Python cannot represent."""
    if isinstance(value, str):
        return literal(value)
    try:
        match kind:
            case T.DateType():
                return f"DATE '{_EPOCH.date() + timedelta(days=value)}'"
            case T.TimestampType():
                return f"TIMESTAMP '{_EPOCH + timedelta(microseconds=value)}+00:00'"
            case T.TimestampNTZType():
                return f"TIMESTAMP_NTZ '{_EPOCH + timedelta(microseconds=value)}'"
    except OverflowError:
        return None
    return str(value)


def _exact_key(kinds: Mapping[str, T.DataType], texts: Column, *path: str) -> Column:
    parts = enumerate(exact_key(lambda name: column(*path, name), kinds))
    return F.struct(*(part.alias(f"k{number}") for number, part in parts), texts.alias("_texts"))


def _same(name: str, kind: T.DataType, naming: Naming) -> Iterator[str]:
    """Yield the conditions under which rows of the table and of the changes agree in a column of the key."""
    yield from same_sql(f"t.{quoted(naming.reader_name(name))}", f"s.{quoted(name)}", kind)
    if not is_always_typed(kind) and naming.holds("_untyped"):
        text = literal(naming.reader_name(name))
        yield f"t.{quoted(naming.added_name('_untyped'))}[{text}] <=> s._untyped[{text}]"


def _sent_or_stored(name: str, demand: Demand, naming: Naming, lost: str) -> str:
    there = naming.reader_name(name)
    is_open = f"array_contains(s._unchanged, {literal(there)})"
    unknown = f"raise_error({literal(_missing_value_text(there, demand))})" if demand.values else "NULL"
    stored = f"CASE WHEN {lost} THEN {unknown} ELSE t.{quoted(there)} END"
    return f"CASE WHEN {is_open} THEN {stored} ELSE s.{quoted(name)} END"


def _required(name: str, demand: Demand, naming: Naming) -> str:
    if not demand.values:
        return f"s.{quoted(name)}"
    there = naming.reader_name(name)
    failing = f"raise_error({literal(_missing_value_text(there, demand))})"
    if demand.rows:  # of a row that must exist that is said, in ``_seq``, which may be evaluated later
        failing = f"CASE WHEN s._missing > 0 THEN NULL ELSE {failing} END"
    return f"CASE WHEN array_contains(s._unchanged, {literal(there)}) THEN {failing} ELSE s.{quoted(name)} END"


def _missing_row_error(keys: Collection[str], demand: Demand, naming: Naming, name: str) -> str:
    """Return the value of a column, which fails for a change of a row that does not exist."""
    key = ", ".join(f"{literal(naming.reader_name(each))}, s.{quoted(each)}" for each in keys)
    parts = [
        literal(error_text(f"{demand.table}: up to commit ")),
        "s._commit_lsn",
        "', seq '",
        "s._seq",
        "' in it: row '",
        f"to_json(named_struct({key}))",
        literal(f": UPDATE or DELETE of a row that does not exist{demand.remedy}"),
    ]
    return f"CASE WHEN s._missing > 0 THEN raise_error(concat_ws('', {', '.join(parts)})) ELSE s.{quoted(name)} END"


def _untyped(naming: Naming, lost: str) -> str:
    """Return the texts of values of both rows that their types cannot hold."""
    there = f"t.{quoted(naming.added_name('_untyped'))}"
    sent = "map_filter(coalesce(s._untyped, map()), (name, text) -> NOT array_contains(s._unchanged, name))"
    kept = f"map_filter(coalesce({there}, map()), (name, text) -> array_contains(s._unchanged, name) AND NOT {lost})"
    both = f"map_concat({sent}, {kept})"
    return f"CASE WHEN size(s._unchanged) = 0 THEN s._untyped WHEN size({both}) > 0 THEN {both} END"


def literal(text: str) -> str:
    """Return a text as a literal of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _missing_value_text(name: str, demand: Demand) -> str:
    text = f"a change does not send the value of the column {name!r}, and the table does not have the row before it"
    return error_text(f"{demand.table}: {text}: copy the table again ({snapshot_command(demand.table)})")


def _resolved_value(name: str, kind: T.DataType, demand: Demand) -> Column:
    is_open = F.col("_moved") & F.array_contains("_unchanged", name)
    failing = (F.raise_error(F.lit(_missing_value_text(name, demand))) if demand.values else F.lit(None)).cast(kind)
    return F.when(is_open & F.col("_at").isNull(), failing).when(is_open, column("_row", name)).otherwise(column(name))


def _texts_of(there: Column) -> Column:
    """Return ``_untyped`` of a row that has some columns from another one."""
    sent = F.map_filter("_untyped", lambda name, _: ~F.array_contains("_unchanged", name))
    return merge_untyped(sent, F.map_filter(there, lambda name, _: F.array_contains("_unchanged", name)))
