"""A publisher made of the specification: it serves a change log, or invented messages, as a walsender does.

``log_feed.LogFeed`` serves a change log; it stands apart, since it needs what reading a log needs.
"""

from pgoutput_construct.publisher._feed.feed import About, Fed, Feed
from pgoutput_construct.publisher._feed.message_feed import MessageFeed
from pgoutput_construct.publisher._server.service import Settings
from pgoutput_construct.publisher.server import Publisher, ThreadedPublisher

__all__ = ["About", "Fed", "Feed", "MessageFeed", "Publisher", "Settings", "ThreadedPublisher"]
