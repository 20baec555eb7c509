"""Which tests a change can affect: the files of tests that import what has changed, directly or not."""

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import grimp

__all__ = ["UnknownBranchError", "affected_tests", "affects_documentation"]

_ROOTS: Final = ("pgoutput_construct", "tools", "tests")
_TESTS: Final = "tests"
_CONFTEST: Final = re.compile(r"tests\..*\.conftest$")
"""Those of folders: what is for all tests imports servers and Spark."""
_ROOMS: Final = {each.name for each in Path(__file__).parents[1].joinpath(_TESTS).iterdir() if each.is_dir()}
_BASE: Final = "main"
_EVERYTHING: Final = ("pyproject.toml", "spec/", "tests/conftest.py", "tests/data/")
"""What every test depends on, or what files say nothing of who reads them."""
_OF_FILES: Final = {
    "docs/": "tests/test_documentation.py",
    "README.md": "tests/test_documentation.py",
    "CONTRIBUTING.md": "tests/test_documentation.py",
    "SECURITY.md": "tests/test_documentation.py",
    ".github/": "tests/test_workflows.py",
    "tools/test": "tests/test_suite.py",
}
"""The tests of files that nobody imports."""
_BY_PATH: Final[Mapping[str, Sequence[str]]] = {
    "tests/benchmark": ("tests/benchmark/", "tools/benchmark/"),
    "tests/codecs": ("tests/codecs/", "tools/codecs.py", "tools/generate/"),
    "tests/explorer": ("tests/explorer/", "tools/explorer/", "docs/explorer/", "tools/generate/", "tools/language/"),
    "tests/language": ("tests/language/", "tools/language/", "tools/generate/"),
    "tests/protocol_docs": ("tests/protocol_docs/", "tools/protocol_docs/", "tools/language/"),
    "tests/wireshark": ("tests/wireshark/", "tools/generate/", "tools/language/"),
}
"""Rooms whose tests import much of the package and show little of it, and the paths of what they are about."""
_DOCUMENTED: Final = (
    "docs/",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "pgoutput_construct/",
    "tools/docs",
    "tools/explorer/",
)
"""What the documentation is made of: the reference has the docstrings of the package."""


class UnknownBranchError(Exception):
    """There is no branch to compare with."""


def affected_tests(clone: Path, base: str = _BASE) -> list[str]:
    """Return the files of tests that a change can affect, or the folder of all of them.

    A change is what differs from where the branch has left another one, with what is not committed. A module affects
    those that import it, directly or not, but for rooms that only the paths of their subjects affect. What a test
    starts as a program of its own is not seen.

    Args:
        clone: The clone; its Git says what has changed.
        base: The other branch.

    Raises:
        UnknownBranchError: Git does not know the other branch, as in a clone of one branch alone.
    """
    changed = sorted(_changed(clone, base))
    if any(path.startswith(_EVERYTHING) for path in changed):
        return [_TESTS]
    graph = grimp.build_graph(*_ROOTS, cache_dir=None)
    modules = {name for path in changed if (name := _module(path)) in graph.modules}
    found = modules | {each for name in modules for each in graph.find_downstream_modules(name)}
    files = {f"{name.replace('.', '/')}.py" for name in found if name.rpartition(".")[2].startswith("test_")}
    conftests = {name.rpartition(".")[0].replace(".", "/") for name in found if _CONFTEST.match(name)}
    by_import = {each for each in files | conftests if not each.startswith(tuple(_BY_PATH))}
    rooms = {f"{_TESTS}/{room}" for path in changed if (room := _room(path)) in _ROOMS}
    rooms |= {room for room, paths in _BY_PATH.items() if any(path.startswith(tuple(paths)) for path in changed)}
    others = {test for start, test in _OF_FILES.items() if any(path.startswith(start) for path in changed)}
    return sorted({*by_import, *rooms, *others})


def affects_documentation(clone: Path, base: str = _BASE) -> bool:
    """Return whether a change affects the documentation; the arguments and errors are those of ``affected_tests``."""
    return any(path.startswith((*_DOCUMENTED, *_EVERYTHING)) for path in _changed(clone, base))


def _room(path: str) -> str:
    """Return the folder below a package: its programs, commands and data are used by their names."""
    is_test = path.startswith(_TESTS) and path.endswith(".py")
    return path.split("/")[1] if path.startswith(_ROOTS) and not is_test else ""


def _changed(clone: Path, base: str) -> Iterator[str]:
    try:
        start = _git(clone, "merge-base", "HEAD", base)
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip() or "it has no commit in common with it"
        raise UnknownBranchError(
            f"there is no branch {base} to compare with: {reason}: git fetch origin {base}:{base}"
        ) from error
    for arguments in (["diff", "--name-only", *start], ["ls-files", "--others", "--exclude-standard"]):
        yield from _git(clone, *arguments)


def _git(clone: Path, *arguments: str) -> Iterable[str]:
    done = subprocess.run(["git", *arguments], cwd=clone, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
