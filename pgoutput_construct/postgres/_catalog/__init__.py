"""What the stream does not say: tables, columns, publications and types, as the server's catalog has them.

A Relation message names columns and types, but not which rows existed before, defaults of added columns, renames,
rewrites by ALTER TABLE, partitions, or what a publication covers. A capture reads these from the catalog and records
them as events of the log (``TABLE_FACTS``, ``PUBLICATION_FACTS``): readers decide by them whether a table is complete.

What comes in: an ordinary connection, and the Relation messages that the pump has appended. What leaves: events, and
requests to copy tables whose rows changed without messages. ``table_catalog`` reads the catalog; ``catalog_state``
compares a reading with what the log has, so that only changes become events; ``catalog_watch`` runs both while the
stream runs: every second, when a new Relation arrives, and before the capture ends. Start reading at ``catalog_watch``.

Invariants: an event carries the snapshot of its reading, so readers know which transactions it covers; a table that is
being altered (it is locked) is read again later; events are appended between transactions.
"""
