"""The server side of a publisher: connections, authentication, replication commands, catalog queries, the walsender.

In: bytes of clients, and a feed (``publisher._feed``) to serve. Out: the messages of the frontend/backend protocol, as
a PostgreSQL server would send them. The room knows nothing of where a feed takes its changes from.

- ``client_session``: one connection, from the startup packet to its end. Start reading here.
- ``client_connection``: messages from and to the client, checked against the states in ``spec/protocol.yaml``.
- ``service``: what all sessions share (the feed, slots, settings, limits), and authentication.
- ``replication_commands``: parses IDENTIFY_SYSTEM, CREATE_REPLICATION_SLOT, START_REPLICATION and so on.
- ``answers``: results of the catalog queries that subscribers, drivers and our own capture send. There is no SQL
  engine: queries are recognised by their text. ``query_results`` are the parts of it.
- ``stream_request``: the options of START_REPLICATION, checked as pgoutput_startup() does.
- ``walsender``: the stream of one client: messages, keepalives, timeouts, confirmations, faults on purpose.

Invariants: a mistake of one client ends at most its own connection. A client is never sent what its slot has confirmed
already, except whole transactions that it confirmed partly. A keepalive never has an LSN beyond the last transaction
that was sent completely. A fault is a value in the feed on which the walsender acts. Public is ``Settings``, through
``pgoutput_construct.publisher``.
"""
