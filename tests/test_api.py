"""The page of the Python API says which modules and names are public: as the package has them."""

import importlib
import inspect
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = "docs/reference/api"
TEXT = (ROOT / f"{PAGE}.md").read_text("utf-8")
PUBLIC = re.findall(r"^\| `(pgoutput_construct[\w.]*)` \|", TEXT, re.MULTILINE)
"""The modules of its table."""
INTERNAL = {
    "pgoutput_construct.changelog.compact": {"lock_for_maintenance", "plan_compaction"},
    "pgoutput_construct.changelog.prune": {"needs_of"},
    "pgoutput_construct.spark.formats": {"deferred_session"},
}
"""What these modules export for others of the package alone."""


def test_every_module_is_public_or_internal() -> None:
    """The table and the sentence below it have each module and package that has no underscore."""
    package = ROOT / "pgoutput_construct"
    there = {path.stem for path in package.iterdir() if re.fullmatch(r"[a-z]\w*(\.py)?", path.name)}
    sentence = TEXT[TEXT.index("Every other module is internal") : TEXT.index("## Messages")]
    internal = {name for name in re.findall(r"`(\w+)`", sentence) if name in there}
    public = {name.split(".")[1] for name in PUBLIC if "." in name}
    assert not internal & public and internal | public == there


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the full names that the page describes, as Sphinx has it."""
    from sphinx.application import Sphinx

    folder = tmp_path_factory.mktemp("api")
    only = {"root_doc": PAGE, "include_patterns": [f"{PAGE}.md"]}
    quiet: Any = {"status": None, "warning": io.StringIO()}  # links to other pages lead nowhere here
    app = Sphinx(ROOT, ROOT / "docs", folder, folder / "trees", "dummy", confoverrides=only, **quiet)
    app.build()
    entries = app.env.domains.python_domain.objects.items()
    return {name for name, entry in entries if not entry.aliased}  # an alias is where something is defined


@pytest.mark.parametrize("module", PUBLIC)
def test_exports_are_there(module: str) -> None:
    """dir() shows what a module exports."""
    imported = importlib.import_module(module)
    assert {*imported.__all__} <= {*dir(imported)}


@pytest.mark.long
@pytest.mark.parametrize("module", PUBLIC)
def test_names_of_a_module(module: str, described: set[str]) -> None:
    """What it exports is described, or named as described elsewhere on the page."""
    exported = {*importlib.import_module(module).__all__}
    found = {name.removeprefix(f"{module}.") for name in described if name.startswith(f"{module}.")}
    missing = exported - found - INTERNAL.get(module, set())
    section = re.split(r"^##+ ", TEXT.partition(f"automodule:: {module}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    _, _, others = section.partition("Also here:")
    assert missing == {*re.findall(r"`(\w+)`", others)}
    assert all(any(name.endswith(f".{each}") for name in described) or each == "SCHEMA" for each in missing)


@pytest.mark.long
def test_nothing_else_is_described(described: set[str]) -> None:
    """Each name belongs to what a public module exports."""
    modules = sorted(PUBLIC, key=len, reverse=True)
    for name in described - {*PUBLIC}:
        module = next(module for module in modules if name.startswith(f"{module}."))
        first = name.removeprefix(f"{module}.").split(".")[0]
        assert first in importlib.import_module(module).__all__, name
        assert first not in INTERNAL.get(module, set())


def _callables() -> Iterator[tuple[str, Any]]:
    for module in map(importlib.import_module, PUBLIC):
        for name in module.__all__:
            value = getattr(module, name)
            yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                yield from ((f"{name}.{each}", getattr(value, each)) for each in vars(value) if each[0] != "_")


def test_signatures_are_short() -> None:
    """help() names PgoutputMessage and Frame: it does not list their classes."""
    checked = 0
    for name, value in _callables():
        if not callable(value):
            continue
        try:
            shown = str(inspect.signature(value))
        except (TypeError, ValueError):  # such as an enumeration, or a type of C
            continue
        checked += 1
        assert not re.search(r"RollbackPrepared \||PrimaryKeepalive \|", shown), name
    assert checked > 300
