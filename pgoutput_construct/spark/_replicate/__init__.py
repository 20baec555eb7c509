"""Tables of a change log, kept up to date in a warehouse: Parquet, Delta Lake, Iceberg.

In come a log and the address of a warehouse; out go datasets, one for each table, and notes about them.

``replicate_options`` says what ``replicate`` is to do; ``batch_loop`` does it, batch by batch, once or following a log.
``table_batches`` brings every table to the end of one batch, exactly once: the theory stands there. ``batch_plan`` says
what is to be done for each table, and in which groups; ``step_writer`` has each group done, in the cheapest of these
ways: ``staging`` reads the log once for all of them, but for ``new_rows``, which need not be staged; ``arrow_writes``
writes small tables, and few changes of larger ones, as ``small_tables`` says, without a job of Spark for each;
``table_write`` appends, merges or writes a table as a whole, ``table_description`` gives it the comments of its source,
and its key; ``table_history`` records every row that it had. A format is a ``sink`` (``parquet_sink``, whose tables are
in parts, ``delta_sink``, ``iceberg_sink``; the last two share ``merge_statement``, take files that were written without
Spark by ``delta_files`` and ``iceberg_files``, and have a variant in which several datasets are one table,
``shared_tables``); ``existing_tables`` is what others have where a dataset is to be. ``dataset_names`` says what
datasets are called, ``dataset_columns`` names what they have in addition to the columns of tables; ``column_rules``
leaves columns out or masks them (``column_masks``), before anything else sees them; ``column_layout`` chooses the added
columns, and ``soft_deletes`` writes tables whose deleted rows stay. ``maintenance`` puts small files together between
batches, and removes what readers no longer need. ``lake/_notes`` is what a warehouse knows of its datasets,
``known_datasets`` what of that is in doubt, how it is settled, and how those of renamed tables move, ``warehouse_log``
which log they are of and what that retains for them, ``troubles`` the tables that could not be brought up to date,
``warehouse_reader`` reads tables, histories and reports. Start reading at ``table_batches``.

To add a format of tables:

1. Write its ``Sink``, whose docstrings say what a format has to promise; the version of a dataset must be written in
   the same commit as its rows. Most of ``merge_statement`` is shared; a format whose tables can only be replaced says
   so by ``is_replaced``.
2. Add it to ``sinks.open_sink``, its jars and session settings to ``FORMATS`` in ``spark/formats.py``, and its name to
   ``TABLE_FORMATS`` in ``cli/_options.py``, which commands, fault runs and benchmarks use.
3. Add it to the parameters ``into`` of ``tests/spark/replicate``, and to ``WAYS`` of ``test_crashes`` there, and run
   ``python -m tools.faults spark`` and ``histories`` with it.

Invariants: a dataset and its version (``lake/_versions.Version``) are written in one commit; readers see a table
before or after a batch, never between; one table's error is that table's, and the others go on without it.
"""

from pgoutput_construct.spark._replicate.batch_loop import replicate
from pgoutput_construct.spark._replicate.batch_plan import BatchProgress
from pgoutput_construct.spark._replicate.maintenance import MaintenanceReport, maintain
from pgoutput_construct.spark._replicate.replicate_options import ReplicateOptions
from pgoutput_construct.spark._replicate.sink import Retention
from pgoutput_construct.spark._replicate.table_batches import Batch
from pgoutput_construct.spark._replicate.warehouse_reader import read_current, read_history, read_missing

__all__ = [
    "Batch",
    "BatchProgress",
    "MaintenanceReport",
    "ReplicateOptions",
    "Retention",
    "maintain",
    "read_current",
    "read_history",
    "read_missing",
    "replicate",
]
