"""Comments and keys of tables, which go along with their rows: what a table is described with, and when.

They are those of the source, as the log has them last. A write as a whole makes the metadata of a table again, so the
note of a dataset has what it was described with (``DESCRIBED``), and a table is described after a batch has written it
if that differs; also by a batch that has no changes of it, if its comments have changed. After an interruption between
the two, the note does not know what the table is described with: it is described again. A description is not worth an
error: one that fails is logged, and not tried again until it changes. Most comments come with the columns of the rows
that a table is written with; the others, and those that change, are statements of their own.

A column of a key that formats know is required: NULL cannot be written into it. So the key is taken back before changes
are written of a table that has another one.

Tables are under the names of replays here (``added_columns``).
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - as Spark's documentation has it
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.spark._execution import reason_of
from pgoutput_construct.spark._log_view.change_columns import column, quoted
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._state.equality import is_always_typed
from pgoutput_construct.spark._table_formats.dataset_columns import Naming
from pgoutput_construct.spark._table_formats.merge_statement import literal
from pgoutput_construct.spark._table_formats.sink import Sink

DESCRIBED: Final = "described"
"""Where a note has what its dataset was described with."""
_COMMENTS: Final = "comments"
_KEY: Final = "key"
_UNKNOWN: Final = ["?", "?"]
"""A key of which it is not known whether the table has it: no key has a column twice."""
TABLE: Final = ""
"""What a comment on the table itself is called among those of columns."""
_OF_COLUMN: Final = "comment"
"""What the metadata of a column call its comment,"""
_OF_TABLE: Final = "Comment"
"""and what Spark calls that of a table."""
_LOG: Final = logging.getLogger("pgoutput_construct")


def comments_of(sink: Sink, table: Table, naming: Naming) -> dict[str, str]:
    """Return the comments on a table and its columns under their names in a dataset, where the format has them."""
    # In a database in SQL_ASCII comments need not be UTF-8; Spark's are.
    known = {number: _as_utf8(text) for number, text in (table.comments or {}).items()}
    if not sink.has_comments or not known:
        return {}
    found = {naming.reader_name(name): known[number] for name, number in _numbered(table) if number in known}
    return found | ({TABLE: known[0]} if 0 in known else {})


def _as_utf8(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def describe(spark: SparkSession, sink: Sink, dataset: Dataset, table: Table) -> Dataset:
    """Describe a dataset that was written, unless it is described already; return it with its note."""
    known, naming = dataset.details.get(DESCRIBED, {}), sink.naming_of(dataset)
    wanted: dict[str, Any] = {_KEY: _key_of(sink, table, naming), _COMMENTS: comments_of(sink, table, naming)}
    if table.comments is None:  # the log has forgotten what the catalog said
        wanted[_COMMENTS] = known.get(_COMMENTS, {})
    wanted = {name: value for name, value in wanted.items() if value}
    if wanted == known:
        return dataset
    try:
        if wanted.get(_COMMENTS) != known.get(_COMMENTS):
            sink.describe(spark, dataset, wanted.get(_COMMENTS, {}))
        if wanted.get(_KEY) != known.get(_KEY):
            sink.identify(spark, dataset, wanted.get(_KEY, []))
    except Exception as error:  # of any class: the rows are right
        _LOG.warning(
            "%s: the table could not get its comments, or its key, as at the source: %s",
            dataset.version.table,
            reason_of(error),
        )
    return _noted(dataset, wanted)


def commented(rows: DataFrame, comments: Mapping[str, str]) -> DataFrame:
    """Return rows whose columns have comments, by name."""
    if not comments.keys() & {*rows.columns}:
        return rows
    metadata = {name: {_OF_COLUMN: text} for name, text in comments.items()}
    return rows.select(
        *(
            column(name).alias(name, metadata=metadata[name]) if name in metadata else column(name)
            for name in rows.columns
        )
    )


def comment_statements(spark: SparkSession, table: str, comments: Mapping[str, str]) -> Iterator[str]:
    """Yield the statements after which a table has comments, and no others.

    Args:
        spark: The session.
        table: The table as SQL has it.
        comments: The comments by the names of columns, and that of the table as "".
    """
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    was = next((row["data_type"] for row in reversed(rows) if row["col_name"] == _OF_TABLE), "")
    if was != comments.get(TABLE, ""):
        yield f"COMMENT ON TABLE {table} IS {literal(comments.get(TABLE, ''))}"
    for field in spark.table(table).schema:
        text = comments.get(field.name, "")
        if field.metadata.get(_OF_COLUMN, "") != text:
            yield f"ALTER TABLE {table} ALTER COLUMN {quoted(field.name)} COMMENT {literal(text)}"


def has_other_comments(sink: Sink, dataset: Dataset, table: Table) -> bool:
    """Return whether a table has other comments than its dataset was described with."""
    if not sink.has_comments or table.comments is None:
        return False
    known = dataset.details.get(DESCRIBED, {}).get(_COMMENTS, {})
    return bool(comments_of(sink, table, sink.naming_of(dataset)) != known)


def undescribed(sink: Sink, dataset: Dataset) -> Dataset:
    """Return a dataset that was written, and may not have been described: its next description is complete."""
    if not sink.has_comments or dataset.is_history:
        return dataset
    return _noted(dataset, {_COMMENTS: {}, **({_KEY: _UNKNOWN} if sink.has_keys else {})})


def without_other_key(spark: SparkSession, sink: Sink, before: Dataset, table: Table) -> Dataset:
    """Take back the key of a dataset whose table has another one now; return the dataset."""
    known = before.details.get(DESCRIBED, {})
    if _KEY not in known or known[_KEY] == _key_of(sink, table, sink.naming_of(before)):
        return before
    sink.identify(spark, before, [])
    return _noted(before, {name: value for name, value in known.items() if name != _KEY})


def _noted(dataset: Dataset, described: Mapping[str, Any]) -> Dataset:
    others = {name: value for name, value in dataset.details.items() if name != DESCRIBED}
    return replace(dataset, details={**others, DESCRIBED: described} if described else others)


def _numbered(table: Table) -> Iterator[tuple[str, int]]:
    return ((name, table.numbers[name]) for name in table.current if name in table.numbers)


def _key_of(sink: Sink, table: Table, naming: Naming) -> list[str]:
    """Return the columns that identify rows; none where one can be NULL, since its type does not hold all values.

    Floats are none either: Iceberg refuses them.
    """
    if not sink.has_keys or not {*table.key_columns} <= {*table.current}:
        return []
    kinds = from_arrow_schema(table.current_columns, prefer_timestamp_ntz=True)
    of_key = [kinds[name].dataType for name in table.key_columns]
    if not all(is_always_typed(kind) and not isinstance(kind, T.FloatType | T.DoubleType) for kind in of_key):
        return []
    return list(map(naming.reader_name, table.key_columns))
