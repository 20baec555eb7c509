"""The documents of these tests: pages of ours in the structure of PostgreSQL's, and the command run on them."""

from pathlib import Path

import pytest

from tools.language import SPEC, load
from tools.protocol_docs.__main__ import SPECS, main
from tools.protocol_docs.check import Report, check
from tools.protocol_docs.document import Document
from tools.protocol_docs.reader import read_text

PAGES = Path(__file__).parents[1] / "data" / "protocol_docs"

SPECIFICATIONS = [load(SPEC / name) for name in SPECS]
SECTIONS = {document.title: document.section for spec in SPECIFICATIONS for document in spec.documents}


def page(name: str) -> str:
    """Return the text of a page."""
    return (PAGES / name).read_text("utf-8")


def document(text: str, pg: int | None = None) -> Document:
    """Return what the reader makes of a text."""
    (only,) = read_text(text, SECTIONS, pg)
    return only


def report(text: str, pg: int | None = None) -> Report:
    """Return what a check finds in a text."""
    return check(document(text, pg), SPECIFICATIONS)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run the command; return its exit status, output and errors."""
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err
