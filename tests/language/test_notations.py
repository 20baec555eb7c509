"""The table of notations: what nothing can read is refused, with its line."""

from pathlib import Path

import pytest

from pgoutput_construct import SpecError
from tools.language import SPEC
from tools.language.load import load_notations

BROKEN = [
    (
        "{notation: Int128, bytes: 16, construct: UInt64, python: int, arrow: uint64}",
        "16 is not one of the permitted words",
    ),
    ("{notation: Int64, bytes: 8, construct: UInt65, python: int, arrow: uint64}", "did you mean 'UInt6"),
    ("{notation: Int64, bytes: 8, construct: UInt64, python: int, arrow: uint32}", "is not Arrow's uint32"),
    ("{notation: Int64, construct: UInt64, python: int, arrow: uint64}", "int needs a number of bytes"),
    ("{notation: String, bytes: 4, construct: String, python: str, arrow: string}", "str has no number of bytes"),
    ("{notation: int64, bytes: 8, construct: UInt64, python: int, arrow: uint64}", "the documents' notation"),
    ("{notation: Int64, size: 8, construct: UInt64, python: int, arrow: uint64}", "'size' is not a key here"),
]


@pytest.mark.parametrize(("row", "problem"), BROKEN, ids=[problem for _, problem in BROKEN])
def test_broken_table(tmp_path: Path, row: str, problem: str) -> None:
    """Each is a SpecError with file, line, problem and remedy."""
    path = tmp_path / "types.yaml"
    path.write_text(f"types:\n  - {row}\n", "utf-8")
    with pytest.raises(SpecError, match=r"^types\.yaml:2: .*[.?] .*") as caught:
        load_notations(path)
    assert problem in str(caught.value)


def test_a_notation_twice(tmp_path: Path) -> None:
    """A notation means one thing."""
    row = "  - {notation: Int8, bytes: 1, construct: UInt8, python: int, arrow: uint8}\n"
    (tmp_path / "types.yaml").write_text(f"types:\n{row}{row}", "utf-8")
    with pytest.raises(SpecError, match="Int8 occurs twice"):
        load_notations(tmp_path / "types.yaml")


def test_table_of_the_project() -> None:
    """The table itself obeys its rules."""
    assert len(load_notations(SPEC / "types.yaml")) > 10
