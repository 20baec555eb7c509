"""The PostgreSQL servers that tests and tools start: each release by its major version, wherever its programs are from.

16 and 18 are carried by the embedded distribution, 19 is unpacked by ``python -m tools.postgres19``, 15 is Debian's
package ``postgresql-15``, where it is installed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pgoutput_construct.demo.server import VERSIONS, EmbeddedServer, ServerError
from tools import postgres19

__all__ = ["INSTALLED", "PROGRAMS", "RELEASES", "SERVERS", "missing_server", "open_server"]

INSTALLED: Final = 15
"""The release that is installed as a package."""

SERVERS: Final = (*VERSIONS, postgres19.RELEASE)
"""The releases that tests run on: they can be had wherever Debian's packages can."""

RELEASES: Final = (INSTALLED, *SERVERS)
"""All of them."""

PROGRAMS: Final[Mapping[int, Path]] = {
    INSTALLED: Path(f"/usr/lib/postgresql/{INSTALLED}/bin"),
    postgres19.RELEASE: postgres19.PROGRAMS,
}
"""The directories of the programs of releases that the embedded distribution does not carry."""


def missing_server(version: int) -> str:
    """Return what to do if a release cannot be started on this machine; empty if it can."""
    if version == postgres19.RELEASE:
        return postgres19.missing_postgres19()
    if version == INSTALLED and not PROGRAMS[INSTALLED].is_dir():
        return f"no PostgreSQL {INSTALLED}: apt-get install postgresql-{INSTALLED}"
    return ""


def open_server(
    version: int, settings: Mapping[str, str] | None = None, directory: str | Path | None = None
) -> EmbeddedServer:
    """Return a server of one of RELEASES, which is not started yet; the arguments are those of EmbeddedServer.

    Raises ServerError for a release that is not on this machine.
    """
    if problem := missing_server(version):
        raise ServerError(problem)
    return EmbeddedServer(version, settings, directory, PROGRAMS.get(version))
