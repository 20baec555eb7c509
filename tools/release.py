"""Builds a release from what is committed, and tries it as a user would: ``tools/release``.

1. The commit is built twice, in two folders: both wheels, and both source distributions, must have the same bytes.
2. twine and check-wheel-contents look at them; the wheel must have the package, its SBOM and nothing else.
3. The wheel is installed alone and with each extra in a fresh environment of each Python that is there, and does there
   what ``tests/alone.py`` has of that extra. In one with what tests need, the examples of the documentation run.

Nothing is uploaded.
"""

import argparse
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from pgoutput_construct import __version__
from pgoutput_construct.extras import EXTRAS

__all__ = ["PYTHONS", "Release", "ReleaseError", "main", "sbom"]

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python that are supported."""

_CLONE: Final = Path(__file__).parents[1]
_NAME: Final = "pgoutput-construct"
_SBOM: Final = "sbom.cdx.json"
_PACKAGES: Final = 'packages = ["pgoutput_construct"]\n'
_EXAMPLES: Final = "example"
"""Chooses the tests of tests/test_documentation.py that run the blocks of code."""
_UV: Final = (sys.executable, "-m", "uv")
_LARGEST: Final = 2_000_000
"""Bytes that the wheel may have."""


class ReleaseError(Exception):
    """What was built is not fit to be released."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="release-") as folder:
            release = Release(Path(folder), options.output, trial=options.trial)
            release.run(
                _found() if options.pythons is None else options.pythons, options.extras, examples=options.examples
            )
    except (ReleaseError, subprocess.CalledProcessError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


class Release:
    """One release: what is committed, built and tried."""

    def __init__(self, folder: Path, output: Path, *, trial: bool = False) -> None:
        """Prepare.

        Args:
            folder: An empty folder for what is needed meanwhile.
            output: Where the wheel and the source distribution go; those that are there are removed.
            trial: Whether the changelog may lack a section of this version.
        """
        self.folder, self.output, self.trial = folder, output, trial
        # Each environment has the same path, and files of the same times: what one has compiled is so in the next.
        compiled = {"NUMBA_CACHE_DIR": f"{folder}/kernels", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        # What is downloaded goes with the folder: PySpark, which is built from its source, takes 1.4 GB in a cache.
        self._environment = {**os.environ, **compiled, "UV_CACHE_DIR": f"{folder}/downloads"}

    def run(self, pythons: Iterable[str], extras: Iterable[str], *, examples: bool) -> None:
        """Build, check and try; raises ReleaseError."""
        source = self.folder / "source"
        _export(source)
        self._check_changes((source / "CHANGELOG.md").read_text("utf-8"))
        first, second = (self.build(source, number) for number in ("one", "two"))
        _check_equal(first, second)
        for old in self.output.glob("pgoutput_construct-*"):
            old.unlink()
        shutil.copytree(first, self.output, dirs_exist_ok=True)
        wheel = self._check()
        for python in pythons:
            self.try_each(wheel, python, extras)
            if examples:
                self.try_examples(wheel, source, python)
        print(f"the release is in {self.output}:")
        for path in sorted(self.output.glob("pgoutput_construct-*")):
            print(f"  {hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}, {path.stat().st_size:,} bytes")

    def _check_changes(self, changes: str) -> None:
        if not self.trial and not re.search(rf"^## \[?{re.escape(__version__)}\b", changes, re.MULTILINE):
            raise ReleaseError(f"CHANGELOG.md has no section {__version__}; to build all the same: --trial")

    def build(self, source: Path, number: str) -> Path:
        """Build a copy of the source in a folder of its own; return the folder of what was built."""
        print(f"building, {number}", flush=True)
        copy, built = self.folder / f"tree {number}", self.folder / number
        shutil.copytree(source, copy)
        seconds = int(_output(["git", "log", "-1", "--format=%ct"]))  # of the commit: all files get this time
        (copy / _SBOM).write_text(sbom(datetime.fromtimestamp(seconds, UTC)), "utf-8")
        project = (copy / "pyproject.toml").read_text("utf-8")
        assert project.count(_PACKAGES) == 1
        # Only a release has an SBOM, so that an installation from a clone does not need to make one.
        (copy / "pyproject.toml").write_text(project.replace(_PACKAGES, f'{_PACKAGES}sbom-files = ["{_SBOM}"]\n'))
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds)}
        _run([sys.executable, "-m", "build", "--outdir", str(built), str(copy)], env=environment)
        return built

    def _check(self) -> Path:
        files = [str(path) for path in self.output.glob("pgoutput_construct-*")]
        _run([sys.executable, "-m", "twine", "check", "--strict", *files])
        (wheel,) = self.output.glob("pgoutput_construct-*.whl")
        _run([sys.executable, "-m", "check_wheel_contents", str(wheel)])
        if wheel.stat().st_size > _LARGEST:
            raise ReleaseError(f"{wheel.name} has {wheel.stat().st_size:,} bytes, more than {_LARGEST:,}")
        names = zipfile.ZipFile(wheel).namelist()
        if strange := [name for name in names if not name.startswith(("pgoutput_construct/", "pgoutput_construct-"))]:
            raise ReleaseError(f"{wheel.name} has {', '.join(strange)}")
        if not any(name.endswith(f".dist-info/sboms/{_SBOM}") for name in names):
            raise ReleaseError(f"{wheel.name} has no SBOM")
        return wheel

    def try_each(self, wheel: Path, python: str, extras: Iterable[str]) -> None:
        """Install the wheel alone, then with each extra, and use it."""
        program = "import pgoutput_construct as pgo; print(pgo.parse(bytes.fromhex('4f00000000000000006100')))"
        self._run_in(self._install(wheel, python, ""), "-c", program)
        script = str(shutil.copy(_CLONE / "tests" / "alone.py", self.folder))
        for extra in extras:
            self._run_in(self._install(wheel, python, extra), script, extra)

    def try_examples(self, wheel: Path, source: Path, python: str) -> None:
        """Run the examples of the documentation with the wheel, where the package itself is not."""
        where = self.folder / f"examples {python}"
        shutil.copytree(source, where, ignore=lambda folder, names: {"pgoutput_construct"} & set(names))
        tests = ["tests/test_documentation.py", "-k", _EXAMPLES]
        self._run_in(self._install(wheel, python, "test"), "-m", "pytest", "-q", *tests, where=where)

    def _run_in(self, python: Path, *arguments: str, where: Path | None = None) -> None:
        _run([str(python), *arguments], where or self.folder, self._environment)

    def _install(self, wheel: Path, python: str, extra: str) -> Path:
        """Install the wheel with an extra in an environment that has nothing else; return its Python."""
        name = f"{wheel}[{extra}]" if extra else str(wheel)
        print(f"Python {python}: {wheel.name}{f' with {extra}' if extra else ''}", flush=True)
        folder = self.folder / f"environment {python}"
        create = ["venv", "--quiet", "--clear", "--no-python-downloads", "--python", python, str(folder)]
        _run([*_UV, *create], env=self._environment)
        installed = folder / "bin" / "python"
        _run([*_UV, "pip", "install", "--quiet", "--python", str(installed), name], env=self._environment)
        return installed


