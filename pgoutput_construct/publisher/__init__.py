"""A publisher made of the specification: it serves a change log, or invented messages, like a PostgreSQL walsender.

In: a feed, which is a change log (``log_feed.LogFeed``) or a list of messages (``MessageFeed``). Out: a socket to which
subscriptions, pg_recvlogical, Debezium and our own capture can connect.

Start reading at ``server``. Rooms: ``_server`` (what a client sees), ``_feed`` (what is served, in which order, and how
it is encoded for a client's options). ``slots`` are the clients' positions; ``faults`` are mistakes and breakdowns that
a publisher can show on purpose, for tests of clients; ``refusals`` are errors with PostgreSQL's SQLSTATE, detail and
hint. ``log_feed`` stands apart since it needs pyarrow, as reading a log does.

Invariants: clients get the payloads that the log has, or ones built from the specification, never bytes assembled by
hand; a slot's position is durable before the client learns of it; a log is only read. Public is what this module
exports, and ``faults`` and ``log_feed``.
"""

from pgoutput_construct.publisher._feed.feed import About, Fed, Feed
from pgoutput_construct.publisher._feed.message_feed import MessageFeed
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.server import Publisher, ThreadedPublisher

__all__ = ["About", "Fed", "Feed", "MessageFeed", "Publisher", "Settings", "ThreadedPublisher"]
