"""Public names: a specification of pgoutput keeps them, and a missing one is an error."""

import re

import pytest

from pgoutput_construct import SpecError
from tests.language.sound import SOUND
from tools.language import SPEC, load_text
from tools.language.wire_names import in_role, renamed

PGOUTPUT = (SPEC / "pgoutput.yaml").read_text("utf-8")
CHANGES = {
    "a bit": ("bits: {1: key}", "bits: {1: identity key}", "Relation.columns.flags is called 'key'"),
    "a value": ("f: full", "f: whole", "Relation.replica_identity is called 'full'"),
    "a branch": ("{field: Byte1('K'), name: key,", "{field: Byte1('K'), name: identity,", "Update.old is called 'key'"),
    "a repeat": ("        name: columns\n", "        name: attributes\n", "Relation has no columns"),
    "a choice": ("        name: old\n", "        name: former_row\n", "the change Update"),
    "a field": ("name: replica_identity", "name: identity", "Relation has no replica_identity"),
    "a field of an item": (
        "name: type_oid, documented",
        "name: typid, documented",
        "Relation.columns has no type_oid",
    ),
    "a message": ("  - name: Stream Stop\n", "  - name: Segment End\n", "there is no Stream Stop"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_name_that_programs_use_is_kept(case: str) -> None:
    """Without the name they would fail, as would the package itself; the line and the remedy are said."""
    old, new, problem = CHANGES[case]
    assert old in PGOUTPUT
    with pytest.raises(SpecError, match=rf"pgoutput\.yaml:\d+: .*{re.escape(problem)}.*(Call it|Name its) "):
        load_text(PGOUTPUT.replace(old, new, 1), "pgoutput.yaml")


def test_former_names_are_kept() -> None:
    """A field may be renamed, and what is new may be called anything; other protocols have names of their own."""
    renamed = PGOUTPUT.replace("name: replica_identity", "name: identity, formerly: replica_identity")
    load_text(renamed.replace("bits: {1: key}", "bits: {1: key, 2: generated}"), "pgoutput.yaml")
    load_text(SOUND, "demo.yaml")


def test_messages_of_the_envelope_and_the_connection_may_be_renamed() -> None:
    """They are found by their bytes; what is there no more, or twice, is refused."""
    text = (SPEC / "replication.yaml").read_text("utf-8")
    later = text.replace("name: XLogData", "name: WALData").replace("message: XLogData", "message: WALData")
    assert renamed(load_text(later, "replication.yaml")) == {"XLogData": "WALData"}
    with pytest.raises(
        SpecError, match="about 'XLogData', which is neither a message nor a part: did you mean 'WALData'"
    ):
        load_text(text.replace("name: XLogData", "name: WALData"), "replication.yaml")
    with pytest.raises(SpecError, match=r"there is no XLogData any more, a message of the server with the tag b'w'"):
        load_text(later.replace("Byte1('w')", "Byte1('W')"), "replication.yaml")
    newest = text.replace("name: Primary Status Update", "name: Primary State")
    assert renamed(load_text(newest, "replication.yaml")) == {"PrimaryStatusUpdate": "PrimaryState"}
    connection = (SPEC / "protocol.yaml").read_text("utf-8").replace("name: CopyData", "name: Copy Chunk")
    spec = load_text(connection, "protocol.yaml")
    assert in_role(spec, "CopyData").name == "Copy Chunk"
    with pytest.raises(SpecError, match="no message for the class XLogData"):
        in_role(spec, "XLogData")


@pytest.mark.parametrize("protocol", ["connection", "replication", "pgoutput"])
def test_another_protocol_may_be_called_like_one_of_postgresql(protocol: str) -> None:
    """It need not have the messages that programs use of PostgreSQL's."""
    spec = load_text(SOUND.replace("protocol: demo", f"protocol: {protocol}", 1), "demo.yaml")
    assert spec.protocol == protocol and renamed(spec) == {}
