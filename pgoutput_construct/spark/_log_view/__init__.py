"""What a change log says of its tables, from its index alone, and what one of their changes looks like as columns.

In comes a ``ChangeLog``; out go its tables (``log_tables.LogTables``) and, for tasks, what decides which rows of a
segment count (``committed_rows.LogPlan``). Neither payloads nor a Spark session are needed for that.

``committed_rows`` finds the rows of committed transactions and complete table copies, and what describes each;
``log_tables`` makes tables of their descriptions; ``table_columns`` follows columns through renames, drops and new
types, with the defaults that older rows have; ``replicated_tables`` is what all of this says of one table.
``change_columns`` are the columns of a change (``_op``, ``_commit_lsn``, ``_before`` ...), ``added_columns`` what they
are called next to a table's own. Start reading at ``log_tables``.

Invariants: a table is an OID under the name that it had last; a change is ordered by (``_commit_lsn``, ``_seq``), never
by the LSN of its message; everything is as of one seq, and says the same whenever it is asked.
"""
