"""Captures of connections, written from the bytes that they carry."""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["PORT", "Said", "write_pcap"]

PORT = 5432
FIRST_CLIENT = 40000
ETHERNET = struct.pack(">6s6sH", bytes(6), bytes(6), 0x0800)
LOCALHOST = bytes((127, 0, 0, 1))


class Said(NamedTuple):
    """The bytes of one TCP segment."""

    by_client: bool
    data: bytes
    connection: int = 0
    lost: bool = False
    """Whether it was sent, but not captured."""


def write_pcap(path: Path, segments: Iterable[Said], port: int = PORT) -> Path:
    """Write a capture of segments as Ethernet, IPv4 and TCP carry them; return its path."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)
    packets = (
        struct.pack("<IIII", 1_700_000_000, i, len(packet), len(packet)) + packet
        for i, packet in enumerate(_packets(segments, port))
    )
    path.write_bytes(header + b"".join(packets))
    return path


def _packets(segments: Iterable[Said], port: int) -> Iterator[bytes]:
    sent: dict[tuple[int, bool], int] = {}
    for by_client, data, connection, lost in segments:
        client = FIRST_CLIENT + connection
        source, target = (client, port) if by_client else (port, client)
        numbers = [1 + sent.get((connection, side), 0) for side in (by_client, not by_client)]
        tcp = struct.pack(">HHIIBBHHH", source, target, *numbers, 5 << 4, 0x18, 0xFFFF, 0, 0) + data
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, LOCALHOST, LOCALHOST)
        if not lost:
            yield ETHERNET + ip + tcp
        sent[connection, by_client] = sent.get((connection, by_client), 0) + len(data)
