"""The table of notations: what nothing can read is refused, with its line."""

from pathlib import Path

import pytest

from pgoutput_construct import SpecError
from pgoutput_construct.wire import primitives
from tools.language import SPEC
from tools.language.load import load_notations
from tools.language.notation_table import NUMBERS, TEXTS

BROKEN = [
    (
        "{notation: Int128, bytes: 16, construct: UInt64, python: int, arrow: uint64}",
        "16 is not one of the permitted words",
    ),
    ("{notation: Int64, bytes: 8, construct: UInt65, python: int, arrow: uint64}", "did you mean 'UInt6"),
    ("{notation: Int64, bytes: 8, construct: UInt64, python: int, arrow: uint32}", "is not Arrow's uint32"),
    ("{notation: Int64, construct: UInt64, python: int, arrow: uint64}", "int needs a number of bytes"),
    ("{notation: String, bytes: 4, construct: String, python: str, arrow: string}", "str has no number of bytes"),
    (
        "{notation: Int64, bytes: 8, construct: UInt32, python: int, arrow: uint64}",
        "UInt32 reads 4 bytes without a sign as int, not 8 bytes",
    ),
    (
        "{notation: Int32, bytes: 4, signed: true, construct: UInt32, python: int, arrow: int32}",
        "UInt32 reads 4 bytes without a sign as int, not 4 bytes with a sign as int",
    ),
    (
        "{notation: Int32, bytes: 4, signed: true, construct: SInt32, python: int, arrow: uint32}",
        "a number with a sign is not Arrow's uint32. Write arrow: int32",
    ),
    (
        "{notation: Int32, bytes: 4, construct: SInt32, python: int, arrow: int32}",
        "without a sign is not Arrow's int32",
    ),
    (
        "{notation: Int64, bytes: 8, construct: XLogRecPtr, python: int, arrow: uint64}",
        "XLogRecPtr reads 8 bytes without a sign as Lsn",
    ),
    (
        "{notation: Float64, bytes: 8, construct: Float64, python: Float, arrow: int64}",
        "a number of 8 bytes is not Arrow's int64. Write arrow: float64",
    ),
    ("{notation: Float8, bytes: 8, construct: Float64, python: Float, arrow: float64}", "Call it Float64"),
    (
        "{notation: Float64, bytes: 8, construct: UInt64, python: Float, arrow: float64}",
        "UInt64 reads 8 bytes without a sign as int, not 8 bytes without a sign as Float",
    ),
    ("{notation: Int8, bytes: 1, construct: String, python: int, arrow: uint8}", "String reads no number"),
    ("{notation: Int4, bytes: 4, construct: UInt32, python: int, arrow: uint32}", "its name says 4 bits"),
    ("{notation: Text, construct: UInt8, python: str, arrow: string}", "UInt8 reads a number, and str is not a number"),
    ("{notation: Text, construct: String, python: bytes, arrow: binary}", "String reads str and Arrow's string"),
    ("{notation: Text, construct: String, python: str, arrow: string, signed: true}", "str has no sign"),
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


@pytest.mark.parametrize("name", sorted({*NUMBERS, *TEXTS}))
def test_primitives_are_what_the_table_says(name: str) -> None:
    """The sizes and types of the primitives are those of the package's own."""
    primitive = getattr(primitives, name)
    if name in TEXTS:
        assert not isinstance(primitive, primitives.Number)
        return
    size, signed, python = NUMBERS[name]
    least = primitive.parse(b"\xff" * size)
    assert (least == -1) is signed and type(least).__name__ == python


def test_table_of_the_project() -> None:
    """The table itself obeys its rules."""
    assert len(load_notations(SPEC / "types.yaml")) > 10
