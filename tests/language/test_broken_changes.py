"""Changes of rows whose readers would lose them: refused with file, line and remedy."""

import pytest

from pgoutput_construct import SpecError
from tools.language import SPEC, load_text

CHANGES = {
    "a row that is repeated": (
        "name: new_tag, description: Announces the new row.}\n"
        '          - {field: TupleData, name: new, description: "Values of the new row, in the order of the Relation\'s columns."}\n',
        "name: new_tag}\n          - {field: Int16, name: row_count}\n"
        "      - {type: repeat_1, name: new, count: row_count, blocks: "
        "[{type: header, fields: [{field: TupleData, name: row}]}]}\n",
        "of the change Insert",
    ),
    "an old row that is none": (
        '        description: "The removed row: whole, or its key."\n        alternatives:\n',
        "        alternatives:\n"
        "          - {field: Byte1('R'), name: number, then: [{field: Int64, name: row_number}]}\n",
        "of the change Delete",
    ),
    "a row next to old and new": (
        "{field: Byte1('N'), name: new_tag, description: Announces the new row.}",
        "{field: TupleData, name: other}\n          - {field: Byte1('N'), name: new_tag}",
        "of the change Insert",
    ),
    "a row next to a list of tables": (
        "- {field: Int32, name: relation_count, description: Number of tables that follow.}",
        "- {field: TupleData, name: old}\n          - {field: Int32, name: relation_count}",
        "of the change Truncate",
    ),
    "a table that may be absent": (
        "name: relation_oid, description: OID of a table that a Relation has described.}\n"
        "          - {field: Byte1('N')",
        "name: relation_oid, when: in_stream}\n          - {field: Byte1('N')",
        "of the change Insert",
    ),
    "two layouts of rows": (
        "parts:\n",
        "parts:\n"
        "  - name: Cells\n"
        "    blocks:\n"
        "      - {type: header, fields: [{field: Int16, name: cell_count}]}\n"
        "      - type: repeat_1\n"
        "        name: cells\n"
        "        count: cell_count\n"
        "        blocks:\n"
        "          - {type: choice_1, name: cell, alternatives: [{field: Byte1('n'), name: none, python: None}]}\n",
        "another layout of rows",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_rows_that_their_readers_would_lose_are_refused(case: str) -> None:
    """A change of rows has them where they are looked for, and nothing else there."""
    old, new, problem = CHANGES[case]
    text = (SPEC / "pgoutput.yaml").read_text("utf-8")
    assert old in text
    with pytest.raises(SpecError, match=rf"^grown\.yaml:\d+: .*{problem}"):
        load_text(text.replace(old, new, 1), "grown.yaml")
