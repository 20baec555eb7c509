"""The data source ``pgoutput``: what a session reads with ``format("pgoutput")``; driver and executors import it.

In come options; out go batches of rows in Arrow. Data goes one way: ``datasource`` (the class that Spark knows) reads
``source_options``; ``log_readers`` ask for the range of the log that is read (``read_range``) and for a view of it
(``views``); ``task_plan`` makes tasks of the index; in an executor ``segment_rows`` reads the segments of a task,
checks them, and decodes the selected rows. Start reading at ``log_readers``, then ``task_plan``, then ``segment_rows``.

The path of a row in an executor, from a segment to Spark::

    log_readers, views              a task, as Spark hands it over
    segment_rows                    the loop over the batches of the task's segments
        changelog._segment          a batch of payloads: segment_reader, over a changelog._store
        columnar.index              where each payload has what (kernels); malformed ones are errors of their rows
        _log_view.committed_rows    which of them count: rows of committed transactions and complete copies
        columnar.table              their values as Arrow columns, as decode_plan chose; kernels of pgtypes
        _log_view.table_columns     the columns as the table is now, and added_columns

``micro_batches`` says how far a micro-batch of a stream goes; ``live_slot`` reads a slot without a log, and
``message_decoder`` decodes payloads that came another way, such as Kafka; ``change_images`` gives changes the names
that Spark's CHANGES clause has.

Invariants: the driver reads the index and no payload; a task gets no more than its segments and what it cannot learn
from them; a row that cannot be decoded is an error with segment, seq and field, or a row of the view ``quarantine``.
"""