def sbom(built_from: datetime) -> str:
    """Return the SBOM of the wheel (PEP 770), in CycloneDX's JSON: the package, which has nothing of others in it.

    Args:
        built_from: The time of the commit; nothing in it depends on when or where it is made.
    """
    url = PackageURL("pypi", None, _NAME, __version__)
    component = Component(
        name=_NAME,
        version=__version__,
        type=ComponentType.LIBRARY,
        bom_ref=str(url),
        purl=url,
        licenses=[LicenseExpression("Apache-2.0")],
    )
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, str(url)))
    bom.metadata.component, bom.metadata.timestamp = component, built_from
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2) + "\n"


def _export(folder: Path) -> None:
    """Write what is committed into a folder."""
    if changed := _output(["git", "status", "--porcelain"]).strip():
        print(f"not committed, and so not in the release:\n{changed}", file=sys.stderr)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=_CLONE, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def _check_equal(first: Path, second: Path) -> None:
    names = sorted(path.name for path in first.iterdir())
    if names != sorted(path.name for path in second.iterdir()):
        raise ReleaseError(f"two builds have different files: {first}, {second}")
    for name in names:
        if (first / name).read_bytes() != (second / name).read_bytes():
            raise ReleaseError(f"two builds of {name} differ")
    print(f"built twice with the same bytes: {', '.join(names)}")


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, cwd=_CLONE, check=True, capture_output=True, text=True).stdout


def _run(command: Sequence[str], cwd: Path = _CLONE, env: dict[str, str] | None = None) -> None:
    """Run a command; show what it printed only if it fails."""
    done = subprocess.run(command, cwd=cwd, env=env, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.stderr.write(done.stdout.decode("utf-8", "replace"))
        raise ReleaseError(f"{' '.join(command)} ended with status {done.returncode}")


def _found() -> list[str]:
    """Return the supported versions of Python that are on this machine; print those that are not."""
    found = [version for version in PYTHONS if _runs(f"python{version}")]
    if lacking := [version for version in PYTHONS if version not in found]:
        print(f"not tried on Python {', '.join(lacking)}: not on this machine", file=sys.stderr)
    return found


def _runs(python: str) -> bool:
    """Return whether a Python starts: what pyenv has of a version may not."""
    return (
        bool(shutil.which(python))
        and not subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tools/release",
        description="Builds the wheel and the source distribution of what is committed, twice, and compares them; "
        "checks them; installs the wheel alone and with each extra in fresh environments, and uses it there. Uploads "
        "nothing.",
    )
    parser.add_argument(
        "--output", type=Path, default=_CLONE / "dist", metavar="FOLDER", help="where they go (default dist)"
    )
    parser.add_argument(
        "--pythons", nargs="*", choices=PYTHONS, help="try them on these alone; none for no environment (default: all)"
    )
    parser.add_argument(
        "--extras", nargs="*", choices=[*EXTRAS], default=[*EXTRAS], help="with these alone (default: each)"
    )
    parser.add_argument(
        "--no-examples", dest="examples", action="store_false", help="do not run the documentation's examples"
    )
    parser.add_argument("--trial", action="store_true", help="though CHANGELOG.md has no section of this version")
    return parser


if __name__ == "__main__":
    sys.exit(main())
