"""Table copies: the rows that existed before the stream, as messages built by our own definitions.

What comes in: requests in the log (``postgres.snapshot``: ``pgoutput snapshot``; also of a capture whose tables became
stale), and the published tables that a capture with ``snapshot=True`` has no copy of. What leaves: blocks of
Relation and Insert messages for the log, and for each complete copy an event ``COPIED_TABLE``. The ``copier`` decides
what to copy (``copy_selection``), in which chunks (``copy_plans``), under which snapshot of the server (``snapshots``),
over how many connections (``workers``); ``jobs`` has a copy in progress, ``chunks`` reads one chunk with COPY,
``copied_tables`` reads from the catalog what pgoutput publishes of a table; ``void_search`` finds the rows of an
interrupted copy that do not count. Start reading at ``copier``. Public is ``pgoutput_construct.postgres.snapshot``.

Invariants: rows are appended between transactions of the stream; a copy has the rows of one snapshot, that of its last
attempt (``changelog/_facts/partial_copies.py``); it is complete in the log only when the log has every commit before
``sees_until``; a copy of several chunks whose snapshot was lost resumes under another one, unless ``copy_plans``
says why it cannot, and then it begins with the first row.

**How a copy joins the stream.** A copy is a picture of the table under one snapshot, taken while transactions commit.
Readers must add to it exactly the changes that the snapshot does not see. ``changelog/_facts/visibility.py`` has the
rule, and why it is exact; this room provides its numbers:

1. ``CopyMaker.copy_table`` opens a ``CommitWindow``, reads the flush LSN (``since``), and then the next xid
   (``after``). Whatever commits before ``since`` has an xid before ``after``.
2. It begins a transaction with REPEATABLE READ, locks the table with ACCESS SHARE and takes the snapshot
   (``begin_snapshot``). All transactions with an xid before ``after`` must have ended (the xmin of
   ``pg_current_snapshot()``), else it waits, and logs for whom. So the snapshot sees every commit before ``since``. It
   also sees every transaction that may have written to the table before it was published, whose rows no stream has.
3. It reads the WAL *insert* LSN: ``sees_until``. ``RecordTransactionCommit`` writes the commit record before
   ``ProcArrayEndTransaction`` makes the transaction visible, so nothing that the snapshot sees commits at this LSN or
   later.
4. Rows are read and appended while the stream continues. With several workers the snapshot is exported
   (``pg_export_snapshot``), and each imports it.
5. ``CommitWindows`` collects the commits of each durable segment between ``since`` and ``sees_until``. When the log is
   complete and durable up to ``sees_until``, ``Visibility.of_commits`` divides them by the snapshot: ``place_lsn`` is
   the first one that it does not see, ``contained`` are later ones that it does see. They are written with the event
   ``COPIED_TABLE``: from then on readers use the copy.
6. With ``synchronous_commit = off`` a snapshot sees transactions before their commit records are on disk. If the server
   crashed then, it would come back without them, and write others at their LSNs. But the stream has only what is
   flushed: what the log has before ``sees_until`` no crash undoes. So an attempt is abandoned whose ``sees_until`` the
   log has not reached when the stream is lost (``Copier.start``).

The snapshot that is exported with a new slot (CREATE_REPLICATION_SLOT ... EXPORT_SNAPSHOT) needs no window: it sees
exactly what commits before the slot's consistent point, from which the slot sends changes
(``SnapBuildInitialSnapshot``).
"""
