"""Iceberg's own REST catalog, the one of its tests: ``python -m tools.rest_catalog`` fetches its jars.

Maven Central has no jar that runs by itself: the server is in one for Iceberg's tests, what it serves in another. It
writes files with Hadoop, which PySpark brings, and keeps its tables in a catalog in SQLite.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from tools.maven import SPARK_JARS, MavenJars, java_program

__all__ = ["missing_rest_catalog", "rest_catalog"]

_ICEBERG: Final = "1.11.0"
_JETTY: Final = "12.1.8"
_SERVER: Final = "org.apache.iceberg.rest.RESTCatalogServer"
_JARS: Final = MavenJars(
    "rest-catalog",
    f"""
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="pgoutput" module="rest-catalog"/>
  <configurations defaultconfmapping="*->default"><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.iceberg" name="iceberg-core" rev="{_ICEBERG}">
      <artifact name="iceberg-core" type="jar"/>
      <artifact name="iceberg-core" type="jar" m:classifier="tests"/>
    </dependency>
    <dependency org="org.apache.iceberg" name="iceberg-open-api" rev="{_ICEBERG}" transitive="false">
      <artifact name="iceberg-open-api" type="jar" m:classifier="test-fixtures"/>
    </dependency>
    <dependency org="org.eclipse.jetty.ee10" name="jetty-ee10-servlet" rev="{_JETTY}"/>
    <dependency org="org.eclipse.jetty.compression" name="jetty-compression-server" rev="{_JETTY}"/>
    <dependency org="org.eclipse.jetty.compression" name="jetty-compression-gzip" rev="{_JETTY}"/>
    <dependency org="org.xerial" name="sqlite-jdbc" rev="3.50.3.0"/>
  </dependencies>
</ivy-module>
""",
)
_SECONDS: Final = 60


def missing_rest_catalog() -> str:
    """Say what to do when the jars are not there; "" when they are."""
    return "" if _JARS.fetched else "no REST catalog: fetch it: python -m tools.rest_catalog"


def main() -> None:
    """Fetch the jars, unless they are there."""
    if not _JARS.fetched:
        print("fetching Iceberg's REST catalog", file=sys.stderr)
    if not _JARS.fetch():
        raise SystemExit("Error: no REST catalog, for the reason above")


@contextmanager
def rest_catalog(place: Path) -> Iterator[str]:
    """Run the catalog, with its tables and its database in a directory, and yield its address."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place.mkdir(parents=True, exist_ok=True)
    settings = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_URI": f"jdbc:sqlite:{place / 'catalog.db'}",
        "CATALOG_WAREHOUSE": str(place / "tables"),
    }
    jars = [str(_JARS.folder / "*"), *map(str, SPARK_JARS.glob("hadoop-client-*.jar"))]
    with (place / "server.log").open("wb") as output:
        process = subprocess.Popen(
            [java_program(), "-cp", os.pathsep.join(jars), _SERVER],
            env={**os.environ, **settings},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _await(process, f"{address}/v1/config", place / "server.log")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def _await(process: "subprocess.Popen[bytes]", address: str, output: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the REST catalog does not answer: {output.read_text()}") from None
            time.sleep(0.1)


if __name__ == "__main__":
    main()
