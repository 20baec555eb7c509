"""What the stream does not say, and the log records as events: tables, columns, publications, table copies.

In: the index of a log, with its events and the Relations sent. Out: for each table, which column is which through
renames (``lineage``), what changed without messages (``stale_tables``), what a log lacks (``completeness``), and which
changes count in addition to a copy (``visibility``, where the theory of that stands).

- ``catalog_readings``: what the catalog said, from events (``_segment.events``).
- ``visibility``, ``copies``: snapshots and table copies. Start reading at ``visibility``.
- ``lineage``, with ``numbering`` (which column of a description is which) and ``description_usage`` (when a description
  was used).
- ``successive_texts``: reads versions of a table's columns by parsing only what is needed of them.

Invariants: everything here is derived from the index, again from the beginning if need be, and is the same for each
reader. Facts are never removed while rows that need them are in the log. Nothing here is public except ``LogEvent``.
"""
