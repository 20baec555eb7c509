"""A change log as typed DataFrames, tables of Parquet, and current state. Needs the extra ``spark`` and Java 17.

What is named here is imported when it is asked for: Spark starts Python processes that need the data source alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pgoutput_construct.extras import needing

with needing("spark"):
    import pyarrow  # noqa: F401 - what is missing is said here, not where a name is used
    import pyspark  # noqa: F401

if TYPE_CHECKING:
    from pgoutput_construct.changelog.wholeness import IncompleteTableWarning, Lack, UnpublishedColumns
    from pgoutput_construct.spark.change_frames import changes_schema
    from pgoutput_construct.spark.execution import plain_errors
    from pgoutput_construct.spark.formats import spark_session
    from pgoutput_construct.spark.log_view import OpenLog, open_log
    from pgoutput_construct.spark.parquet_datasets import Written, read_table, write_tables
    from pgoutput_construct.spark.replicated_tables import Table, directory_name, table_of_directory
    from pgoutput_construct.spark.source.datasource import register
    from pgoutput_construct.spark.source.decoding import decode
    from pgoutput_construct.spark.state import Comparison, advance, compare, current_state, missing_rows, net_changes
    from pgoutput_construct.spark.verifying import TableVerdict, verify
    from pgoutput_construct.spark.warehouse import Batch, read_current, replicate
    from pgoutput_construct.stream.identifiers import qualified_name

__all__ = [
    "Batch",
    "Comparison",
    "IncompleteTableWarning",
    "Lack",
    "OpenLog",
    "Table",
    "TableVerdict",
    "UnpublishedColumns",
    "Written",
    "advance",
    "changes_schema",
    "compare",
    "current_state",
    "decode",
    "directory_name",
    "missing_rows",
    "net_changes",
    "open_log",
    "plain_errors",
    "qualified_name",
    "read_current",
    "read_table",
    "register",
    "replicate",
    "spark_session",
    "table_of_directory",
    "verify",
    "write_tables",
]

_MODULES = {
    "Batch": "spark.warehouse",
    "Comparison": "spark.state",
    "IncompleteTableWarning": "changelog.wholeness",
    "Lack": "changelog.wholeness",
    "OpenLog": "spark.log_view",
    "Table": "spark.replicated_tables",
    "TableVerdict": "spark.verifying",
    "UnpublishedColumns": "changelog.wholeness",
    "Written": "spark.parquet_datasets",
    "advance": "spark.state",
    "changes_schema": "spark.change_frames",
    "compare": "spark.state",
    "current_state": "spark.state",
    "decode": "spark.source.decoding",
    "directory_name": "spark.replicated_tables",
    "missing_rows": "spark.state",
    "net_changes": "spark.state",
    "open_log": "spark.log_view",
    "plain_errors": "spark.execution",
    "qualified_name": "stream.identifiers",
    "read_current": "spark.warehouse",
    "read_table": "spark.parquet_datasets",
    "register": "spark.source.datasource",
    "replicate": "spark.warehouse",
    "spark_session": "spark.formats",
    "table_of_directory": "spark.replicated_tables",
    "verify": "spark.verifying",
    "write_tables": "spark.parquet_datasets",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("spark"):
        return getattr(import_module(f"pgoutput_construct.{_MODULES[name]}"), name)
