"""Families: each type has one, each is imported without extras, and a type is added in its family's file alone."""

import filecmp
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from pgoutput_construct import pgtypes
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, TYPE_NAMES
from pgoutput_construct.pgtypes.type_registry import CODECS, FAMILIES
from tests.growth.project import Project
from tools.language import SPEC

ROOT = SPEC.parent
NEED_EXTRAS = {"arrow_types", "column_reader", "kernels"}
HIDDEN = ("numba", "numpy", "psycopg", "pyarrow", "pyspark")

ROW = {"name": "colour", "oid": 9998, "array_oid": 9999, "size": 4}
FAMILY = Path("pgoutput_construct", "pgtypes", "bits.py")
CODEC = """
FAMILY.codecs["colour"] = Codec(lambda data: f"#{data.hex()}", lambda text: bytes.fromhex(text.removeprefix("#")))
"""
USE = """
import struct
import pyarrow as pa
from pgoutput_construct.pgtypes.arrow_types import arrow_type
from pgoutput_construct.pgtypes.canonical_text import canonical_sql
from pgoutput_construct.pgtypes.column_reader import ColumnReader
from pgoutput_construct.pgtypes.kernels.cast_table import find_cast
from pgoutput_construct.pgtypes.type_registry import CODECS, writer
from pgoutput_construct.wire.messages import VALUE_TAGS, Binary, RelationColumn

red = bytes([255, 0, 0, 128])
array = struct.pack("!iiIiii", 1, 0, 9998, 1, 1, 4) + red
column, columns = (RelationColumn(0, "c", oid, -1) for oid in (9998, 9999))
assert arrow_type(column, {}) == pa.string() and arrow_type(columns, {}) == pa.list_(pa.string())
assert writer(9998, {})(red) == "#ff000080" and writer(9999, {})(array) == "{#ff000080}"
assert CODECS["colour"].binary("#ff000080") == red and CODECS["_colour"].binary("{#ff000080}") == array
for value, target, expected in ((red, pa.string(), "#ff000080"), (array, pa.list_(pa.string()), ["#ff000080"])):
    reader = ColumnReader(column if value is red else columns, {}, target)
    assert reader.load(Binary(value)) == expected and reader.text(Binary(value))
assert find_cast(VALUE_TAGS["text"], 9998, pa.string()) is not None
assert canonical_sql("colour", None, pa.string()) == canonical_sql("text", None, pa.string())
"""


def test_each_type_has_one_family() -> None:
    """No type is served twice, and none is forgotten; arrays and ranges are those of their elements and bounds."""
    served = Counter(name for family in FAMILIES.values() for name in (*family.codecs, *family.without_codec))
    alike = {row.name for row in BUILTIN_TYPES.values() if row.binary_like}
    assert served == Counter(TYPE_NAMES.keys() - alike)
    for name, family in FAMILIES.items():
        for each in (*family.codecs, *family.without_codec):
            row = TYPE_NAMES[each]
            assert (name == "arrays", name == "ranges") == (bool(row.element_oid), bool(row.subtype_oid)), each


def test_families_define_only_their_types() -> None:
    """Kernels are named for types of the family; each of Spark's types is written by one family."""
    for family in FAMILIES.values():
        assert family.compiled().keys() <= {*family.codecs, *family.without_codec}
    written = Counter(name for family in FAMILIES.values() for name in family.spark)
    assert set(written.values()) == {1}
    arrow = Counter(name for family in FAMILIES.values() if (known := family.arrow()) for name in known.types)
    assert set(arrow.values()) == {1}
    assert {row.arrow for row in BUILTIN_TYPES.values()} <= {*arrow, "list", "decimal"}


def test_families_are_imported_without_extras() -> None:
    """Whoever has construct alone reads text and binary format; only what needs pyarrow anyway imports it."""
    modules = [f"pgoutput_construct.pgtypes.{each.name}" for each in pkgutil.iter_modules(pgtypes.__path__)]
    plain = [name for name in modules if name.rpartition(".")[2] not in NEED_EXTRAS]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({HIDDEN}))\nimport {', '.join(plain)}\n"
        "from pgoutput_construct.pgtypes.type_registry import writer\nprint(writer(600, {})(bytes(16)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("(0,0)\n", "")
    assert len(plain) == len(modules) - len(NEED_EXTRAS)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of the project with a type more: a row of the specification, and a codec in the file of a family."""
    project = Project(tmp_path_factory.mktemp("colour"))
    project.edit("builtin_types.yaml", [{"at": "types", "add": [ROW]}])
    path = project.folder / FAMILY
    path.write_text(path.read_text("utf-8") + CODEC, "utf-8")
    project.generate()
    return project


@pytest.mark.long
def test_a_type_is_added_in_one_file(project: Project) -> None:
    """Text, binary format, Arrow, SQL, and arrays of the type: all follow."""
    done = project.run("-c", USE)
    assert done.returncode == 0, done.stderr
    assert "colour" not in CODECS
    package = Path("pgoutput_construct", "pgtypes")
    names = [path.relative_to(ROOT) for path in sorted((ROOT / package).rglob("*.py"))]
    changed = [name for name in names if not filecmp.cmp(ROOT / name, project.folder / name, shallow=False)]
    assert changed == [FAMILY, package / "builtin_types.py"]
