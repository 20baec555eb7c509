"""Run in a copy of the project with old rows of a kind that holds nothing: streams and publishers follow, or refuse."""

from typing import Any

from hypothesis import HealthCheck, given, settings

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.publisher._feed.feed import About
from pgoutput_construct.publisher._feed.message_feed import MessageFeed
from pgoutput_construct.publisher._server.replication_commands import StartReplication
from pgoutput_construct.publisher._server.stream_request import requested_options
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.publisher.server import Publisher

quick = settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@quick
@given(testing.streams(proto_version=5, streaming="on"))
def check_streams(stream: Any) -> None:
    """Streams of the new version are drawn, and parsed."""
    session = pgo.Session(5, "on")
    assert [session.parse(sent.payload) for sent in stream] == [sent.message for sent in stream]


def check_publisher() -> None:
    """A client that asks for what the publisher cannot make is refused when it begins; one of today is served."""
    about = About(200000, "1", "postgres", 1, (), {"proto_version": 4, "streaming": "off"})
    for version in (4, 5):
        command = StartReplication("slot", pgo.Lsn(0), {"proto_version": str(version), "publication_names": "p"})
        try:
            options = requested_options(command, about)
        except Refusal as refusal:
            assert version == 5, refusal
            assert "Commit" in str(refusal), refusal
        else:
            assert options.proto_version == version == 4


def check_start() -> None:
    """Who stands for a server of the new version is refused when it starts, with the field's name; older ones serve."""
    with testing.publisher(server_version=190000) as publisher:
        assert publisher.port
    try:
        with testing.publisher(server_version=200000):
            raise AssertionError("it serves")
    except pgo.PgoutputError as error:
        for words in ("Commit.digest", "proto_version=5", "spec/pgoutput.yaml", "serve as PostgreSQL 19 or older"):
            assert words in str(error), error
    # A log of such a server is there already: clients of older versions are served.
    said: list[str] = []
    feed = MessageFeed(About(200000, "1", "postgres", 1, (), {"proto_version": 4, "streaming": "off"}))
    Publisher(None, report=said.append).serve(feed)
    assert "Commit.digest" in said[0], said


if __name__ == "__main__":
    check_streams()
    check_publisher()
    check_start()
