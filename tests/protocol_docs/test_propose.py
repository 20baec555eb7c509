"""propose: a made-up PostgreSQL 20 is added by filling in names, and nothing else is written by hand."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.growth.project import Project
from tests.protocol_docs.pages import PAGES, page, run, spec_until
from tools.generate.outputs import OUTPUTS
from tools.language import SPEC, Field, load, load_text
from tools.language.errors import SpecError
from tools.protocol_docs.cells import Cell
from tools.protocol_docs.drafts import Drafter

pytestmark = pytest.mark.slow

RECORDINGS = PAGES.parent / "recordings"

FILLED = {
    "version_5_brings": "notices of checkpoints",
    "Commit_1_6_name": "flushed_lsn",
    "Checkpoint_Notice_state": "idle",
    "Checkpoint_Notice_1_2_name": "flags",
    "Checkpoint_Notice_1_3_name": "redo_lsn",
    "Checkpoint_Notice_1_4_name": "finish_time",
    "Checkpoint_Notice_1_5_name": "xid",
    "Checkpoint_Notice_1_6_name": "reason",
    "Checkpoint_Notice_1_7_name": "details_length",
    "Checkpoint_Notice_1_8_name": "details",
    "Checkpoint_Notice_1_9_name": "slots",
    "TupleData_2_7_name": "compressed",
    "TupleData_2_7_python": "Compressed",
    "TupleData_2_8_name": "length",
    "TupleData_2_9_name": "data",
    "SlotList_1_1_name": "slot_count",
    "SlotList_repeat_1_name": "slots",
    "SlotList_repeat_1_Class": "HeldSlot",
    "SlotList_2_1_name": "name",
    "SlotList_2_2_name": "confirmed_lsn",
    "option_compress_type": "switch",
}
"""What a maintainer writes for each mark; descriptions are the same for all."""


def fill(proposal: str) -> str:
    """Return a proposal with its marks filled in."""
    both = re.sub(r"(?m)^( +- )(FILL_IN_\w+_state)$", r"\1\2\n\1stream", proposal)
    filled = re.sub(r"FILL_IN_\w+_description", "Made up.", both)
    return re.sub(r"FILL_IN_(\w+)", lambda match: FILLED[match[1]], filled)


def merge(spec: dict[str, Any], proposal: dict[str, Any]) -> dict[str, Any]:
    """Return a specification with a proposal in it: what it has by name is replaced, the rest appended."""
    for key, rows in proposal.items():
        known = [row.get("name", row.get("version")) for row in spec[key]]
        for row in rows:
            name = row.get("name", row.get("version"))
            at = known.index(name) if name in known else len(spec[key])
            spec[key][at : at + 1] = [row]
    return spec


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Return a folder with the specifications as they are until PostgreSQL 19."""
    return spec_until(19, tmp_path / "spec")


def proposed(capsys: pytest.CaptureFixture[str], spec: Path, path: Path = PAGES / "messages-20.sgml") -> str:
    """Return what propose prints for a page of PostgreSQL 20."""
    status, out, err = run(capsys, "propose", path, "--pg", 20, "--spec", spec)
    assert (status, err) == (0, "")
    return out


@pytest.fixture
def proposal(capsys: pytest.CaptureFixture[str], spec: Path) -> str:
    """Return what propose prints for the made-up PostgreSQL 20."""
    return proposed(capsys, spec)


def merged(proposal: str, spec: Path) -> str:
    """Return the specification with the proposal in it, as YAML."""
    data = yaml.safe_load((spec / "pgoutput.yaml").read_text("utf-8"))
    return yaml.safe_dump(merge(data, yaml.safe_load(proposal)), sort_keys=False)


def test_every_mark_is_explained(proposal: str) -> None:
    """The comments explain each mark, and quote the document."""
    body = yaml.safe_load(proposal)
    marks = set(re.findall(r"FILL_IN_\w+", yaml.safe_dump(body)))
    explained = set(re.findall(r"^# (FILL_IN_\w+): .", proposal, re.M))
    assert marks == explained
    assert (
        "# FILL_IN_Checkpoint_Notice_1_3_name: Int64 (XLogRecPtr): The redo LSN of the checkpoint. Perhaps redo_lsn"
        in (proposal.splitlines())
    )


