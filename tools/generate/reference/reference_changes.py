"""Emits the page of what changed: what each protocol version and each release of PostgreSQL brought and ended."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tools.generate.reference.reference_text import code, intro, markdown, slug, table
from tools.generate.text import COMMAND, GENERATED
from tools.generate.words import in_words
from tools.language import Spec
from tools.language.differences import Difference, Item, Selection, differences, in_release, in_version, items

__all__ = ["emit_changes"]

TITLE: Final = "What changed"
ABOUT = """
The messages, fields, values, branches and options that each protocol version and each release of PostgreSQL brought, or
ended. What is inside of something new is not listed separately. `python -m tools.language.released --diff 3 4` prints
the difference between any two protocol versions.
"""
VERSIONS = """
The client asks for a protocol version with the option `proto_version`; a server that is new enough sends it. Each
version is compared with the one before it.
"""
RELEASES = """
What a server can send or understand, in any protocol version. Releases that brought nothing are left out.
"""
HEAD: Final = ("", "What", "Name", "Type or value", "Condition", "Meaning")


def emit_changes(*specs: Spec, pages: Mapping[str, str]) -> str:
    """Return the page.

    Args:
        specs: The specifications, first that of the messages, whose versions are compared.
        pages: The page with the messages of each specification, by its file.
    """
    page = _Page(specs, pages)
    first = specs[0]
    mark = f"<!-- {GENERATED}{', '.join(spec.file for spec in specs)} by: {COMMAND}. Do not edit. -->"
    chunks = [mark, f"# {TITLE}", intro(ABOUT), "See also: " + ", ".join(page.links()) + "."]
    if len(first.versions) > 1:
        chunks += ["## Protocol versions", intro(VERSIONS), *page.versions()]
    chunks += ["## Releases of PostgreSQL", intro(RELEASES), *page.releases()]
    return "\n\n".join(chunks) + "\n"


class _Page:
    """The sections of the page, and its links to the pages of messages."""

    def __init__(self, specs: Sequence[Spec], pages: Mapping[str, str]) -> None:
        self.specs = specs
        self.pages = pages

    def links(self) -> Iterator[str]:
        """Yield a link to each page of messages."""
        return (f"[{markdown(spec.title)}]({self.pages[spec.file]})" for spec in self.specs)

    def versions(self) -> Iterator[str]:
        """Yield a section for each protocol version but the first."""
        for before, after in pairwise(self.specs[0].versions):
            yield f"### Protocol version {after.version}"
            yield f"From PostgreSQL {after.server} on: {markdown(after.brings)}."
            yield self._table(in_version(before.version), in_version(after.version))

    def releases(self) -> Iterator[str]:
        """Yield a section for each release that brought something."""
        servers = {item.server for spec in self.specs for item in items(spec)}
        servers |= {version.server for version in self.specs[0].versions}
        first, *others = sorted(servers - {0})
        yield f"### PostgreSQL {first}"
        yield "The oldest release that the specification describes. It has:"
        yield "\n".join(f"- {markdown(spec.title)}: {self._oldest(spec, first)}" for spec in self.specs)
        for before, after in pairwise([first, *others]):
            yield f"### PostgreSQL {after}"
            brought = [version.version for version in self.specs[0].versions if version.server == after]
            yield from (f"Brings protocol version {version}." for version in brought)
            yield self._table(in_release(before), in_release(after))

    def _oldest(self, spec: Spec, server: int) -> str:
        found = (item for item in items(spec) if item.server <= server and item.parent is None)
        return ", ".join(self._name(spec, item) for item in found) + "."

    def _table(self, before: Selection, after: Selection) -> str:
        rows = [self._row(spec, each) for spec in self.specs for each in differences(spec, before, after)]
        return table(HEAD, rows) if rows else "No message and no field changed."

    def _row(self, spec: Spec, difference: Difference) -> Sequence[str]:
        item = difference.item
        text = markdown(item.text) if item.kind in ("repeat", "choice") else code(item.text) if item.text else ""
        words = in_words(item.when, code), markdown(item.description)
        return difference.mark, item.kind, self._name(spec, item), text, *words

    def _name(self, spec: Spec, item: Item) -> str:
        """Return the name of an item, with a link to its message or part; options are in a table of their own."""
        page = self.pages[spec.file]
        if item.is_option:
            return f"[{code(item.owner)}]({page}#options)"
        linked = f"[{markdown(item.owner)}]({page}#{slug(item.owner)})"
        return f"{linked} {code(item.path)}" if item.path else linked
