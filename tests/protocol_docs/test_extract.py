"""extract: HTML, SGML, plain text and YAML give the same data, in the seeds' form."""

import pytest
import yaml

from tests.protocol_docs.pages import PAGES, document, page, run
from tools.protocol_docs.document import DocumentError
from tools.protocol_docs.mermaid import graph, graphs
from tools.protocol_docs.reader import read_text
from tools.protocol_docs.seed_form import to_data

TINY = """\
54.9. Logical Replication Message Formats

Begin

Byte1('B')

Marks "it".

Int64

Where it ends.

Relation #

Byte1('R')

Marks it.

Int16

Number of columns
Next, the following message part appears for each column (not all):

String

Its name.

The following message parts are shared by the above messages.

TupleData

Int16

Number of columns.

Next, one of the following submessages appears for each column:

Byte1('n')

Nothing.

Or

Byte1('t')

Text.

Int32

Its length.

Byten

The text.
"""

TINY_YAML = """\
url: https://www.postgresql.org/docs/14/protocol-logicalrep-message-formats.html
messages:
- name: Begin
  blocks:
  - type: header
    fields:
    - {field: "1_1_Byte1('B')", description: 'Marks "it".'}
    - {field: 1_2_Int64, description: Where it ends.}
- name: Relation
  blocks:
  - type: header
    fields:
    - {field: "1_1_Byte1('R')", description: Marks it.}
    - {field: 1_2_Int16, description: Number of columns}
  - type: repeat_1
    fields:
    - {field: 2_1_String, description: Its name.}
parts:
- name: TupleData
  blocks:
  - type: header
    fields:
    - {field: 1_1_Int16, description: Number of columns.}
  - type: repeat_1
    blocks:
    - type: choice_1
      alternatives:
      - {field: "2_1_Byte1('n')", description: Nothing.}
      - field: 2_2_Byte1('t')
        description: Text.
        then:
        - {field: 2_3_Int32, description: Its length.}
        - {field: 2_4_Byten, description: The text.}
"""

TINY_GRAPH = """\
graph TD
  subgraph Relation ["Relation"]
    subgraph header_0 ["Header"]
      1_1_Byte1__R__["1_1_Byte1('R')"]
      1_2_Int16["1_2_Int16"]
      1_1_Byte1__R__ --> 1_2_Int16
    end
    subgraph repeat_1_1 ["Repeat_1"]
      2_1_String["2_1_String"]
    end
    header_0 --> repeat_1_1
  end

    1_1_Byte1__R__ -.- desc_1_1_Byte1__R__["Marks it."]
    1_2_Int16 -.- desc_1_2_Int16["Number of columns"]
    2_1_String -.- desc_2_1_String["Its name."]
  classDef comment fill:#f0f0f0,stroke:#666,stroke-dasharray: 5 5;
  class desc_1_1_Byte1__R__,desc_1_2_Int16,desc_2_1_String comment;"""


def tiny() -> str:
    """Return the small page with blank lines around what stands between its lists."""
    return TINY.replace("\nNext, the", "\n\nNext, the")


def test_plain_text_gives_the_form() -> None:
    """Messages, repeats, parts and alternatives, with positions and descriptions."""
    assert to_data(document(tiny(), 14)) == yaml.safe_load(TINY_YAML)


def test_yaml_is_read_back() -> None:
    """What extract prints is a document too, also in a fence that its first key is glued to."""
    assert to_data(document(TINY_YAML)) == yaml.safe_load(TINY_YAML)
    assert to_data(document(f"https://example.org\n```yaml{TINY_YAML}```\n")) == yaml.safe_load(TINY_YAML)


def test_mermaid_graph() -> None:
    """Blocks are subgraphs, fields are nodes joined by arrows, descriptions are dashed comments."""
    relation = document(tiny(), 14).structures[1]
    assert graph(relation) == TINY_GRAPH


def test_mermaid_fences_and_quotes() -> None:
    """Every structure has a fence under its name, and quotes cannot end a label."""
    text = graphs(document(tiny(), 14))
    assert text.startswith("--- Begin ---\n```mermaid\ngraph TD\n")
    assert '["Marks #quot;it#quot;."]' in text
    assert text.count("```mermaid") == 3


def test_html_and_sgml_agree() -> None:
    """The same page in both forms gives the same data."""
    html, sgml = document(page("messages-18.html")), document(page("messages-18.sgml"), 18)
    assert (html.form, sgml.form) == ("html", "sgml")
    assert to_data(html) == to_data(sgml)
    assert len(html.messages) == 19 and [part.name for part in html.parts] == ["TupleData"]


@pytest.mark.parametrize("name", ["messages-13.sgml", "messages-10.sgml"])
def test_old_sgml(name: str) -> None:
    """Terms over several lines, lists inside paragraphs, bare prose between them, and SGML's short end tags."""
    read = document(page(name), 13)
    relation = next(message for message in read.messages if message.name == "Relation")
    assert [block.kind for block in relation.blocks] == ["header", "repeat_1"]
    assert [alternative[0].notation for alternative in read.parts[0].blocks[1].alternatives or ()] == [
        "Byte1('n')",
        "Byte1('u')",
        "Byte1('t')",
    ]
    assert not read.missing


def test_short_end_tag_ends_the_innermost_element() -> None:
    """The words after </> belong to the paragraph, and what follows is not swallowed."""
    text = page("messages-10.sgml").replace("Here stands the tag.", "Here is the <literal>tag</> of it.", 1)
    assert next(document(text, 10).messages[0].rows()).description == "Here is the tag of it."


def test_groups_give_since() -> None:
    """The paragraph before a group states since which protocol version its messages exist."""
    since = {message.name: message.since for message in document(page("messages-18.html")).messages}
    assert (since["Begin"], since["Stream Stop"], since["Stream Prepare"]) == (None, 2, 3)


def test_a_chapter_gives_its_known_sections() -> None:
    """A file with several sections gives those that a specification is about, and no others."""
    other = '<sect1 id="protocol-other"><title>Other</title><para>No messages.</para></sect1>\n'
    chapter = other + page("messages-18.sgml") + other + page("envelope-17.sgml")
    sections = {"": "protocol-logicalrep-message-formats", "x": "protocol-replication"}
    assert [len(read.messages) for read in read_text(chapter, sections, 18)] == [19, 8]


@pytest.mark.slow
def test_command_prints_yaml_and_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    """Both outputs come on stdout, nothing on stderr when nothing is missing."""
    status, out, err = run(capsys, "extract", PAGES / "messages-18.html")
    assert (status, err) == (0, "")
    assert yaml.safe_load(out)["url"].endswith("/18/protocol-logicalrep-message-formats.html")
    status, out, _ = run(capsys, "extract", "--mermaid", PAGES / "messages-14.txt", "--pg", 14)
    assert status == 0 and out.count("```mermaid") == 15


def test_what_is_no_document_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A file without fields, and a missing one, are errors with a remedy."""
    with pytest.raises(DocumentError, match="no fields such as Int32"):
        document("Some words.")
    status, out, err = run(capsys, "extract", PAGES / "absent.html")
    assert (status, out) == (2, "") and "absent.html" in err
