"""What is known by one value gains more of them in version 5: only the YAML is edited, and everything follows.

Where the specification has a version 5 already, it is the version after its newest.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pgoutput_construct.wire.protocol import PROTOCOL_VERSIONS
from tools.generate.outputs import OUTPUTS
from tools.language import SPEC, load

pytestmark = pytest.mark.slow

ROOT = SPEC.parent
LEFT_OUT = ("kernels.py", ".lua", ".jsonl")
"""What the script does not use, and takes longest."""

NEXT = max(PROTOCOL_VERSIONS) + 1
VERSION = f"\n  - {{version: {NEXT}, server: 99, brings: more}}\n\nparameters:"
VALUE = """\
        blocks:
          - type: choice_1
            name: value
"""
NAMED = "        description: One value.\n        class: TupleColumn\n"
BEFORE = """\
        blocks:
          - type: header
            fields: [{field: Int8, name: format, since: 5, description: How it is written.}]
          - type: choice_1
            name: value
"""
BINARY = "name: data, length: length, description: The value in binary format.}\n"
AFTER = """\
          - type: body
            fields: [{field: Int16, signed: true, name: rank, since: 5}, {field: String, name: note, when: in_stream}]
"""
TABLE = "name: relation_oid, description: OID of a table that a Relation has described.}\n\n  - name: Stream Start\n"
LSN = "              - {field: Int64 (XLogRecPtr), name: emptied_lsn, since: 5}\n"
COUNT = "          - {field: Int16, name: column_count, description: Number of columns that follow.}\n"
PART = "    server: 10\n    blocks:\n      - type: header\n        fields:\n" + COUNT
SHAPE = PART.replace(COUNT, "          - {field: Int8, name: shape, since: 5}\n" + COUNT)
MODIFIER = 'as atttypmod in pg_attribute; -1 for none."}\n'

Edit = tuple[str, str]
CASES: dict[str, tuple[list[Edit], str, str, str, str, str]] = {
    "before a value": (
        [("        description: One value.\n", NAMED), (VALUE, BEFORE)],
        "pgo.Insert(None, 7, (pgo.TupleColumn(b'5', format=3), pgo.TupleColumn(None, format=0)))",
        "49 00000007 4e 0002 03 74 00000001 35 00 6e",
        "pgo.Insert(None, 7, (b'5', None))",
        "49 00000007 4e 0002 74 00000001 35 6e",
        "TupleColumn",
    ),
    "after a value": (
        [("        description: One value.\n", NAMED), (BINARY, BINARY + AFTER)],
        "pgo.Insert(None, 7, (pgo.TupleColumn(pgo.UNCHANGED, rank=-2),))",
        "49 00000007 4e 0001 75 fffe",
        "pgo.Insert(None, 7, (pgo.UNCHANGED,))",
        "49 00000007 4e 0001 75",
        "TupleColumn",
    ),
    "next to an OID": (
        [
            ("One emptied table.\n", "One emptied table.\n        class: EmptiedTable\n"),
            (TABLE, TABLE.replace("\n\n", "\n" + LSN + "\n")),
        ],
        "pgo.Truncate(None, 0, (pgo.EmptiedTable(7, emptied_lsn=pgo.Lsn(1)),))",
        "54 00000001 00 00000007 0000000000000001",
        "pgo.Truncate(None, 0, (7,))",
        "54 00000001 00 00000007",
        "EmptiedTable",
    ),
    "in front of the count": (
        [(PART, SHAPE)],
        "pgo.Update(None, 7, 'K', pgo.TupleData((), shape=1), pgo.TupleData((b'',), shape=2))",
        "55 00000007 4b 01 0000 4e 02 0001 74 00000000",
        "pgo.Update(None, 7, 'K', (), (b'',))",
        "55 00000007 4b 0000 4e 0001 74 00000000",
        "TupleData",
    ),
    "in a record": (
        [(MODIFIER, MODIFIER + "              - {field: Int64, signed: true, name: width, since: 5}\n")],
        "pgo.Relation(None, 7, '', 't', 'd', (pgo.RelationColumn(1, 'a', 23, -1, width=-2),))",
        "52 00000007 00 7400 64 0001 01 6100 00000017 ffffffff fffffffffffffffe",
        "pgo.Relation(None, 7, '', 't', 'd', (pgo.RelationColumn(1, 'a', 23, -1),))",
        "52 00000007 00 7400 64 0001 01 6100 00000017 ffffffff",
        "",
    ),
}
CASES["in values and rows at once"] = (
    [*CASES["in front of the count"][0], ("        description: One value.\n", NAMED), (VALUE, BEFORE)],
    "pgo.Delete(None, 7, 'O', pgo.TupleData((pgo.TupleColumn(None, format=3),), shape=1))",
    "44 00000007 4f 01 0001 03 6e",
    "pgo.Delete(None, 7, 'O', (None,))",
    "44 00000007 4f 0001 6e",
    "TupleColumn TupleData",
)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a copy of the package and the specifications."""
    ignore = shutil.ignore_patterns("__pycache__")
    for folder in ("pgoutput_construct", "spec"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignore)
    return tmp_path


BY_DEFAULT = ("in values and rows at once",)
"""A value and a row; where the new field stands otherwise is for the longer tests."""


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in BY_DEFAULT else pytest.mark.long) for case in CASES]
)
def test_what_stands_for_itself_becomes_an_object(case: str, copied: Path) -> None:
    """Old messages keep their bare values, new ones are objects; bytes, JSON, traces and strategies agree."""
    edits, *arguments, items = CASES[case]
    text = (SPEC / "pgoutput.yaml").read_text("utf-8")
    for old, new in [("\n\nparameters:", VERSION), *edits]:
        assert text.count(old) == 1, old
        text = text.replace(old, new.replace("since: 5", f"since: {NEXT}"))
    (copied / "spec/pgoutput.yaml").write_text(text, "utf-8")
    spec = load(copied / "spec/pgoutput.yaml")
    for output in OUTPUTS:
        if output.spec == "pgoutput.yaml" and not output.related and not output.path.endswith(LEFT_OUT):
            (copied / output.path).write_text(output.emit(spec), "utf-8")
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("growth.py"), *arguments],
        cwd=copied,
        env={"PYTHONPATH": str(copied), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == items
