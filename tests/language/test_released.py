"""Released versions of the protocol do not change: additions name their first version."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pgoutput_construct import SpecError
from tools.generate.outputs import PAGES, render
from tools.language import SPEC, load
from tools.language.breakage import Level, breaks, check_released
from tools.language.released import layouts
from tools.language.released_command import main

XID = "          - {field: Int32 (TransactionId), name: xid, role: xid, description: Transaction ID.}\n"
KINDS = "              - field: Byte1('t')\n                name: text\n"
PREFIX = "{field: String, name: prefix,"
ODD = "  - {name: Odd, in: [idle], blocks: [{type: header, fields: [{field: Byte1('x'), name: tag}]}]}\n\n"
EXTERNAL = "              - {field: Byte1('e'), name: external, python: EXTERNAL}\n"
SWITCH = "  - {name: two_phase, type: switch,"
FIRST = ", values: {0: later segment, 1: first segment}"
LSN = "name: commit_lsn, role: lsn, documented: the LSN of the commit, description: LSN at"
CHANGES = {
    "a message": ("  - name: Commit\n", ODD + "  - name: Commit\n", "write", "Odd is new", "name: Odd"),
    "a field": (
        XID,
        XID + "          - {field: Int8, name: more}\n",
        "read write source",
        "Begin.more (Int8) is new",
        "name: more",
    ),
    "a type": (
        XID,
        XID.replace("Int32 (TransactionId)", "Int64"),
        "read write",
        "Begin.xid (Int64) was Int32 (TransactionId)",
        "field: Int64, name: xid",
    ),
    "a sign": (
        "name: type_modifier, signed: true",
        "name: type_modifier",
        "read write",
        "Relation.columns[].type_modifier (Int32) was Int32 signed",
        "name: type_modifier",
    ),
    "a letter": (
        "{d: default,",
        "{d: default, x: other,",
        "write",
        "Relation.replica_identity (Int8) has the value x in addition",
        "x: other",
    ),
    "any value": (FIRST, "", "write source", "Stream Start.first_segment (Int8) may have any value", "name: first_seg"),
    "fewer values": (
        FIRST,
        ", values: {1: first segment}",
        "read source",
        "Stream Start.first_segment (Int8) lacks the value 0",
        "name: first_segment",
    ),
    "values": (
        "{field: Int32, name: type_modifier, signed: true,",
        "{field: Int32, name: type_modifier, signed: true, values: {1: one},",
        "read",
        "Relation.columns[].type_modifier (Int32 signed) may no longer have any value",
        "name: type_modifier",
    ),
    "a bit": (
        "bits: {1: transactional}",
        "bits: {1: transactional, 2: other}",
        "write",
        "Message.flags (Int8) has the bit 2 in addition",
        "2: other",
    ),
    "a kind of value": (
        KINDS,
        EXTERNAL + KINDS,
        "write",
        "TupleData.columns[].value=external (Byte1('e')) is new",
        "name: external",
    ),
    "a choice that may not be absent": (
        "        name: old\n        optional: true\n",
        "        name: old\n",
        "read source",
        "Update.old (one of these) may no longer be absent",
        "type: choice_1",
    ),
    "a condition": (
        PREFIX,
        f"{PREFIX} when: parallel,",
        "read write source",
        "Message.prefix (String) is present if parallel, not always present,",
        "when: parallel",
    ),
    "what has ended": (PREFIX, f"{PREFIX} until: 3,", "read write", "Message.prefix (String) is missing", "until: 3"),
    "a later message": (
        "    since: 2\n    in: [idle]\n    group: end\n    effect: commit_streamed",
        "    since: 5\n    in: [idle]\n    group: end\n    effect: commit_streamed",
        "read",
        "Stream Commit is missing",
        "name: Stream Commit",
    ),
    "an option": (
        SWITCH,
        "  - {name: odd, type: switch, server: 14}\n" + SWITCH,
        "write",
        "the option odd is new",
        "name: odd",
    ),
    "no option": (
        SWITCH,
        SWITCH.replace("two_phase", "phases"),
        "read write source",
        "the option two_phase is missing",
        "name: proto_version",
    ),
    "a field's name": (LSN, LSN.replace("commit_lsn", "at_lsn"), "source", "Commit has no commit_lsn", "name: Commit"),
    "a name with its former one": (
        'namespace, documented: namespace, description: "Schema of the table',
        'schema, formerly: namespace, documented: namespace, description: "Schema of the table',
        "",
        "",
        "",
    ),
    "an argument's position": (
        "{field: String, name: prefix, ",
        "{field: String, name: prefix, when: parallel, ",
        "read write source",
        "Message does not take its arguments by position as before: xid, flags, lsn, prefix, content",
        "name: Message",
    ),
}
"""The change, the levels that it breaks, the text of an error, and the content of its line."""
VERSION_5 = "aborts that let streams be applied in parallel}\n  - {version: 5, server: 20, brings: more}\n"


def changed(folder: Path, old: str, new: str) -> Path:
    """Return a copy of the specifications with a version 5 and a change."""
    shutil.copytree(SPEC, folder / "spec")
    path = folder / "spec" / "pgoutput.yaml"
    text = path.read_text("utf-8").replace("aborts that let streams be applied in parallel}\n", VERSION_5)
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    return folder / "spec"


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_breaks_levels(case: str, tmp_path: Path) -> None:
    """Each change is reported with the levels that it breaks, the element, and its line."""
    old, new, levels, what, content = CHANGES[case]
    folder = changed(tmp_path, old, new)
    path = folder / "pgoutput.yaml"
    found = breaks(load(path), folder)
    assert {str(level).removeprefix("wire-") for each in found for level in each.levels} == {*levels.split()}
    lines = path.read_text("utf-8").splitlines()
    assert not what or [content in lines[each.line - 1] for each in found if what in each.problem] == [True]
    for level in Level:
        assert breaks(load(path), folder, [level]) == [each for each in found if level in each.levels]


@pytest.mark.parametrize("case", ["a field", "a kind of value", "what has ended"])
def test_a_change_of_a_released_version_is_refused(case: str, tmp_path: Path) -> None:
    """Without a word of the version it would count for the versions that servers speak today, too."""
    old, new, _, what, _ = CHANGES[case]
    folder = changed(tmp_path, old, new)
    remedy = r"Write it again, with until: 4\.$" if case == "what has ended" else r"Write since: 5 at it\.$"
    with pytest.raises(SpecError, match=r"^pgoutput\.yaml:\d+: .*which (is|are) released .*: this breaks") as caught:
        check_released(load(folder / "pgoutput.yaml"), folder)
    [error] = str(caught.value).splitlines()
    assert what in error and re.search(remedy, error)


@pytest.mark.slow
def test_nothing_is_generated_from_a_change_of_a_released_version(tmp_path: Path) -> None:
    """The generator refuses what breaks the wire; renaming is not its concern."""
    with pytest.raises(SpecError, match="this breaks wire-read and wire-write"):
        render(changed(tmp_path / "one", *CHANGES["a type"][:2]))
    assert render(changed(tmp_path / "two", *CHANGES["a field's name"][:2]))


def test_a_specification_without_options(tmp_path: Path) -> None:
    """Each released option is missing."""
    folder = changed(tmp_path, XID, XID)
    path = folder / "pgoutput.yaml"
    spec = replace(load(path), options=())
    options = json.loads((SPEC / "released.json").read_text("utf-8"))["4"]["options"]
    found = [each for each in breaks(spec, folder, [Level.READ]) if each.problem.startswith("the option ")]
    missing = [each.problem.partition(" is missing")[0].removeprefix("the option ") for each in found]
    assert sorted(missing) == sorted(options)
    assert {each.line for each in found} == {1}


def test_without_a_new_version_the_remedy_begins_with_it(tmp_path: Path) -> None:
    """What is new cannot have the last released version."""
    folder = changed(tmp_path, *CHANGES["a type"][:2])
    path = folder / "pgoutput.yaml"
    path.write_text(path.read_text("utf-8").replace("  - {version: 5, server: 20, brings: more}\n", ""), "utf-8")
    [found] = breaks(load(path), folder)
    assert found.remedy.endswith("the new one with since: 5. First add version 5 to versions.")


def test_what_says_since_when_is_accepted(tmp_path: Path) -> None:
    """A later version may change everything, and a name may change in all of them."""
    folder = changed(tmp_path, XID, XID + "          - {field: Int8, name: more, since: 5}\n")
    path = folder / "pgoutput.yaml"
    renamed = path.read_text("utf-8").replace(
        "name: replica_identity", "name: identity_setting, formerly: replica_identity"
    )
    path.write_text(renamed.replace("{d: default,", "{d: default, x: {meaning: other, since: 5},"), "utf-8")
    check_released(load(path), folder)


def test_renamed_messages_of_the_wire_break_nothing(tmp_path: Path) -> None:
    """Their classes, and the enums of their fields, have the former names, too."""
    folder = changed(tmp_path, XID, XID)
    path = folder / "protocol.yaml"
    path.write_text(path.read_text("utf-8").replace("name: ReadyForQuery", "name: Ready"), "utf-8")
    assert breaks(load(path), folder) == []


def test_the_file_is_of_today() -> None:
    """It has what the specification has of the released versions, and the names of all specifications."""
    known = json.loads((SPEC / "released.json").read_text("utf-8"))
    spec = load(SPEC / "pgoutput.yaml")
    for version, rows in known.items():
        assert {key: [entry.text for entry in entries] for key, entries in layouts(spec, int(version)).items()} == rows
    assert [breaks(load(SPEC / name), SPEC) for name in PAGES] == [[], [], []]


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["--check"], 0, "nothing breaks wire-read, wire-write, source"),
        (["--check", "source"], 0, "nothing breaks source"),
        (["--diff", "3", "3"], 0, "nothing differs between protocol versions 3 and 3"),
        (["--diff", "3", "9"], 2, "unknown protocol version 9: pgoutput.yaml has 1, 2, 3, 4"),
    ],
)
def test_command(arguments: list[str], status: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints what was requested, or what is wrong with the request."""
    assert main(arguments) == status
    assert capsys.readouterr() == ((f"{says}\n", "") if status == 0 else ("", f"{says}\n"))


