"""A server as a client of the replication protocol sees it: connections, commands, queries, the walsender.

``session`` is one connection, from the startup packet to its end; ``commands`` reads replication commands, ``answers``
knows the queries that subscriptions and captures send (``catalog_queries``), ``walsender`` streams after
START_REPLICATION, whose options ``stream_request`` checks. A refusal (``refusals``) is an ErrorResponse with
PostgreSQL's SQLSTATE; a fault of a script is a value that the walsender acts on. Start reading at ``session``.
"""
