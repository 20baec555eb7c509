"""A broken table of built-in types names its line and the remedy."""

from pathlib import Path

import pytest

from pgoutput_construct import SpecError
from tools.language import SPEC
from tools.language.builtin_types import load_types

BROKEN = [
    ("  - {name: int4, oid: 23}\n  - {name: int4, oid: 24}", "spec.yaml:3: int4: int4 is already that of int4"),
    ("  - {name: int4, oid: 23}\n  - {name: int8, oid: 23}", "spec.yaml:3: int8: 23 is already that of int4"),
    ("  - {name: int4, oid: 23}\n  - {name: x, oid: 1, array_oid: 23}", "spec.yaml:3: x: 23 is already that of int4"),
    ("  - {name: x, oid: 1, array_oid: 2}\n  - {name: x_, oid: 1}", "spec.yaml:3: x_: 1 is already that of x"),
    ("  - {name: r, oid: 1, subtype: int4}", "spec.yaml:2: r: the subtype int4 is not in the table"),
    (
        "  - {name: Int4, oid: 23}",
        "spec.yaml:2: types/0/name: 'Int4' is not written like that. Write a name",
    ),
    (
        "  - {name: int4, oid: 23, arrow: int4}",
        "spec.yaml:2: types/0/arrow: 'int4' is not one of the permitted words",
    ),
    ("  - {name: int4, oid: 23, typlen: 4}", "spec.yaml:2: 'typlen' is not a key here: did you mean"),
    ("  - {name: int4, oid: 16384}", "spec.yaml:2: types/0/oid: 16384 is more than 9999"),
    ("  - {name: x, oid: 1, arrow: decimal}", "spec.yaml:2: x: nothing says how its values become a decimal"),
    ("  - {name: x, oid: 1, arrow: int32}", "spec.yaml:2: x: its text would be read as that of int4, which is not in"),
    ("  - {name: x, oid: 1, like: y}", "spec.yaml:2: x is like y, which is not in the table"),
    ("  - {name: x, oid: 1, like: int4}\n  - {name: int4, oid: 23, size: 4, arrow: int32}", "arrow or size differs"),
    ("  - {name: int4}", "spec.yaml:2: types/0: 'oid' is missing. Write oid: oid of pg_type"),
]


@pytest.mark.parametrize(("rows", "problem"), BROKEN, ids=[problem for _, problem in BROKEN])
def test_broken_table(tmp_path: Path, rows: str, problem: str) -> None:
    """Names and OIDs are unique, subtypes are known, and a schema says the shape."""
    path = tmp_path / "spec.yaml"
    path.write_text(f"types:\n{rows}\n", "utf-8")
    with pytest.raises(SpecError, match=problem):
        load_types(path)


def test_missing_file(tmp_path: Path) -> None:
    """A table that cannot be read is named."""
    with pytest.raises(SpecError, match="cannot be read"):
        load_types(tmp_path / "none.yaml")


def test_table_of_the_project() -> None:
    """The table itself obeys its rules."""
    assert {row.name: row.oid for row in load_types(SPEC / "builtin_types.yaml").types}["int4"] == 23
