"""Rows from changes: the state of a table, its net changes, the changes that found no row, the intervals of a history.

In come changes as DataFrames, or Arrow tables in a task, and perhaps the rows before them; out go rows.

What a change does to a row is said once, in ``intervals``: an ordered replay for each key, or for each equal row. The
theory stands there; start reading there. ``row_replay`` runs it over changes in Arrow, ``replay_tasks`` brings the
changes of rows that may be the same into one task of Spark, in order. ``keyed_rows`` is the same for tables with a key,
by Spark's own aggregation, which needs no order: the last change of a key wins. ``table_state`` puts them together,
phase by phase where the replica identity changed (``identity_phases``).

What they need: ``equality`` (when two values are the same), ``copy_visibility`` (which changes count in addition to a
table copy; the theory is in ``changelog/_facts/visibility.py``), ``moved_values`` (unsent TOASTed values of rows whose
keys changed), ``schema_evolution`` (rows that are older than a column or its type), ``change_survey`` (what changes
contain, which decides how they are applied), ``demands`` (when a change without its row is an error).

Invariants: both ways give the same rows, on every history; memory of a task is bounded by a batch of changes, not by
the size of a table or of a key's history; plans have a constant number of leaves per phase.
"""
