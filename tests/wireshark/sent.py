"""What clients and servers say on a replication connection, as the bytes of its messages."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, cycle, pairwise, takewhile

import pgoutput_construct as pgo
from pgoutput_construct.wire.connection_engine import build_connection, connection_messages
from tests.wireshark.pcap import Said

__all__ = ["copy_data", "cut", "query", "start", "stream", "xlog_data"]

SIZES = (1, 5, 30, 300, 7, 1400, 3, 64000, 6, 1460)
"""What segments hold, in bytes: less than a message, and many of them."""


def query(text: str) -> bytes:
    """Return a query."""
    return build_connection(connection_messages.Query(text))


def copy_data(frame: bytes) -> bytes:
    """Return a frame in its CopyData."""
    return build_connection(connection_messages.CopyData(frame))


def xlog_data(payload: bytes) -> bytes:
    """Return the frame that holds a payload."""
    return pgo.build_frame(pgo.XLogData(pgo.Lsn("16/B374D848"), pgo.Lsn("FFFFFFFF/0"), pgo.Timestamp(-1), payload))


def start(options: str, kind: str = "LOGICAL") -> bytes:
    """Return a START_REPLICATION with options as they are written."""
    return query(f'START_REPLICATION SLOT "s" {kind} 0/0 {options}')


def cut(data: bytes, sizes: Sequence[int] = SIZES) -> Iterator[bytes]:
    """Yield bytes in pieces of these sizes, over and over."""
    ends = takewhile(lambda end: end < len(data), accumulate(cycle(sizes)))
    yield from (data[at:end] for at, end in pairwise([0, *ends, len(data)]))


def stream(command: bytes, payloads: Iterable[bytes], connection: int = 0) -> list[Said]:
    """Return the segments of a connection: a command of the client, and what the server then sends."""
    data = b"".join(copy_data(xlog_data(payload)) for payload in payloads)
    asked = [Said(True, command, connection)] if command else []
    return [*asked, *(Said(False, piece, connection) for piece in cut(data))]
