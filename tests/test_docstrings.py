"""Examples in docstrings do what they show."""

import doctest
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import pgoutput_construct

ROOT = Path(__file__).parents[1]
MODULES = [
    str(path.relative_to(ROOT).with_suffix("")).replace("/", ".").removesuffix(".__init__")
    for path in sorted((ROOT / "pgoutput_construct").rglob("*.py"))
    if re.search(r">>> (?!.*# doctest: \+SKIP)", path.read_text("utf-8"))
]
"""Those with an example that needs nothing from elsewhere, such as a server."""
GIVEN: dict[str, Any] = {
    "hypothesis": hypothesis,
    "my_client": lambda dsn: None,
    "pgoutput_construct": pgoutput_construct,
}
"""Names that the examples use and that are not of their modules."""


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_a_module(module: str) -> None:
    """Each prints what stands below it."""
    importlib.import_module(module)
    found = doctest.testmod(sys.modules[module], extraglobs=GIVEN)
    assert found.attempted and not found.failed


def test_examples_of_the_core() -> None:
    """What one looks up first has one."""
    pgo = pgoutput_construct
    for documented in (pgo.parse, pgo.build, pgo.parse_frame, pgo.Session, pgo.Lsn, pgo.Timestamp):
        assert ">>>" in (documented.__doc__ or ""), documented
