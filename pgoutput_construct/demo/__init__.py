"""The demo: the whole pipeline on an embedded PostgreSQL server, with a workload, crashes and a comparison (extra
``demo``).

What comes in: ``DemoOptions``. What leaves: a change log, tables in Spark, and a ``Report`` with the lag of each table
over time and whether it equals its source. ``pipeline`` runs it: ``embedded_server`` starts PostgreSQL, ``workload`` is
the traffic of a shop, ``processes`` supervises the commands ``pgoutput capture`` and ``pgoutput replicate``, which are
killed on the way, ``freshness`` measures how long a commit takes to be queryable, and ``picture`` draws that. Start
reading at ``pipeline``.

Invariants: everything runs through the public command line, in processes of their own; a table that is missing or
differs is reported, never ignored; the server and its data are removed at the end. ``embedded_server`` and
``processes`` also serve the tests and the fault runs.
"""
