"""A change log as typed DataFrames, tables of Parquet, and current state. Needs the extra ``spark`` and Java 17."""

from pgoutput_construct.extras import needing

with needing("spark"):
    from pgoutput_construct.changelog.wholeness import IncompleteTableWarning, Lack
    from pgoutput_construct.spark.compare import Comparison, compare
    from pgoutput_construct.spark.failures import plain_errors
    from pgoutput_construct.spark.job import OpenLog, Written, changes_schema, open_log, read_table, write_tables
    from pgoutput_construct.spark.log import LOG_SCHEMA, read_log
    from pgoutput_construct.spark.names import directory_name, qualified_name, table_of_directory
    from pgoutput_construct.spark.session import spark_session
    from pgoutput_construct.spark.state import advance, current_state, missing_rows, net_changes
    from pgoutput_construct.spark.tables import Table

__all__ = [
    "LOG_SCHEMA",
    "Comparison",
    "IncompleteTableWarning",
    "Lack",
    "OpenLog",
    "Table",
    "Written",
    "advance",
    "changes_schema",
    "compare",
    "current_state",
    "directory_name",
    "missing_rows",
    "net_changes",
    "open_log",
    "plain_errors",
    "qualified_name",
    "read_log",
    "read_table",
    "spark_session",
    "table_of_directory",
    "write_tables",
]
