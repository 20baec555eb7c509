"""PostgreSQL 19 for tests, out of Debian's packages: ``python -m tools.postgres19`` downloads and unpacks it, once.

The embedded distribution does not carry it. The packages come from the mirror in the machine's apt sources, and nothing
is installed: each program runs with the libraries that it was built for, by their own loader. Remove the folder to get
a newer release.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.cache import FOR_SERVERS, fetching

__all__ = ["PROGRAMS", "RELEASE", "missing_postgres19"]

RELEASE: Final = 19
"""The major version."""

_FOLDER: Final = FOR_SERVERS / f"postgresql-{RELEASE}"
_PROGRAMS: Final = Path("usr", "lib", "postgresql", str(RELEASE), "bin")
PROGRAMS: Final = _FOLDER / _PROGRAMS
"""Where its programs are."""
_STAMP: Final = "installed.txt"
_PACKAGES: Final = (f"postgresql-{RELEASE}", f"postgresql-client-{RELEASE}")
_UNUSED: Final = ("doc", "info", "locale", "man")  # two thirds of the files
_KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_FETCH: Final = f"fetch it: python -m tools.postgres{RELEASE}"


def missing_postgres19() -> str:
    """Say what to do when PostgreSQL 19 was not unpacked; "" when it was."""
    return "" if (_FOLDER / _STAMP).exists() else f"no PostgreSQL {RELEASE}: {_FETCH}"


def main() -> None:
    """Download and unpack it, unless that was done."""
    with fetching(_FOLDER.name):
        if missing_postgres19():
            _fetch()


def _fetch() -> None:
    print(f"fetching PostgreSQL {RELEASE} out of Debian's packages", file=sys.stderr)
    _FOLDER.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="unpacked-", dir=_FOLDER.parent) as name:
            tree = Path(name)
            _download(tree / "packages")
            version = _unpack(tree)
            tree.chmod(0o755)
            shutil.rmtree(_FOLDER, ignore_errors=True)
            shutil.copytree(tree, _FOLDER, symlinks=True)
        (_FOLDER / _STAMP).write_text(version)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        said = (error.stderr or "").strip() if isinstance(error, subprocess.CalledProcessError) else ""
        raise SystemExit(f"Error: no PostgreSQL {RELEASE}: {error}\n{said}".rstrip()) from error


def _download(folder: Path) -> None:
    """Download the packages and the libraries that they need, by apt with sources and lists of its own."""
    with tempfile.TemporaryDirectory(prefix="apt-") as name:
        config = _configure(Path(name))
        _run("apt-get", "update", "-qq", config=config)
        folder.mkdir()
        names = [*_PACKAGES, "tzdata", *_libraries(config)]
        _run("apt-get", "download", "-qq", *names, config=config, folder=folder)


def _configure(folder: Path) -> Path:
    """Write the configuration of apt: Debian's unstable suite, and of experimental this release of PostgreSQL alone."""
    signed = f"Signed-By: {_KEYRING}\n" if _KEYRING.exists() else ""
    settings = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": folder / "sources",
        "Dir::Etc::preferences": folder / "preferences",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
    }
    for name in ("sources", "lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    suites = f"Types: deb\nURIs: {_mirror()}\nSuites: sid experimental\nComponents: main\n{signed}"
    (folder / "sources" / "debian.sources").write_text(suites)
    pinned = " ".join((*_PACKAGES, "libpq5"))
    (folder / "preferences").write_text(f"Package: {pinned}\nPin: release a=experimental\nPin-Priority: 500\n")
    config = folder / "apt.conf"
    config.write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
    return config


def _mirror() -> str:
    """Return where the machine gets Debian's own packages from."""
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text("utf-8"), re.MULTILINE))
    form = "$(RELEASE) $(COMPONENT) $(REPO_URI)"
    for line in _run("apt-get", "indextargets", "--format", form, "Created-By: Packages").splitlines():
        suite, component, address = line.split(maxsplit=2)
        if release.get("ID") == "debian" and (suite, component) == (release.get("VERSION_CODENAME"), "main"):
            return address
    raise ValueError("this machine's apt has no source of Debian's packages")


def _libraries(config: Path) -> set[str]:
    """Return the names of the packages of libraries that the programs need, and that these need."""
    found, names = set[str](), set(_PACKAGES)
    without = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
    while names:
        listed = _run("apt-cache", "depends", *without, *sorted(names), config=config)
        names = set(re.findall(r"Depends: ((?:z?lib)\S+)", listed)) - found
        found |= names
    return found


def _unpack(tree: Path) -> str:
    """Unpack the packages, and have each program started by its own loader; return the server's version."""
    for package in sorted((tree / "packages").iterdir()):
        _run("dpkg-deb", "--extract", str(package), str(tree))
    shutil.rmtree(tree / "packages")
    for name in _UNUSED:
        shutil.rmtree(tree / "usr" / "share" / name, ignore_errors=True)
    (loader,) = (path.relative_to(tree) for path in tree.glob("usr/lib/*/ld-linux*.so.*"))
    binaries = (tree / _PROGRAMS).rename(tree / _PROGRAMS.parent / "binaries").relative_to(tree)
    (tree / _PROGRAMS).mkdir()
    for binary in (tree / binaries).iterdir():
        # PostgreSQL finds its other programs, libraries and files from the path that it was called by.
        paths = (loader, loader.parent, binaries / binary.name)
        start, folder, real = (shlex.quote(str(_FOLDER / path)) for path in paths)
        script = tree / _PROGRAMS / binary.name
        script.write_text(f'#!/bin/sh\nexec {start} --argv0 "$0" --library-path {folder} {real} "$@"\n')
        script.chmod(0o755)
    return _run(
        str(tree / loader), "--library-path", str(tree / loader.parent), str(tree / binaries / "postgres"), "-V"
    )


def _run(*command: str, config: Path | None = None, folder: Path | None = None) -> str:
    environment = {**os.environ, "LC_ALL": "C"} | ({"APT_CONFIG": str(config)} if config else {})
    result = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=folder)
    return result.stdout


if __name__ == "__main__":
    main()
