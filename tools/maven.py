"""Jars of Maven Central for tests and benchmarks, in folders of their own; Ivy, which PySpark brings, fetches them."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from tools.cache import FOLDER, fetching

__all__ = ["SPARK_JARS", "MavenJars", "java_program"]

SPARK_JARS: Final = Path(pyspark.__file__).parent / "jars"
"""The jars of Spark itself."""

_STAMP: Final = "ivy.xml"


@dataclass(frozen=True, slots=True)
class MavenJars:
    """Some modules of Maven Central, with those that they need."""

    name: str
    """The name of their folder."""
    modules: str
    """Which ones, as a module of Ivy in XML."""

    @property
    def folder(self) -> Path:
        """Where the jars are."""
        return FOLDER / self.name

    @property
    def fetched(self) -> bool:
        """Whether the jars of these modules are there."""
        stamp = self.folder / _STAMP
        return stamp.exists() and stamp.read_text("utf-8") == self.modules

    def fetch(self) -> bool:
        """Fetch the jars, unless they are there; return whether they are there now. Ivy's report goes to stderr."""
        with fetching(self.name):
            return self.fetched or self._fetch()

    def _fetch(self) -> bool:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        wanted = self.folder / "wanted.xml"
        wanted.write_text(self.modules.strip(), "utf-8")
        ivy = next(SPARK_JARS.glob("ivy-*.jar"))
        pattern = str(self.folder / "[artifact]-[revision](-[classifier]).[ext]")
        command = [java_program(), "-cp", str(ivy), "org.apache.ivy.Main", "-ivy", str(wanted), "-retrieve", pattern]
        if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
            return False
        (self.folder / _STAMP).write_text(self.modules, "utf-8")
        return True


def java_program() -> str:
    """Return the program ``java`` of JAVA_HOME, or the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"