def test_known_lines_are_kept(proposal: str, spec: Path) -> None:
    """A known message is printed whole, and only its new lines differ."""
    (commit,) = [row for row in yaml.safe_load(proposal)["messages"] if row["name"] == "Commit"]
    known = yaml.safe_load((spec / "pgoutput.yaml").read_text("utf-8"))
    (before,) = [row for row in known["messages"] if row["name"] == "Commit"]
    new = commit["blocks"][0]["fields"].pop()
    assert commit == before
    assert (new["field"], new["since"], new["server"]) == ("Int64 (XLogRecPtr)", 5, 20)


def test_unfilled_proposal_is_refused(proposal: str, spec: Path) -> None:
    """A mark that was overlooked cannot become a name."""
    with pytest.raises(SpecError) as caught:
        load_text(merged(proposal, spec))
    assert all(mark in str(caught.value) for mark in re.findall(r"^# (FILL_IN_\w+): .", proposal, re.M))


def test_filled_proposal_agrees_with_the_document(
    proposal: str, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the proposal in, check is quiet, nothing more is proposed, and older documents still agree."""
    (spec / "pgoutput.yaml").write_text(merged(fill(proposal), spec), "utf-8")
    for name, pg in (("messages-20.sgml", 20), ("messages-18.sgml", 18), ("messages-10.sgml", 10)):
        status, out, _ = run(capsys, "check", PAGES / name, "--spec", spec, "--pg", pg)
        assert status == 0, out
    assert proposed(capsys, spec) == "# Nothing to add.\n"


def changed(tmp_path: Path, *replacements: tuple[str, str]) -> Path:
    """Return a file with the page of PostgreSQL 20, in which each text is replaced where it comes first."""
    text = page("messages-20.sgml")
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "changed.sgml").write_text(text, "utf-8")
    return tmp_path / "changed.sgml"


def test_what_cannot_be_added_is_left_to_the_maintainer(
    tmp_path: Path, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Changes that are no additions are in the comments."""
    out = proposed(capsys, spec, changed(tmp_path, ("<term>String</term>", "<term>Int32</term>")))
    assert "# By hand: spec/pgoutput.yaml:" in out and "type: the document says Int32" in out


def test_what_a_message_implies_is_not_repeated(tmp_path: Path, spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A field has a version only if it is later than that of its message or alternative; check agrees."""
    since = " This field is available since protocol version {}."
    streamed = "(only present for streamed transactions)."
    at = page("messages-20.sgml").rindex(f"Xid of the transaction {streamed}")
    text = page("messages-20.sgml")[at:]
    path = changed(
        tmp_path,
        (text, text.replace(streamed, streamed + since.format(2), 1)),
        ("Length of the compressed value.", "Length of the compressed value." + since.format(5)),
    )
    out = proposed(capsys, spec, path)
    data = yaml.safe_load(out)
    (notice,) = [row for row in data["messages"] if row["name"] == "Checkpoint Notice"]
    assert notice["since"] == 5 and not any("since" in row for row in notice["blocks"][0]["fields"])
    *_, compressed = data["parts"][0]["blocks"][1]["blocks"][0]["alternatives"]
    assert (compressed["since"], compressed["server"]) == (5, 20)
    assert not any({"since", "server"} & row.keys() for row in compressed["then"])
    (spec / "pgoutput.yaml").write_text(merged(fill(out), spec), "utf-8")
    status, report, _ = run(capsys, "check", path, "--spec", spec, "--pg", 20)
    assert status == 0, report


def test_a_number_with_a_sign(tmp_path: Path, spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the description states that a number can be negative, the proposal has a signed one."""
    path = changed(tmp_path, ("Length of the details.", "Size of the details, or -1."))
    signed = {
        row["name"]
        for message in yaml.safe_load(proposed(capsys, spec, path))["messages"]
        for block in message["blocks"]
        for row in block.get("fields", ())
        if row.get("signed")
    }
    assert signed == {"FILL_IN_Checkpoint_Notice_1_7_name"}


def test_a_new_option(tmp_path: Path, spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An option of a newer page is proposed with its type to be said; filled in, the specification has it."""
    entry = "<varlistentry><term>{}</term><listitem><para>{}</para></listitem></varlistentry>"
    known = entry.format("origin", "Whose changes.")
    text = page("options-17.sgml")
    assert known in text
    path = tmp_path / "options.sgml"
    path.write_text(text.replace(known, known + entry.format("compress", "Whether rows are compressed.")), "utf-8")
    out = proposed(capsys, spec, path)
    assert "# FILL_IN_option_compress_description: Whether rows are compressed." in out.splitlines()
    *_, option = load_text(merged(fill(out), spec)).options
    assert (option.name, option.type, option.server) == ("compress", "switch", 20)


def test_new_repeat_in_a_known_message(tmp_path: Path, spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Repeated fields after the fields of a known message become a block of their own."""
    text = page("messages-20.sgml")
    field = "<varlistentry><term>{}</term><listitem><para>{}</para></listitem></varlistentry>"
    at = text.index("      </variablelist>", text.index("<term>Type</term>"))
    repeat = "</variablelist><para>Next, the following message part appears for each label:</para><variablelist>"
    added = field.format("Int16", "Number of labels.") + repeat + field.format("String", "A label.")
    (tmp_path / "changed.sgml").write_text(text[:at] + added + text[at:])
    data = yaml.safe_load(proposed(capsys, spec, tmp_path / "changed.sgml"))
    (message,) = [row for row in data["messages"] if row["name"] == "Type"]
    header, repeated = message["blocks"]
    assert repeated["type"] == "repeat_1" and repeated["count"] == header["fields"][-1]["name"]
    assert [row["field"] for row in repeated["blocks"][0]["fields"]] == ["String"]


@pytest.fixture
def copied(tmp_path: Path) -> Project:
    """Return a copy of the project, as the specifications until PostgreSQL 19 give it."""
    project = Project(tmp_path / "copy")
    project.generate()
    return project


@pytest.mark.long
def test_version_5_is_a_yaml_edit(proposal: str, copied: Project) -> None:
    """The specification alone is edited, and every generated output follows: version 5 works, 1 to 4 as before."""
    before = {path: path.read_bytes() for path in (copied.folder / "pgoutput_construct").rglob("*.py")}
    (copied.spec / "pgoutput.yaml").write_text(merged(fill(proposal), copied.spec), "utf-8")
    copied.generate()
    generated = {copied.folder / output.path: output for output in OUTPUTS}
    for path, content in before.items():
        same = path.read_bytes() == content
        assert same == (path not in generated or generated[path].spec != "pgoutput.yaml"), path
    for path, output in generated.items():
        if output.spec == "pgoutput.yaml":
            assert "checkpoint" in path.read_text("utf-8").casefold(), path
    done = copied.run(Path(__file__).with_name("version_5.py"), RECORDINGS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(copied.folder)) and int(done.stdout.split()[-2]) > 10_000


def test_the_specification_has_every_server() -> None:
    """Whatever came after PostgreSQL 10 says when, so that one specification is held against 10 to 19."""
    spec = load(SPEC / "pgoutput.yaml")
    assert all(named.server for named in spec.named)
    old = [structure for named in spec.named if named.server == 10 for structure in named.inside()]
    fields = [element for structure in old for element in structure.elements if isinstance(element, Field)]
    assert all(spec.came_with(field.server, field.since) for field in fields if field.conditional)


def test_a_condition_that_is_known_in_part_is_asked_for() -> None:
    """What is known of it alone would be another condition: a mark stands in the YAML, and names all of it."""
    drafter = Drafter(load(SPEC / "pgoutput.yaml"), 20)
    one = Cell("1_2", "Int32", "TransactionId", conditions=frozenset({"in_stream"}))
    more = replace(one, conditions=frozenset({"in_stream", "option xid8 is off"}))
    assert [field["when"] for field in drafter.fields("Insert", [one, more])] == [
        "in_stream",
        "FILL_IN_Insert_1_2_when",
    ]
    assert "in_stream; option xid8 is off" in drafter.marks["FILL_IN_Insert_1_2_when"]
