"""Tables of a change log, kept up to date in a warehouse: Parquet, Delta Lake, Iceberg.

In come a log and the address of a warehouse; out go datasets, one for each table, and notes about them.

``replicate_options`` says what ``replicate`` is to do; ``batch_loop`` does it, batch by batch, once or following a log.
``table_batches`` brings every table to the end of one batch, exactly once: the theory stands there. ``batch_plan`` says
what is to be done for each table, and in which groups; ``step_writer`` has each group done, in the cheapest way that
can be, which ``write_ways`` says: ``staging`` reads the log once for all of them, but for ``new_rows``, which need not
be staged; ``arrow_writes`` writes small tables, and few changes of larger ones, as ``small_tables`` says, without a job
of Spark for each; ``table_write`` appends, merges or writes a table as a whole; ``table_history`` records every row
that it had. How a format stores what these ways make is the room ``_table_formats``. ``dataset_names`` says what
datasets are called; ``column_rules`` leaves columns out or masks them (``column_masks``), before anything else sees
them; ``column_layout`` chooses the columns that tables have in addition to their own, and ``soft_deletes`` writes
tables whose deleted rows stay. ``maintenance`` puts small files together between batches, and removes what readers no
longer need. ``lake/_notes`` is what a warehouse knows of its datasets, ``known_datasets`` what of that is in doubt, how
it is settled, and how those of renamed tables move, ``warehouse_log`` which log they are of and what that retains for
them, ``troubles`` the tables that could not be brought up to date, ``warehouse_reader`` reads tables, histories and
reports. Start reading at ``table_batches``.

Invariants: readers see a table before or after a batch, never between; one table's error is that table's, and the
others go on without it.
"""

from pgoutput_construct.spark._replicate.batch_loop import replicate
from pgoutput_construct.spark._replicate.batch_plan import BatchProgress
from pgoutput_construct.spark._replicate.maintenance import MaintenanceReport, maintain
from pgoutput_construct.spark._replicate.replicate_options import ReplicateOptions
from pgoutput_construct.spark._replicate.table_batches import Batch
from pgoutput_construct.spark._replicate.warehouse_reader import read_current, read_history, read_missing
from pgoutput_construct.spark._table_formats.sink import Retention

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
