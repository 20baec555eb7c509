"""Initial copies of tables: rows that existed before the stream, as messages built by our own definitions.

``request`` asks for copies (``pgoutput snapshot``); a capture's ``copier`` makes them, with a snapshot of the server
(``snapshots``) that several ``workers`` share, over chunks of each table (``chunks``); ``jobs`` are the copies that are
asked for, with their progress. Start reading at ``copier``.

Invariant: a copy is complete in the log only when the stream has passed ``sees_until``, so that whoever reads the copy
has the changes that its snapshot may not see.
"""
