"""A publisher made of the specification: it serves a change log, or invented messages, as a walsender does."""

from pgoutput_construct.publisher.feed import About, Fed, Feed
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.publisher.message_feed import MessageFeed
from pgoutput_construct.publisher.server import Publisher, Settings

__all__ = ["About", "Fed", "Feed", "LogFeed", "MessageFeed", "Publisher", "Settings"]
