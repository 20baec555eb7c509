"""Small JSON files next to the segments, through which processes leave each other notes.

``confirmation_note`` is what the capture has confirmed to the server, for checks when it starts again.
``copy_requests`` ask the capture for table copies. Each file is written whole and atomically (``_store``), and a
damaged one is an error that says what to do. Notes of other modules: ``changelog.registry`` (how far readers have
read), ``_segment.prune_note`` (what was pruned), ``changelog.reader`` (the log's id).

Invariants: no row of a table depends on a note; without one the capture only checks less when it starts, and a request
that was lost can be made again. Start reading at ``copy_requests``.
"""
