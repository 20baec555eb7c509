"""check: quiet on documents that agree, and one line for each kind of change."""

import re
from pathlib import Path

import pytest

from tests.language.test_nesting import SOUND as NESTED
from tests.protocol_docs.pages import PAGES, document, page, report, run
from tools.language import SPEC, load, load_text
from tools.protocol_docs.cells import specified_cells
from tools.protocol_docs.check import check
from tools.protocol_docs.document import DocumentError
from tools.protocol_docs.options import flow

AGREEING = {
    "messages-18.html": 18,
    "messages-18.sgml": 18,
    "messages-14.txt": 14,
    "messages-13.sgml": 13,
    "messages-10.sgml": 10,
    "envelope-17.sgml": 17,
    "options-17.sgml": 17,
}


@pytest.mark.parametrize("name", AGREEING)
def test_agreeing_document(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """No difference is exit status 0 and one line of summary."""
    status, out, err = run(capsys, "check", PAGES / name, "--pg", AGREEING[name])
    assert (status, err) == (0, "")
    assert [line for line in out.splitlines() if not line.startswith("known: ")] == out.splitlines()[-1:]


NESTED_VERSIONS = """\
protocol: demo
title: Demo
source: demo
versions: [{version: 1, server: 10}, {version: 2, server: 10}, {version: 3, server: 10}, {version: 4, server: 10}]
parameters: {proto_version: {type: int}}
messages:
  - name: First
    server: 10
    blocks:
      - type: header
        fields:
          - {field: Byte1('F'), name: tag}
          - {field: Inner, name: early, until: 2}
          - {field: Inner, name: late, since: 3}
          - {field: Inner, name: always}
parts:
  - name: Inner
    blocks: [{type: header, fields: [{field: Int8, name: one, since: 2}, {field: Int8, name: other, until: 3}]}]
"""


def test_versions_of_what_is_in_a_part() -> None:
    """A field is present from the latest since on, up to the earliest until, of itself and what it is in."""
    spec = load_text(NESTED_VERSIONS)
    cells = specified_cells(spec.messages[0], spec, 10, flat=False, named=frozenset())
    assert [(cell.at, cell.since, cell.until) for cell in cells[1:]] == [
        ("early.one", 2, 2),
        ("early.other", None, 2),
        ("late.one", 3, None),
        ("late.other", 3, 3),
        ("always.one", 2, None),
        ("always.other", None, 3),
    ]


FIELD = "<varlistentry>\n        <term>{}</term>\n        <listitem>\n         <para>\n          {}\n"
END = "         </para>\n        </listitem>\n       </varlistentry>\n"


def field(notation: str, description: str) -> str:
    """Return a field as the pages have it."""
    return f"       {FIELD.format(notation, description)}{END}"


END_LSN = field("Int64 (XLogRecPtr)", "Here stands the end lsn, as we call it.")
COMMIT_TIME = field("Int64 (TimestampTz)", "Here stands the commit timestamp, as we call it.")
XID = field("Int32 (TransactionId)", "Here stands the xid.")
NEW = field("Int8", "Something new.")
SLOTS = field("Byte1('q')", "Something new.")
STREAMED = " (only present for streamed transactions). This field is available since protocol version 2."

CHANGES = {
    "a new field": (
        END_LSN + COMMIT_TIME,
        END_LSN + NEW + COMMIT_TIME,
        "Commit, 1_5_Int8: extra field: the document has",
    ),
    "a removed field": (END_LSN + COMMIT_TIME, END_LSN, "Commit, commit_time: missing field: the specification has"),
    "a moved field": (
        END_LSN + COMMIT_TIME,
        COMMIT_TIME + END_LSN,
        "Commit, commit_time: moved field: the document has Int64 (TimestampTz) at 1_4",
    ),
    "two fields of one type that changed places": (
        "the lsn of the commit, as we call it.",
        "the end lsn, as we call it.",
        "Commit, commit_lsn: meaning: the document says 'here stands the end lsn",
    ),
    "a changed type": (
        "<term>Int64 (TimestampTz)</term>",
        "<term>Int32 (TimestampTz)</term>",
        "Begin, commit_time: type: the document says Int32 (TimestampTz) at 1_3",
    ),
    "a changed annotation": (
        "<term>Int32 (TransactionId)</term>",
        "<term>Int32 (Oid)</term>",
        "Begin, xid: annotation: the document says Int32 (Oid)",
    ),
    "a removed annotation": (
        "<term>Int32 (TransactionId)</term>",
        "<term>Int32</term>",
        "Begin, xid: annotation: the document says Int32 at",
    ),
    "a changed literal": ("Byte1('N')", "Byte1('V')", "Insert, new_tag: literal: the document says Byte1('V')"),
    "a changed constant": ("Int8(0)", "Int8(1)", "Commit, flags: literal: the document says Int8(1)"),
    "a changed tag": ("Byte1('B')", "Byte1('X')", "Begin, tag: literal: the document says Byte1('X')"),
    "a changed name": ("<term>Begin</term>", "<term>Start</term>", "Begin: name: the document says Start"),
    "a removed condition": (STREAMED, ".", "Message, xid: condition: the document says always"),
    "a changed version": (
        "since protocol version 2.\n",
        "since protocol version 3.\n",
        "Message, xid: version: the document says since protocol version 3",
    ),
    "a new condition": (
        "Here stands the final lsn, as we call it.",
        "Here stands the final lsn, present only when the moon is full.",
        "Begin, final_lsn: condition: the document says present only when the moon is full",
    ),
    "another condition": (
        "present only when streaming is set to parallel",
        "present only when streaming is set to serial",
        "Stream Abort, abort_lsn: condition: the document says present only when streaming is set to serial",
    ),
    "a choice that has become optional": (
        "one of them always",
        "or neither of them",
        "Delete: choice: the document says that one of K, O or none may come",
    ),
    "a repeat that has become one": (
        " This field is repeated for each relation.",
        "",
        "Truncate, relation_oids.relation_oid: repeat: the document says once",
    ),
    "a group of another version": (
        "available since protocol version 3.",
        "available since protocol version 4.",
        "Begin Prepare: version: the document says since protocol version 4",
    ),
    "a new alternative": (
        "      Or\n",
        f"      Or\n      <variablelist>\n{SLOTS}      </variablelist>\n      Or\n",
        "TupleData, 2_2_Byte1('q'): alternative: the document has Byte1('q')",
    ),
    "a removed alternative": (
        field("Byte1('u')", "Here stands the unchanged."),
        "",
        "TupleData, columns.value.unchanged: missing field: the specification has Byte1('u')",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_change_is_caught(change: str) -> None:
    """The line has the specification's file and line, the field, and both statements."""
    old, new, expected = CHANGES[change]
    text = page("messages-18.sgml")
    assert old in text
    problems = report(text.replace(old, new, 1), 18).problems
    assert any(expected in line for line in problems), problems
    assert all(re.match(r"spec/pgoutput\.yaml:\d+: ", line) for line in problems)


def entry(text: str, name: str) -> str:
    """Return the whole entry of a message."""
    start = text.index(f'   <varlistentry id="protocol-logicalrep-message-formats-{name}">')
    return text[start : text.index("\n   </varlistentry>\n", start) + len("\n   </varlistentry>\n")]


def test_removed_message_is_caught() -> None:
    """A message that is missing from a complete document is a difference."""
    text = page("messages-18.sgml")
    (problem,) = report(text.replace(entry(text, "Origin"), ""), 18).problems[:1]
    assert "Origin: missing message: the specification has it from PostgreSQL 10 on" in problem


def test_new_message_is_caught() -> None:
    """A message that the specification does not have is a difference."""
    text = page("messages-18.sgml")
    commit = entry(text, "Commit")
    other = commit.replace("-Commit", "-Halt").replace(">Commit<", ">Halt<").replace("'C'", "'H'")
    assert report(text.replace(commit, commit + other), 18).problems == [
        "spec/pgoutput.yaml: Halt: extra message: the document has it (Byte1('H')), "
        "the specification for PostgreSQL 18 does not"
    ]


TWO_LATER_VERSIONS = {
    "  - {version: 4, server: 16, brings: aborts that let streams be applied in parallel}\n": (
        "{}  - {{version: 5, server: 20}}\n  - {{version: 6, server: 21}}\n"
    ),
    "parts:\n": (
        "{}  - name: Rest\n    blocks: [{{type: header, fields: [{{field: Int32, name: rest}}]}}]\n"
        "  - name: Again\n    blocks: [{{type: header, fields: [{{field: Int32, name: again, since: 6}}]}}]\n"
    ),
    "          - {field: Int8, name: replica_identity, values: {d: default, n: nothing, f: full, i: index}, ": (
        "          - {{field: Int8, name: replica_identity, values: {{d: default, n: nothing, f: full, i: index, "
        "x: {{meaning: exact, since: 6}}}}, "
    ),
    "          - {field: Int32, name: relation_count, description: Number of tables that follow.}\n": (
        "          - {{field: Rest, name: rest, since: 6}}\n"
        "          - {{field: Int32, name: relation_count, until: 5}}\n"
        "          - {{field: Int64, name: relation_count, since: 6}}\n"
    ),
    "          - {field: Byte1('O'), name: row, then: TupleData, description: \"The whole old row, ": (
        "          - {{field: Byte1('P'), name: part, then: TupleData, since: 6}}\n{}"
    ),
    "  - name: origin\n": "  - {{name: later, type: switch, server: 21, since: 6}}\n{}",
}
"""Changes of a specification by versions that are released after PostgreSQL 19: what stands there now, and then."""


def test_later_versions_change_nothing_of_earlier_pages() -> None:
    """A page of PostgreSQL 18 knows nothing of what begins, or ends, with PostgreSQL 21, whatever it is part of."""
    text = (SPEC / "pgoutput.yaml").read_text("utf-8")
    for now, then in TWO_LATER_VERSIONS.items():
        assert now in text
        text = text.replace(now, then.format(now))
    spec = load_text(text, "pgoutput.yaml")
    for name, pg in (("messages-18.sgml", 18), ("messages-14.txt", 14), ("options-17.sgml", 17)):
        before = check(document(page(name), pg), [load(SPEC / "pgoutput.yaml")])
        assert check(document(page(name), pg), [spec]).problems == before.problems == [], name
    later = check(document(page("messages-18.sgml"), 21), [spec]).problems
    for words in (
        "Truncate, rest.rest: missing field",
        "Truncate, relation_count: version: the document says in every later protocol version at 1_3_Int32, "
        "the specification until protocol version 5",
        "Delete: choice: the document says that one of K, O may come, the specification one of K, P, O",
    ):
        assert any(words in line for line in later), (words, later)


def test_newer_than_the_document() -> None:
    """The specification of an older version lacks the additions, and the check reports them; exit status 1."""
    problems = report(page("messages-18.sgml"), 14).problems
    assert any("Begin Prepare: extra message" in line for line in problems)
    assert any("Stream Abort, 1_4_Int64 (XLogRecPtr): extra field" in line for line in problems)


ENVELOPE = {
    "a changed type": ("<term>Int32</term>", "<term>Int64</term>", "Hot Standby Feedback, xmin: type"),
    "another sender": ("Primary Keepalive (B)", "Primary Keepalive (F)", "Primary Keepalive: sender"),
    "a new name": ("XLogData (B)", "Data (B)", "XLogData: name: the document says Data"),
}


@pytest.mark.parametrize("change", ENVELOPE)
def test_change_of_the_envelope_is_caught(change: str) -> None:
    """The envelope's page is held against spec/replication.yaml in the same way."""
    old, new, expected = ENVELOPE[change]
    problems = report(page("envelope-17.sgml").replace(old, new, 1), 17).problems
    assert any(expected in line and line.startswith("spec/replication.yaml:") for line in problems), problems


STATUS = (
    "<varlistentry>\n<term>{}</term>\n<listitem>\n<variablelist>\n{}</variablelist>\n</listitem>\n</varlistentry>\n"
)


def test_the_envelope_of_19() -> None:
    """A client asks a primary for its status, and the primary answers; WAL data have another name."""
    numbers = [
        field("Int64", f"Here stands the {meaning}.")
        for meaning in (
            "latest WAL position of the primary",
            "oldest transaction that is committing on the primary",
            "next transaction ID to be assigned",
            "server's clock, in microseconds",
        )
    ]
    answer = STATUS.format("Primary status update (B)", field("Byte1('s')", "Here stands the tag.") + "".join(numbers))
    request = STATUS.format(
        "Request primary status update (F)", field("Byte1('p')", "Here stands the tag.") + numbers[-1]
    )
    text = page("envelope-17.sgml").replace("XLogData (B)", "WALData (B)")
    for told, before in ((answer, "Standby Status Update (F)"), (request, "Hot Standby Feedback message (F)")):
        entry = f"<varlistentry>\n<term>{before}"
        assert text.count(entry) == 1
        text = text.replace(entry, told + entry)
    assert report(text, 19).problems == []
    lacking = report(page("envelope-17.sgml"), 19).problems
    for name in ("Primary Status Update", "Primary Status Request"):
        assert any(f"{name}: missing message" in line for line in lacking), lacking


OPTIONS = {
    "a new option": ("<term>origin</term>", "<term>colour</term>", "colour: option: the document has it"),
    "a removed option": ("<term>origin</term>", "<term>colour</term>", "origin: option: the specification has it"),
    "a renamed proto_version": (
        "      proto_version\n",
        "      protocol\n",
        "proto_version: option: the specification has it",
    ),
    "a new version": ("and <literal>4</literal>", "<literal>4</literal> and 5", "the document has version 5"),
    "a version's server": ("server version 15", "server version 13", "gives version 3 to 13"),
    "a minimum version": (
        "version 3 is required",
        "version 2 is required",
        "two_phase: option: the document's minimum",
    ),
    "a new value": (
        "<literal>on</literal> and",
        "<literal>on</literal>, both and",
        "has the values off, on, both, parallel",
    ),
    "a pair": ("Begin and Commit", "Begin and Origin", "Begin: flow: the document says that Begin and Origin enclose"),
}


@pytest.mark.parametrize("change", OPTIONS)
def test_change_of_options_is_caught(change: str) -> None:
    """Versions, options, their values and minimum versions, and the flow of messages are compared."""
    old, new, expected = OPTIONS[change]
    problems = report(page("options-17.sgml").replace(old, new, 1), 17).problems
    assert any(expected in line for line in problems), problems


def test_a_message_that_returns_closes_what_another_opens() -> None:
    """A state that returns to the one before is opened and closed, too, whatever is around it."""
    spec = load_text(NESTED)
    text = page("options-17.sgml")
    for words, count in (("Block and Unblock", 0), ("Note and Unnote", 0), ("Block and Unnote", 1)):
        changed = document(text.replace("Begin and Commit", words, 1), 17)
        pairs = [each for each in flow(changed, spec) if each.message in words]
        assert len(pairs) == count, (words, pairs)


def test_deviations_are_reported_as_known() -> None:
    """What the specification records about a document comes with its reason, and is no problem."""
    known = report(page("messages-18.html")).known
    assert any("TupleData, columns.value.text.length: missing field" in line and "under 'b'" in line for line in known)


def test_unused_deviation_is_a_problem() -> None:
    """A record about a document that no longer deviates has to go."""
    text = page("messages-18.sgml").replace("there can be multiple Origin messages", "there can be one Origin message")
    (problem,) = report(text, 18).problems
    assert re.match(r"spec/pgoutput\.yaml:\d+: Origin: unused deviation", problem)


def test_deviation_of_some_documents_only() -> None:
    """The first pages of 16 lacked a condition, later ones have it: known in one, silent in the other."""
    later = page("messages-18.sgml").replace("\n  <para>", "\n  <para>")
    early = later.replace(", present only when streaming is set to parallel", "")
    assert not report(later, 16).problems
    assert sum("Stream Abort, abort_" in line for line in report(early, 16).known) == 2
    assert len(report(early, 17).problems) == 2


@pytest.mark.slow
def test_version_is_guessed_or_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """HTML has its version; SGML does not, and needs --pg."""
    assert run(capsys, "check", PAGES / "messages-18.html")[0] == 0
    status, _, err = run(capsys, "check", PAGES / "messages-18.sgml")
    assert status == 2 and "give --pg" in err


def test_differences_are_exit_status_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Differences are on stdout, for scripts."""
    changed = tmp_path / "changed.html"
    changed.write_text(page("messages-18.html").replace("Byte1('B')", "Byte1('X')"))
    status, out, _ = run(capsys, "check", changed)
    assert status == 1 and "1 differences" in out


def test_other_pages_are_refused() -> None:
    """A page about something else is an error that names the right ones."""
    with pytest.raises(DocumentError, match="Logical Replication Message Formats"):
        report("Gossip\n\nByte1('Q')\n\nMarks gossip.\n\nString\n\nThe gossip.\n", 18)
