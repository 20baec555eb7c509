"""The documents of these tests: pages of ours in the structure of PostgreSQL's, and the command run on them."""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.codecs import BUILT_FOLDERS
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


def spec_until(pg: int, folder: Path) -> Path:
    """Write the specifications into a folder as they are without what came after a PostgreSQL; return the folder.

    A made-up PostgreSQL 20 is then new to them, whatever the real one brought.
    """
    folder.mkdir(exist_ok=True)
    shutil.copytree(SPEC, folder, ignore=shutil.ignore_patterns(*BUILT_FOLDERS), dirs_exist_ok=True)
    for name in SPECS:
        (folder / name).write_text(_text_until(pg, name), "utf-8")
    return folder


@cache
def _text_until(pg: int, name: str) -> str:
    data = yaml.safe_load((SPEC / name).read_text("utf-8"))
    later = {row["version"] for row in data.get("versions", ()) if row["server"] > pg}
    return yaml.safe_dump(_until(data, pg, later), sort_keys=False)


def _until(data: Any, pg: int, later: set[int]) -> Any:
    if isinstance(data, list):
        return [_until(each, pg, later) for each in data if not _is_later(each, pg, later)]
    if isinstance(data, dict):
        return {key: _until(each, pg, later) for key, each in data.items() if not _is_later(each, pg, later)}
    return data


def _is_later(data: Any, pg: int, later: set[int]) -> bool:
    return isinstance(data, dict) and (data.get("server", 0) > pg or data.get("since") in later)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run the command; return its exit status, output and errors."""
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err
