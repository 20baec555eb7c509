"""Messages of the envelope and of the connection by other names: the package finds them by their roles."""

import pytest

from tests.growth.project import grow

PROGRAM = """
import pgoutput_construct as pgo
import pgoutput_construct.publisher.log_feed, pgoutput_construct.postgres, pgoutput_construct.cli.__main__
from pgoutput_construct.wire.connection_engine import build_connection, parse_connection
from pgoutput_construct.wire.connection_messages import CopyChunk, CopyData

frame = pgo.WALData(pgo.Lsn(1), pgo.Lsn(2), pgo.Timestamp(3), b"x")
assert pgo.XLogData is pgo.WALData and pgo.PrimaryKeepalive is pgo.ServerStatus and CopyData is CopyChunk
assert pgo.parse_frame(pgo.build_frame(frame)) == frame
copied = CopyData(pgo.build_frame(frame))
assert parse_connection(build_connection(copied), "server", "copy_both") == copied
"""


@pytest.mark.slow
def test_renamed_messages(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Both names are those of one class, and everything imports."""
    project = grow(tmp_path_factory.mktemp("wire"), "wire")
    done = project.run("-c", PROGRAM)
    assert done.returncode == 0, done.stderr
