"""Changes of rows whose readers would lose them: refused with file, line and remedy."""

import pytest

from pgoutput_construct import SpecError
from tests.language.sound import SOUND, assert_refused
from tools.language import SPEC, load_text
from tools.language.row_rules import is_unread

CHANGES = {
    "a change without its group": (
        "    in: [transaction, preparing, stream]\n    group: change\n",
        "    in: [transaction, preparing, stream]\n",
        r"Insert has rows of the table in relation_oid.*Write group: change\.",
    ),
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
    "a change whose rows are said": (
        "    in: [transaction, preparing, stream]\n    group: change\n",
        "    in: [transaction, preparing, stream]\n    group: change\n    rows: unread\n",
        r"Insert is a change, whose rows are read\. Remove rows",
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


def test_rows_are_said_next_to_changes() -> None:
    """Where nothing changes rows, nothing reads them."""
    assert_refused("    in: [idle]\n    blocks", "    in: [idle]\n    rows: ignored\n    blocks", "says rows", SOUND)


NEW = "  - name: Insert Many\n    in: [transaction]\n{}    blocks:\n      - type: header\n        fields:\n{}parts:\n"
TAG = "          - {field: Byte1('m'), name: tag}\n"
UNKNOWN = {
    # keys of the message, its fields, and whether readers of tables refuse it
    "a number": ("", "          - {field: Int64, name: number}\n", False),
    "a table": ("", "          - {field: Int32 (Oid), name: table}\n", True),
    "a table that is said": ("    rows: ignored\n", "          - {field: Int32 (Oid), name: table}\n", False),
    "a table that is described": ("    group: description\n", "          - {field: Int32 (Oid), name: table}\n", False),
    "bytes": ("", "          - {field: Byten, name: data}\n", True),
    "bytes that are said": ("    rows: ignored\n", "          - {field: Byten, name: data}\n", False),
    "a tuple": ("", "          - {field: TupleData, name: row}\n", True),
    "a tuple that is described": ("    group: description\n", "          - {field: TupleData, name: row}\n", True),
    "a number that is said": ("    rows: unread\n", "          - {field: Int64, name: number}\n", True),
    "a table in one version": (
        "",
        "          - {field: Int32, name: table, until: 3}\n          - {field: Int32 (Oid), name: table, since: 4}\n",
        True,
    ),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_may_change_rows_and_is_no_change(case: str) -> None:
    """Tuples, tables and bytes in a message without a group, unless the specification says what they are."""
    keys, fields, expected = UNKNOWN[case]
    text = (SPEC / "pgoutput.yaml").read_text("utf-8")
    spec = load_text(text.replace("parts:\n", NEW.format(keys, TAG + fields), 1), "grown.yaml")
    assert [message.name for message in spec.messages if is_unread(message, spec)] == ["Insert Many"] * expected