def test_the_command_prints_differences(capsys: pytest.CaptureFixture[str]) -> None:
    """Backwards, what came goes."""
    texts = []
    for versions in (["3", "4"], ["4", "3"]):
        assert main(["--diff", *versions]) == 0
        texts.append(capsys.readouterr().out)
    assert re.sub(r"yaml:\d+", "yaml", texts[0]).splitlines() == [
        "+ field Stream Abort.abort_lsn: Int64 (XLogRecPtr) if parallel (pgoutput.yaml)",
        "+ field Stream Abort.abort_time: Int64 (TimestampTz) if parallel (pgoutput.yaml)",
        "+ value streaming = parallel (pgoutput.yaml)",
    ]
    assert texts[1] == texts[0].replace("+ ", "- ")


def test_the_command_checks_a_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A chosen level is checked alone; all are by default."""
    folder = changed(tmp_path, *CHANGES["a letter"][:2])
    given = ["--spec", str(folder)]
    assert [main(["--check", *level, *given]) for level in (["wire-read"], ["wire-write"], [])] == [0, 1, 1]
    error = r"pgoutput\.yaml:\d+: Relation\.replica_identity .*: this breaks wire-write\. Write x: \{.*since: 5\}\."
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all(re.fullmatch(error, line) for line in lines)


def test_the_command_prints_the_files(capsys: pytest.CaptureFixture[str]) -> None:
    """With a version and with --names it prints what was released, if nothing has been added."""
    for arguments, name in ((["4"], "released.json"), (["--names"], "released-names.json")):
        assert main(arguments) == 0
        assert json.loads(capsys.readouterr().out) == json.loads((SPEC / name).read_text("utf-8"))


def test_versions_that_are_not_released_are_not_frozen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither those after the given one, nor parts that only their messages have."""
    later = "parts:\n  - {name: Later, blocks: [{type: header, fields: [{field: Int8, name: later}]}]}\n"
    folder = changed(tmp_path, XID, XID + "          - {field: Later, name: later, since: 5}\n")
    path = folder / "pgoutput.yaml"
    path.write_text(path.read_text("utf-8").replace("parts:\n", later, 1), "utf-8")
    spec = load(path)
    assert ["part Later" in layouts(spec, version) for version in (1, 4, 5)] == [False, False, True]
    known = json.loads((SPEC / "released.json").read_text("utf-8"))
    for newest in (3, 4):
        assert main([str(newest)]) == 0
        wanted = {version: rows for version, rows in known.items() if int(version) <= newest}
        assert json.loads(capsys.readouterr().out) == wanted
