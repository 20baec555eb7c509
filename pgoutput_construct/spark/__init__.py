"""A change log as typed DataFrames, tables of Parquet, and current state. Needs the extra ``spark`` and Java 17.

In comes a change log; out go DataFrames of changes and of states (``open_log``), a data source (``register``,
``format("pgoutput")``), datasets of Parquet (``write_tables``), tables of a warehouse (``replicate``), and whether
these equal their source (``verify``). Public is what this module names, with ``formats`` (jars and settings of a
session); everything else may change. Names are imported on first use: Spark starts Python processes that need the data
source alone.

Data goes forward, and imports only back: ``_log_view`` (what a log says of its tables) -> ``_source`` (segments become
rows) -> ``_state`` (changes become rows of tables) -> ``_open_log`` (both for users) -> ``_replicate`` (tables are
brought up to date, as ``_table_formats`` stores them) -> ``_verify``.
``_execution`` is what Spark runs for all of them; ``_own_session`` makes the sessions that this is done in, and
``_deferred_session`` stands for one that was not needed yet. Start reading at ``_open_log``, then ``_source`` and
``_state``.

Invariants: executors need the log and nothing else; no row is decoded twice for one read; what fails in an executor
comes back as the error of this package that it is (``plain_errors``).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.extras import needing

with needing("spark"):
    import pyarrow  # noqa: F401 - what is missing is said here, not where a name is used
    import pyspark  # noqa: F401

if TYPE_CHECKING:
    from pgoutput_construct.changelog._facts.completeness import IncompleteTableWarning, Lack, UnpublishedColumns
    from pgoutput_construct.lake._directories import directory_name, table_of_directory
    from pgoutput_construct.spark._execution import plain_errors
    from pgoutput_construct.spark._log_view.change_columns import changes_schema
    from pgoutput_construct.spark._log_view.replicated_tables import Table
    from pgoutput_construct.spark._open_log import OpenLog, open_log
    from pgoutput_construct.spark._parquet_datasets import Written, read_table, write_tables
    from pgoutput_construct.spark._replicate import (
        Batch,
        MaintenanceReport,
        ReplicateOptions,
        Retention,
        maintain,
        read_current,
        read_history,
        read_missing,
        replicate,
    )
    from pgoutput_construct.spark._source.datasource import register
    from pgoutput_construct.spark._source.message_decoder import decode
    from pgoutput_construct.spark._state.table_state import (
        Comparison,
        advance,
        compare,
        current_state,
        missing_rows,
        net_changes,
    )
    from pgoutput_construct.spark._verify import TableVerdict, verify
    from pgoutput_construct.spark.formats import spark_session
    from pgoutput_construct.stream.identifiers import qualified_name

__all__ = [
    "Batch",
    "Comparison",
    "IncompleteTableWarning",
    "Lack",
    "MaintenanceReport",
    "OpenLog",
    "ReplicateOptions",
    "Retention",
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
    "maintain",
    "missing_rows",
    "net_changes",
    "open_log",
    "plain_errors",
    "qualified_name",
    "read_current",
    "read_history",
    "read_missing",
    "read_table",
    "register",
    "replicate",
    "spark_session",
    "table_of_directory",
    "verify",
    "write_tables",
]

_MODULES: Final = {
    "changelog._facts.completeness": ("IncompleteTableWarning", "Lack", "UnpublishedColumns"),
    "spark._log_view.change_columns": ("changes_schema",),
    "spark._execution": ("plain_errors",),
    "spark.formats": ("spark_session",),
    "spark._open_log": ("OpenLog", "open_log"),
    "spark._parquet_datasets": ("Written", "read_table", "write_tables"),
    "lake._directories": ("directory_name", "table_of_directory"),
    "spark._log_view.replicated_tables": ("Table",),
    "spark._source.datasource": ("register",),
    "spark._source.message_decoder": ("decode",),
    "spark._state.table_state": ("Comparison", "advance", "compare", "current_state", "missing_rows", "net_changes"),
    "spark._verify": ("TableVerdict", "verify"),
    "spark._replicate": (
        "Batch",
        "MaintenanceReport",
        "ReplicateOptions",
        "Retention",
        "maintain",
        "read_current",
        "read_history",
        "read_missing",
        "replicate",
    ),
    "stream.identifiers": ("qualified_name",),
}
"""By module, what of it is imported."""
_MODULE_OF: Final = {name: f"pgoutput_construct.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("spark"):
        return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    """Return what is public, also what was not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
