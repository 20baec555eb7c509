"""What a dataset says of its table in addition to rows: comments on the table and its columns.

A format has them in the table's own metadata. Most come with the columns of the rows that it is written with; the
others, and those that change, are statements of their own.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from pgoutput_construct.spark._log_view.change_columns import column, quoted
from pgoutput_construct.spark._replicate.merge_statement import literal

TABLE: Final = ""
"""What a comment on the table itself is called among those of columns."""
_COMMENT: Final = "comment"
_DESCRIBED: Final = "Comment"


def commented(rows: DataFrame, comments: Mapping[str, str]) -> DataFrame:
    """Return rows whose columns have comments, by name."""
    if not comments.keys() & {*rows.columns}:
        return rows
    metadata = {name: {_COMMENT: text} for name, text in comments.items()}
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
    was = next((row["data_type"] for row in reversed(rows) if row["col_name"] == _DESCRIBED), "")
    if was != comments.get(TABLE, ""):
        yield f"COMMENT ON TABLE {table} IS {literal(comments.get(TABLE, ''))}"
    for field in spark.table(table).schema:
        text = comments.get(field.name, "")
        if field.metadata.get(_COMMENT, "") != text:
            yield f"ALTER TABLE {table} ALTER COLUMN {quoted(field.name)} COMMENT {literal(text)}"
