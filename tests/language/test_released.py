"""Released versions of the protocol do not change: additions name their first version."""

import json
import shutil
from pathlib import Path

import pytest

from pgoutput_construct import SpecError
from tools.generate.outputs import render
from tools.language import SPEC, load
from tools.language.released import check_released, layouts

XID = "          - {field: Int32 (TransactionId), name: xid, role: xid, description: Transaction ID.}\n"
KINDS = "              - field: Byte1('t')\n                name: text\n"
PREFIX = "{field: String, name: prefix,"
ODD = "  - {name: Odd, in: [idle], blocks: [{type: header, fields: [{field: Byte1('x'), name: tag}]}]}\n\n"
EXTERNAL = "              - {field: Byte1('e'), name: external, python: EXTERNAL}\n"
SWITCH = "  - {name: two_phase, type: switch,"
CHANGES = {
    "a message": ("  - name: Commit\n", ODD + "  - name: Commit\n", "the message 'x'", "name: Odd"),
    "a field": (XID, XID + "          - {field: Int8, name: more}\n", "the message 'B'", "name: more"),
    "a type": (XID, XID.replace("Int32 (TransactionId)", "Int64"), "the message 'B'", "field: Int64, name: xid"),
    "a letter": ("{d: default,", "{d: default, x: other,", "the message 'R'", "x: other"),
    "a bit": ("bits: {1: transactional}", "bits: {1: transactional, 2: other}", "the message 'M'", "2: other"),
    "a kind of value": (KINDS, EXTERNAL + KINDS, "the part TupleData", "name: external"),
    "a condition": (PREFIX, f"{PREFIX} when: parallel,", "the message 'M'", "when: parallel"),
    "what has ended": (PREFIX, f"{PREFIX} until: 3,", "the message 'M'", "name: content_length"),
    "an option": (SWITCH, "  - {name: odd, type: switch, server: 14}\n" + SWITCH, "an option", "name: odd"),
}
"""The change, the text of the error, and the content of its line."""
VERSION_5 = "aborts that let streams be applied in parallel}\n  - {version: 5, server: 20, brings: more}\n"


def changed(folder: Path, old: str, new: str) -> Path:
    """Return a copy of the specifications with a version 5 and a change."""
    shutil.copytree(SPEC, folder / "spec")
    path = folder / "spec" / "pgoutput.yaml"
    text = path.read_text("utf-8").replace("aborts that let streams be applied in parallel}\n", VERSION_5)
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    return folder / "spec"


@pytest.mark.slow
@pytest.mark.parametrize("case", CHANGES)
def test_a_change_of_a_released_version_is_refused(case: str, tmp_path: Path) -> None:
    """Without a word of the version it would count for the versions that servers speak today, too."""
    old, new, what, place = CHANGES[case]
    folder = changed(tmp_path, old, new)
    with pytest.raises(
        SpecError, match=r"pgoutput\.yaml:\d+: this changes what .* Write since: 5 .*until: 4 "
    ) as caught:
        render(folder)
    line = int(str(caught.value).split(":")[1])
    lines = (folder / "pgoutput.yaml").read_text("utf-8").splitlines()
    assert what in str(caught.value)
    assert place in lines[line - 1]


def test_what_says_since_when_is_accepted(tmp_path: Path) -> None:
    """A later version may change everything, and a name may change in all of them."""
    folder = changed(tmp_path, XID, XID + "          - {field: Int8, name: more, since: 5}\n")
    path = folder / "pgoutput.yaml"
    renamed = path.read_text("utf-8").replace(
        "name: replica_identity", "name: identity_setting, formerly: replica_identity"
    )
    path.write_text(renamed.replace("{d: default,", "{d: default, x: {meaning: other, since: 5},"), "utf-8")
    check_released(load(path), folder)


def test_the_file_is_of_today() -> None:
    """It has what the specification has of the released versions."""
    known = json.loads((SPEC / "released.json").read_text("utf-8"))
    spec = load(SPEC / "pgoutput.yaml")
    for version, rows in known.items():
        assert {key: [text for text, _ in entries] for key, entries in layouts(spec, int(version)).items()} == rows
