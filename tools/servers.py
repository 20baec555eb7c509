"""The PostgreSQL servers that tests and tools start: each release by its major version, wherever its programs are from.

16 and 18 are carried by the embedded distribution, 19 is unpacked by ``python -m tools.postgres19``, the others by
``python -m tools.earlier_servers``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pgoutput_construct.demo.embedded_server import VERSIONS, EmbeddedServer, ServerError
from tools import earlier_servers, postgres19

__all__ = ["PROGRAMS", "RELEASES", "SERVERS", "missing_server", "open_server"]

SERVERS: Final = (*VERSIONS, postgres19.RELEASE)
"""The releases that most tests run on."""

PROGRAMS: Final[Mapping[int, Path]] = {**earlier_servers.PROGRAMS, postgres19.RELEASE: postgres19.PROGRAMS}
"""The directories of the programs of releases that the embedded distribution does not carry."""

RELEASES: Final = tuple(sorted({*SERVERS, *PROGRAMS}))
"""All of them."""


def missing_server(version: int) -> str:
    """Return what to do if a release cannot be started on this machine; empty if it can."""
    if version == postgres19.RELEASE:
        return postgres19.missing_postgres19()
    return earlier_servers.missing_earlier_server(version) if version in earlier_servers.PROGRAMS else ""


def open_server(
    version: int, settings: Mapping[str, str] | None = None, directory: str | Path | None = None
) -> EmbeddedServer:
    """Return a server of one of RELEASES, which is not started yet; the arguments are those of EmbeddedServer.

    Raises ServerError for a release that is not on this machine.
    """
    if problem := missing_server(version):
        raise ServerError(problem)
    return EmbeddedServer(version, settings, directory, PROGRAMS.get(version))
