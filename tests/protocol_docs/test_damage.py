"""Damaged and truncated documents: everything present is extracted, and everything missing is named."""

import pytest

from tests.protocol_docs.pages import PAGES, document, page, run
from tools.protocol_docs.seed_form import to_data


def test_line_numbers_are_taken_off() -> None:
    """A numbered page with lines missing has every message, and the fields around the gaps."""
    damaged, whole = document(page("damaged-18.html")), document(page("messages-18.html"))
    assert [s.name for s in damaged.structures] == [s.name for s in whole.structures]
    assert [row.label for s in damaged.structures for row in s.rows()] == [
        row.label for s in whole.structures for row in s.rows()
    ]


def test_missing_descriptions_are_named_with_their_lines() -> None:
    """An empty description is not the same as one that was lost."""
    missing = document(page("damaged-18.html")).missing
    assert "Origin, 1_3_String: its description (line 46 of the file)" in missing
    assert any(text.startswith("59 lines of the file: 7, 13, ") for text in missing)


def test_lost_or_is_guessed_aloud() -> None:
    """Alternatives without "Or" between them are read as such, and it is said."""
    damaged = document(page("damaged-18.html"))
    assert len(damaged.parts[0].blocks[1].alternatives or ()) == 4
    assert "TupleData: no 'Or' before Byte1('u'), read as an alternative because it is a tag" in damaged.missing


def test_partly_lost_description() -> None:
    """The rest of a description is kept, and the gap is named; line numbers alone are no damage."""
    text = page("messages-18.html").replace("Here stands the final lsn,", "Here stands the final lsn,\n")
    lines = [f"{number} {line}" for number, line in enumerate(text.splitlines(), 1)]
    assert not document("\n".join(lines)).partial
    lost = next(line for line in lines if line.endswith(" as we call it."))
    lines.remove(lost)
    read = document("\n".join(lines))
    number = lost.split()[0]
    assert f"Begin, 1_2_Int64 (XLogRecPtr): a part of its description (line {number} of the file)" in read.missing
    assert list(read.messages[0].rows())[1].description == "Here stands the final lsn,"


def test_document_cut_at_its_end() -> None:
    """The last message is extracted as far as it goes, and the place of the cut is named."""
    read = document(page("cut-end.sgml"), 18)
    assert [message.name for message in read.messages] == ["Begin", "Message"]
    assert "the document ends inside <para> of Message, 1_7_Byten" in read.missing[0]
    assert list(read.messages[1].rows())[-1].description == "Here stands the"


def test_document_cut_at_its_start() -> None:
    """A message whose name is cut off is named by the paragraph after it, and that is said; positions are unknown."""
    read = document(page("cut-start.sgml"), 18)
    assert read.messages[0].name == "Delete"
    assert [row.label for row in read.messages[0].rows()] == ["Byte1('O')", "TupleData"]
    assert read.missing[0].startswith("Delete: the document starts inside it")
    assert "TupleData: Delete refers to it, and the document does not describe it" in read.missing


def test_nameless_message_stays_nameless() -> None:
    """Without that paragraph there is no name, and none is invented."""
    text = page("cut-start.sgml").replace("The Delete message may contain", "It may contain")
    read = document(text, 18)
    assert read.messages[0].name == "UNNAMED_1"
    assert any(text.startswith("UNNAMED_1: the document starts inside it") for text in read.missing)


def test_missing_is_in_the_yaml_and_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """The output reports it for people and for programs."""
    _, out, err = run(capsys, "extract", PAGES / "cut-end.sgml")
    assert "\nmissing:\n" in out
    assert "missing: Message, 1_7_Byten: its description may be cut off" in err
    assert "missing: url: the document does not tell its PostgreSQL version; give --pg" in err


@pytest.mark.parametrize(
    ("name", "absent"), [("damaged-18.html", ""), ("cut-end.sgml", "Commit"), ("cut-start.sgml", "Begin")]
)
def test_what_is_missing_is_no_difference(capsys: pytest.CaptureFixture[str], name: str, absent: str) -> None:
    """A document that is not whole is compared as far as it goes; what it lacks is a note."""
    status, out, err = run(capsys, "check", PAGES / name, "--pg", 18)
    assert status == 0, out
    assert absent in err
    assert out.splitlines()[-1].endswith(" 0 differences")


def test_yaml_of_a_damaged_document_stays_damaged() -> None:
    """What was missing when it was extracted is still missing when the YAML is read."""
    import yaml

    text = yaml.safe_dump(to_data(document(page("cut-end.sgml"), 18)), sort_keys=False)
    assert document(text).partial
