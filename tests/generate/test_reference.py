"""The reference pages: complete, with working links, and escaped whatever a specification contains."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.generate.outputs import OUTPUTS
from tools.generate.reference.reference_fields import sizes
from tools.generate.reference.reference_page import emit_reference
from tools.generate.reference.reference_text import code, markdown, mermaid, notation, slug
from tools.language import SPEC, Choice, Field, Message, Part, Spec, load, load_text
from tools.language.conditions import Flag
from tools.language.elements import Structure

ROOT = Path(__file__).parents[2]
PAGES = {
    "reference.md": "pgoutput.yaml",
    "reference-envelope.md": "replication.yaml",
    "reference-connection.md": "protocol.yaml",
}
each_page = pytest.mark.parametrize("page", PAGES)


def _page(name: str) -> tuple[str, Spec]:
    return (SPEC / name).read_text("utf-8"), load(SPEC / PAGES[name])


def _tops(spec: Spec) -> Iterator[tuple[Message | Part, str]]:
    yield from ((message, message.name) for message in spec.messages)
    yield from ((part, part.name) for part in spec.parts)


def _section(text: str, name: str) -> str:
    return re.split(r"^##", text.split(f"\n### {name}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def _fields(structure: Structure) -> list[Field]:
    return [e for inner in structure.inside() for e in inner.elements if isinstance(e, Field)]


def test_pages_are_outputs() -> None:
    """The pages are generated, and nothing else is a page but that of what changed."""
    assert {f"spec/{page}" for page in (*PAGES, "reference-changes.md")} == {
        output.path for output in OUTPUTS if output.path.endswith(".md")
    }


@each_page
def test_every_field_has_a_row(page: str) -> None:
    """Each message and part has its description, and a row for every field."""
    text, spec = _page(page)
    for top, name in _tops(spec):
        words = _section(text, name)
        assert markdown(top.description) in words
        for field in _fields(top):
            rows = [line for line in words.splitlines() if line.startswith("| ")]
            assert any(re.search(rf"[`.]{field.name}`", row) for row in rows)
            assert markdown(field.description) in words and (field.part or code(notation(field))) in words


@each_page
def test_every_condition_and_meaning_is_told(page: str) -> None:
    """Conditions, values and bits of a field are in its row."""
    text, spec = _page(page)
    for top, name in _tops(spec):
        section = _section(text, name)
        for field in _fields(top):
            for value, meaning in [*(field.values or {}).items(), *(field.bits or {}).items()]:
                assert f"`{value}` {markdown(meaning)}" in section
            if field.when:
                assert isinstance(field.when, Flag)  # those of other kinds are in test_later.py
                assert f"`{field.when.name}` is set" in section


@pytest.mark.slow
@each_page
def test_choices_and_repeats_are_drawn(page: str) -> None:
    """A structure with a choice or a repeat has a graph of its ways: fields, branches, conditions; others have none."""
    text, spec = _page(page)
    for top, name in _tops(spec):
        _, *graphs = _section(text, name).split("```mermaid\n")
        elements = [element for inner in top.inside() for element in inner.elements]
        branching = [element for element in elements if not isinstance(element, Field)]
        assert len(graphs) == bool(branching)
        for element in elements if graphs else []:
            if isinstance(element, Choice):
                assert all(
                    mermaid(f"Byte1('{a.letter}')") + f"<br/>{a.name}" in graphs[0] for a in element.alternatives
                )
                assert ("none of them" in graphs[0]) == element.optional
            assert re.search(rf"\b{element.name}\b", graphs[0])
            assert not element.conditional or ("only if" in graphs[0] and "otherwise" in graphs[0])


def test_a_structure_that_is_its_principal_or_an_object_says_so() -> None:
    """A bare value under some options, and an object under others, is described for parts and repeats."""
    grown = ODD.replace("name: click}", "name: click, since: 1}")
    assert "- In Python: its `default` alone, or `Inner` where it has more" in emit_reference(
        load_text(grown, "odd.yaml")
    )
    assert "- In Python: `Inner`" in emit_reference(load_text(ODD, "odd.yaml"))


@each_page
def test_links_lead_somewhere(page: str) -> None:
    """Every link is to a heading of the page, to a file next to it, or to PostgreSQL's documents."""
    text, _ = _page(page)
    headings = [slug(title) for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    assert len(headings) == len(set(headings))
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings
        else:
            assert target.startswith("https://www.postgresql.org/docs/") or (SPEC / target).is_file()


@each_page
def test_tables_are_whole(page: str) -> None:
    """The rows of a table have as many cells as its head."""
    text, _ = _page(page)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


@pytest.mark.slow
def test_offsets_follow_the_conditions() -> None:
    """An offset has a number for each way in which the fields before it can be there."""
    rows = _section(_page("reference.md")[0], "Stream Abort")
    assert re.search(r"\| 9 \| `Int64 \(XLogRecPtr\)` \| `abort_lsn` \|", rows)
    assert re.search(r"\| 17 \| `Int64 \(TimestampTz\)` \| `abort_time` \|", rows)
    assert "- Size: 9 or 25 bytes" in rows
    assert re.search(r"\| 1 or 5 \| `Int32 \(Oid\)` \| `relation_oid` \|", _section(_page("reference.md")[0], "Insert"))


def test_sizes_are_those_of_real_messages() -> None:
    """The sizes of a page are the sizes of the samples."""
    from tests.wire.samples import SAMPLES

    spec = load(SPEC / "pgoutput.yaml")
    found = {message.class_name: sizes(spec, message) for message in spec.messages}
    for _, payload, message in SAMPLES.values():
        expected = found[type(message).__name__]
        assert not expected or len(payload) in expected


def test_states_are_drawn() -> None:
    """The diagram has every state, an arrow for each message that leaves one, a note with those that stay."""
    text, spec = _page("reference.md")
    diagram = text.split("```mermaid\nstateDiagram-v2\n")[1].split("```")[0]
    for message in spec.messages:
        for state in message.within:
            stays = message.enters in (None, state)
            head = f"note right of state_{state}\n" if stays else f"state_{state} --> state_{message.enters}: "
            assert message.name in diagram.split(head)[1].split("end note" if stays else "\n")[0]


@pytest.mark.slow
def test_a_connection_is_drawn_by_who_sends() -> None:
    """Arrows name the senders of their messages, and the table has each message of a state on its sender's side."""
    text, spec = _page("reference-connection.md")
    assert "state_startup --> state_encryption: SSLRequest, GSSENCRequest (client)\n" in text
    for state in spec.states:
        row = next(line for line in text.splitlines() if line.startswith(f"| `{state.name}` |"))
        _, _, _, *sides, _ = row.split("|")
        for sender, cell in zip(("server", "client"), sides, strict=True):
            ignored = [m for m in spec.messages if sender == "client" and state.name in m.ignored]
            within = [m for m in spec.messages if state.name in m.within and m.sender in (None, sender)]
            messages = [message for message in spec.messages if message in within or message in ignored]
            assert re.findall(r"\[(.+?)\]", cell) == [message.name for message in messages]
            assert re.findall(r"\[([^][]+)\]\(#[\w-]+\) \(ignored\)", cell) == [message.name for message in ignored]
            assert re.findall(r" to `(\w+)`", cell) == [m.enters for m in within if m.enters not in (None, state.name)]


@pytest.mark.slow
def test_messages_of_a_connection_are_told_apart() -> None:
    """The constant that distinguishes messages of one tag is next to it, and a fixed length is given."""
    text, _ = _page("reference-connection.md")
    assert "| `R` | `Int32(10)` | [AuthenticationSASL](#authenticationsasl) | server |" in text
    assert "|  | `Int32(80877103)` | [SSLRequest](#sslrequest) | client |" in text
    assert "| 1 | `Int32` | `length` | always 8: bytes from here to the end |" in _section(text, "AuthenticationOk")
    assert "`value_length` bytes, none where that is -1" in _section(text, "DataRow")
    assert "up to a zero byte; each is `StartupParameter`" in _section(text, "StartupMessage")


@given(st.text(st.characters(exclude_characters="\n\r")))
def test_words_in_a_label_are_read_as_they_are(text: str) -> None:
    """The text of a label survives decoding of its entities, and does not end the label."""
    escaped = mermaid(text)
    assert not set('"<>`[]{}|;\\\n') & set(re.sub(r"#\d+;", "", escaped))
    assert html.unescape(re.sub(r"#(\d+);", lambda match: chr(int(match[1])), escaped)) == html.unescape(text)


def test_a_minor_release_stands_next_to_the_version_of_a_bit() -> None:
    """A field that a bit of a later version decides names its own PostgreSQL, unless that is the version's."""
    text = emit_reference(load_text(LATER, "later.yaml"))
    (row,) = (line for line in text.splitlines() if "`stamp`" in line)
    assert "protocol version 2 and newer, since PostgreSQL 20" in row
    (row,) = (line for line in text.splitlines() if "`shard`" in line)
    assert "protocol version 2 and newer" in row and "since PostgreSQL" not in row


LATER = """
protocol: later
title: Later
source: nowhere
versions: [{version: 1, server: 10}, {version: 2, server: 19}]
parameters: {proto_version: {type: int}}
states: [{name: end}]
messages:
  - name: Mark
    in: [end]
    blocks:
      - type: header
        fields:
          - {field: "Byte1('M')", name: kind}
          - {field: Int8, name: flags, since: 2, bits: {1: stamped, 2: sharded}}
          - {field: Int8, name: stamp, server: 20, when: {bit: 1, of: flags}}
          - {field: Int8, name: shard, server: 19, when: {bit: 2, of: flags}}
"""


def test_odd_specification() -> None:
    """Parts in parts, choices in repeats and odd words make whole tables."""
    text = emit_reference(load_text(ODD, "odd.yaml"))
    assert "`things[].what=first.rest`" in text
    assert markdown(NASTY) in text and NASTY not in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


NASTY = '1. <script>*x*</script> | `end` "quoted" [a](b) #1; %% & $x$ {y} -->'
ODD = f"""
protocol: odd
title: Odd
source: nowhere
versions: [{{version: 1, server: 10}}]
parameters: {{proto_version: {{type: int}}}}
states: [{{name: end}}, {{name: graph}}]
messages:
  - name: Style
    description: &nasty '{NASTY}'
    in: [end]
    enters: graph
    blocks:
      - type: header
        fields:
          - {{field: "Byte1('|')", name: tag, description: *nasty}}
          - {{field: Int16, name: number}}
      - type: repeat_1
        name: things
        count: number
        description: *nasty
        blocks:
          - type: choice_1
            name: what
            alternatives:
              - field: Byte1(' ')
                name: first
                python: bytes
                description: *nasty
                then: [{{field: Int32, name: size}}, {{field: Byten, name: rest, length: size}}]
              - {{field: Byte1(';'), name: second, python: None}}
      - type: body
        fields: [{{field: Inner, name: subgraph, description: *nasty}}]
  - name: Subgraph
    in: [graph]
    enters: end
    blocks: [{{type: header, fields: [{{field: "Byte1('\\"')", name: tag}}]}}]
parts:
  - name: Inner
    description: *nasty
    blocks:
      - type: header
        fields:
          - {{field: Int8, name: default, values: {{1: *nasty}}}}
          - {{field: String, name: click}}
"""
