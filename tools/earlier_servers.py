"""Earlier releases of PostgreSQL for tests: ``python -m tools.earlier_servers`` fetches them, and unpacks them, once.

They are the binaries of ``io.zonky.test.postgres`` in Maven Central, the newest one of each release. They have the
server, ``initdb`` and ``pg_ctl``, and nothing else.
"""

import platform
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.cache import FOR_SERVERS, fetching
from tools.maven import MavenJars

__all__ = ["PROGRAMS", "missing_earlier_server"]

_RELEASES: Final = (13, 14, 15, 17)
_PROCESSORS: Final = {"x86_64": "amd64", "aarch64": "arm64v8"}
_STAMP: Final = "installed.txt"
_MODULE: Final = """
<ivy-module version="2.0">
  <info organisation="tests" module="server"/>
  <dependencies>
    <dependency org="io.zonky.test.postgres" name="{name}" rev="{release}.+" transitive="false"/>
  </dependencies>
</ivy-module>
"""

PROGRAMS: Final[Mapping[int, Path]] = {release: FOR_SERVERS / f"postgresql-{release}" / "bin" for release in _RELEASES}
"""Where the programs of each release are, once they were fetched."""


def missing_earlier_server(release: int) -> str:
    """Say what to do when a release was not unpacked; "" when it was."""
    stamp = PROGRAMS[release].with_name(_STAMP)
    return "" if stamp.exists() else f"no PostgreSQL {release}: fetch it: python -m tools.earlier_servers"


def main() -> None:
    """Fetch and unpack them, unless that was done."""
    for release in _RELEASES:
        with fetching(f"postgresql-{release}"):
            if missing_earlier_server(release):
                _fetch(release)


def _fetch(release: int) -> None:
    print(f"fetching PostgreSQL {release}", file=sys.stderr)
    name = f"embedded-postgres-binaries-linux-{_PROCESSORS.get(platform.machine(), platform.machine())}"
    jars = MavenJars(f"postgresql-{release}-jars", _MODULE.format(name=name, release=release))
    if not jars.fetch():
        raise SystemExit(f"Error: no PostgreSQL {release}: Ivy says why above")
    (jar,) = (path for path in jars.folder.glob(f"{name}-*.jar") if path.stem.rpartition("-")[2][0].isdigit())
    folder = PROGRAMS[release].parent
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(jar) as packed:
        (member,) = (each for each in packed.namelist() if each.endswith(".txz"))
        with packed.open(member) as file, tarfile.open(fileobj=file, mode="r|xz") as tree:
            tree.extractall(folder, filter="tar")  # links point to other files of it
    (folder / _STAMP).write_text(jar.name, "utf-8")


if __name__ == "__main__":
    main()
