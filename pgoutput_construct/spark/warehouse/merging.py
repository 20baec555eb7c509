"""Net changes merged into a table by SQL that Delta Lake and Iceberg both have."""

from pyspark.sql import DataFrame

from pgoutput_construct.spark.warehouse.version import Shape

__all__ = ["literal", "merge_statement", "quoted"]


def quoted(name: str) -> str:
    """Return a name as SQL of Spark has it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a text as SQL of Spark has it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def merge_statement(table: str, changes: DataFrame, shape: Shape) -> str:
    """Return what merges net changes, one row a key, into a table (its name in SQL)."""
    raise NotImplementedError
