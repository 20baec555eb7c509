"""A file as documents: format detected, parsed, and everything that is missing in it recorded."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.protocol_docs.document import Document, DocumentError, Row, Structure, is_notation
from tools.protocol_docs.grammar import Grammar
from tools.protocol_docs.markup import Section, read_markup
from tools.protocol_docs.plain import read_plain
from tools.protocol_docs.recognise import Recognised, decode, recognise
from tools.protocol_docs.seed_form import from_yaml

__all__ = ["read", "read_text"]

_VERSIONS = (
    re.compile(r"PostgreSQL (\d+)(?:\.\d+|devel|beta\d+|rc\d+)* Documentation"),
    re.compile(r"PostgreSQL: Documentation: (\d+):"),
    re.compile(r"postgresql\.org/docs/(\d+)/"),
)
URL = "https://www.postgresql.org/docs/{pg}/{section}.html"


def read(path: Path, sections: Mapping[str, str], pg: int | None = None) -> list[Document]:
    """Read a file; ``sections`` maps the titles of known sections to their ids; raise DocumentError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror}") from None
    try:
        return read_text(decode(data), sections, pg)
    except DocumentError as error:
        raise DocumentError(f"{path}: {error}") from None


def read_text(text: str, sections: Mapping[str, str], pg: int | None = None) -> list[Document]:
    """Read the documents in a text: one for each section that is known, or the only one."""
    source = recognise(text)
    stated = next((int(found[1]) for pattern in _VERSIONS if (found := pattern.search(source.text))), None)
    documents = [from_yaml(source.text)] if source.form == "yaml" else _documents(source)
    for document in documents:
        _identify(document, sections, pg or stated)
        _name_missing(document, source)
    known = [document for document in documents if document.section in sections.values()]
    return known or documents


def _documents(source: Recognised) -> list[Document]:
    if source.form == "text":
        title, nodes = read_plain(source.text)
        sections = [Section("", title, nodes, False, "")]
    else:
        sections = read_markup(source.text, source.form)
    return [_document(section, source) for section in sections]


def _document(section: Section, source: Recognised) -> Document:
    document = Document(source.form, section.title, section.id)
    document.partial = bool(source.lost or section.cut_start or section.cut_end)
    Grammar(document, section.cut_start).read(section.nodes)
    for structure in document.structures:
        _number(structure)
    if section.cut_start:
        _cut_start(document)
    if section.cut_end:
        _cut_end(document, section.cut_end)
    return document


def _identify(document: Document, sections: Mapping[str, str], pg: int | None) -> None:
    document.pg = pg
    page = re.search(r"/([a-z0-9-]+)\.html", document.url or "")
    document.section = document.section or sections.get(document.title, "") or (page[1] if page else "")
    if document.url is None and pg and document.section:
        document.url = URL.format(pg=pg, section=document.section)


def _number(structure: Structure) -> None:
    """Give every row its position; after a cut, the positions in the first block are unknown."""
    for number, block in enumerate(structure.blocks, 1):
        if structure.open_start and number == 1:
            continue
        for place, row in enumerate(block.all_rows(), 1):
            row.position = (number, place)


def _cut_start(document: Document) -> None:
    first = document.structures[0] if document.structures else None
    if first is None or not first.open_start:
        document.missing.append("the document starts inside a list: messages before it are missing")
    elif first.name.startswith("UNNAMED"):
        document.missing.append(f"{first.name}: the document starts inside it; its name and first fields are missing")


def _cut_end(document: Document, inside: str) -> None:
    text = f"the document ends inside <{inside}>"
    if document.structures:
        last = document.structures[-1]
        last.open_end = True
        rows = list(last.rows())
        rows[-1].cut = inside in ("para", "p", "term", "dt", "dd", "listitem")
        text += f" of {last.name}, {rows[-1].label}: what follows in {last.name}"
    document.missing.append(f"{text}, and every message after it, is missing")


def _name_missing(document: Document, source: Recognised) -> None:
    """Record what turns out to be missing after everything has been parsed."""
    for structure in document.structures:
        document.missing += [text for row in structure.rows() if (text := _row_missing(structure, row))]
    for name, user in _undescribed(document.structures).items():
        document.partial = True
        document.missing.append(f"{name}: {user} refers to it, and the document does not describe it")
    if source.lost:
        numbers = ", ".join(map(str, source.lost))
        document.missing.append(f"{len(source.lost)} lines of the file: {numbers}")
    if document.url is None:
        document.missing.append("url: the document does not tell its PostgreSQL version; give --pg")
    document.missing = list(dict.fromkeys(document.missing))


def _row_missing(structure: Structure, row: Row) -> str | None:
    if row.gaps:
        lines = ", ".join(map(str, row.gaps))
        what = "a part of its description" if row.description else "its description"
        return f"{structure.name}, {row.label}: {what} (line {lines} of the file)"
    if row.cut:
        return f"{structure.name}, {row.label}: its description may be cut off"
    return None if row.description else f"{structure.name}, {row.label}: the document gives no description"


def _undescribed(structures: Iterable[Structure]) -> dict[str, str]:
    """Return the parts that are referenced but not described, each with the structures that refer to it."""
    known = {structure.name for structure in structures}
    found: dict[str, str] = {}
    for structure in structures:
        for row in structure.rows():
            if not is_notation(row.notation) and row.notation.isidentifier() and row.notation not in known:
                found.setdefault(row.notation, structure.name)
    return found
