"""HTML and DocBook SGML as terms and paragraphs, with BeautifulSoup, after SGML's short forms are expanded."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PreformattedString

from tools.protocol_docs.document import Entry, Node, Prose

__all__ = ["Section", "read_markup"]

_TAG = re.compile(r"<!--.*?-->|<[!?][^>]*>|<(/?)([A-Za-z][\w.-]*)?((?:\s[^<>]*?)?)(/?)>", re.S)
_LISTS = frozenset({"variablelist", "varlistentry", "listitem", "term", "dl", "dt", "dd"})
_PARAGRAPHS = frozenset({"para", "p"})
_VOID = frozenset({"xref", "footnoteref", "anchor", "br", "hr", "img", "meta", "input", "colspec", "spanspec"})
_VOID_HTML = _VOID | {"link", "base", "area", "col"}
_SKIPPED = "indexterm, a.id_link, head, script, style, div.navheader, div.navfooter, div.titlepage"
_OPENS = ["varlistentry", "dl", "dt", "dd", "para", "p", "listitem", "variablelist", "term"]
_NUMBER = re.compile(r"^(?:PostgreSQL: Documentation: \w+: )?(?:[\dA-Z]+\.)+(?:\d+\.?)?\s+")


@dataclass(frozen=True)
class Section:
    """A section as nodes, and whether the document is cut inside its lists."""

    id: str
    title: str
    nodes: tuple[Node, ...]
    cut_start: bool
    cut_end: str


def read_markup(text: str, form: str) -> list[Section]:
    """Return the sections of a document: each <sect1>, or the whole document if there is none."""
    text = re.sub(r"^\s*<\?xml.*?\?>", "", text)  # XHTML is read as HTML, which forgives more
    tidy = _Tidy(_VOID if form == "sgml" else _VOID_HTML)
    soup = BeautifulSoup(tidy.text(text), "html.parser" if form == "sgml" else "lxml")
    titles = {id(tag): _title(tag) for tag in [soup, *_sections(soup)]}
    for tag in soup.select(_SKIPPED):
        tag.decompose()
    cut_end = next((name for name in reversed(tidy.stack) if name in _LISTS | _PARAGRAPHS), "")
    cut_start = any(name in _LISTS for name in tidy.stray)
    tags: Sequence[Tag] = _sections(soup) or [soup]
    whole = tags[0] is soup
    return [_section(tag, titles[id(tag)], cut_start and whole, cut_end if tag is tags[-1] else "") for tag in tags]


def _sections(soup: BeautifulSoup) -> list[Tag]:
    return [
        tag for tag in soup.find_all(["sect1", "div"]) if tag.name == "sect1" or "sect1" in (tag.get("class") or ())
    ]


def _section(tag: Tag, title: str, cut_start: bool, cut_end: str) -> Section:
    return Section(str(tag.get("id") or "").lower(), title, tuple(_nodes(tag)), cut_start, cut_end)


def _title(tag: Tag) -> str:
    title = tag.find(["h2", "title"])
    return _NUMBER.sub("", _words(title.get_text())).rstrip(" #") if title else ""


def _nodes(parent: Tag) -> Iterator[Node]:
    """Yield the paragraphs and entries under an element; text next to a list is a paragraph, too."""
    words: list[str] = []
    for child in parent.children:
        if isinstance(child, Tag) and (child.name in _OPENS or child.find(_OPENS)):
            yield from _prose(words)
            yield from _block(child)
        elif isinstance(child, Tag):
            if child.name != "title":
                words.append(child.get_text())
        elif isinstance(child, NavigableString) and not isinstance(child, PreformattedString):
            words.append(str(child))
    yield from _prose(words)


def _prose(words: list[str]) -> Iterator[Prose]:
    text = _words("".join(words))
    words.clear()
    if text:
        yield Prose(text)


def _block(tag: Tag) -> Iterator[Node]:
    if tag.name == "varlistentry":
        terms = tag.find_all("term", recursive=False)
        rest = [
            node for child in tag.children if isinstance(child, Tag) and child.name != "term" for node in _under(child)
        ]
        yield Entry(", ".join(_words(term.get_text()) for term in terms), tuple(rest))
    elif tag.name == "dl":
        yield from _definitions(tag)
    else:
        yield from _nodes(tag)


def _under(tag: Tag) -> Iterator[Node]:
    return _block(tag) if tag.name in ("varlistentry", "dl") else _nodes(tag)


def _definitions(tag: Tag) -> Iterator[Node]:
    """Yield an entry for each <dt>, with the <dd> that follows it."""
    term = None
    for child in tag.children:
        if not isinstance(child, Tag):
            yield from _prose([str(child)])
        elif child.name == "dd":
            yield Entry(term or "", tuple(_nodes(child)))
            term = None
        elif child.name == "dt":
            if term is not None:
                yield Entry(term)
            term = _words(child.get_text()).rstrip("# ")
    if term is not None:
        yield Entry(term)


def _words(text: str) -> str:
    return " ".join(text.split())


class _Tidy:
    """Expands SGML's omitted markup, and records which elements are closed without a start, or left open."""

    def __init__(self, void: frozenset[str]) -> None:
        self.void = void
        self.stack: list[str] = []
        self.stray: list[str] = []

    def text(self, text: str) -> str:
        """Return the text with ``</>`` as the end of the innermost element and empty elements closed."""
        return _TAG.sub(self._tag, text)

    def _tag(self, match: re.Match[str]) -> str:
        closing, name, attributes, closed = match.groups()
        if closing:
            return self._end(name.lower() if name else None)
        if name is None or closed:
            return match[0]
        if name.lower() in self.void:
            return f"<{name}{attributes}/>"
        self.stack.append(name.lower())
        return match[0]

    def _end(self, name: str | None) -> str:
        name = name or (self.stack[-1] if self.stack else "")
        if name not in self.stack:
            self.stray.append(name)
            return ""
        while self.stack.pop() != name:
            pass
        return f"</{name}>"
