"""The page of what changed: every difference of versions and releases, with links that lead to its message."""

import re
from itertools import pairwise

import pytest

from tests.language.test_differences import GROWN
from tools.generate.outputs import PAGES
from tools.generate.reference.reference_changes import emit_changes
from tools.generate.reference.reference_text import markdown, slug
from tools.language import SPEC, Spec, load, load_text
from tools.language.differences import differences, in_release, in_version, items

SPECS = [load(SPEC / name) for name in PAGES]


def _sections(page: str) -> dict[str, str]:
    _, *parts = re.split(r"^### ", page, flags=re.MULTILINE)
    return {title: text for title, _, text in (part.partition("\n") for part in parts)}


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r"\| (new|ended|changed) ", line)]


def _page(*specs: Spec) -> str:
    return emit_changes(*specs, pages={spec.file: PAGES.get(spec.file, "page.md") for spec in specs})


def test_the_page_has_every_difference() -> None:
    """Each section has a row for each difference, in order; the oldest release has its messages."""
    sections = _sections((SPEC / "reference-changes.md").read_text("utf-8"))
    for before, after in pairwise(SPECS[0].versions):
        rows = _rows(sections.pop(f"Protocol version {after.version}"))
        found = [e for spec in SPECS for e in differences(spec, in_version(before.version), in_version(after.version))]
        assert [row.split(" | ")[:2] for row in rows] == [[f"| {e.mark}", e.item.kind] for e in found]
    servers = sorted({item.server for spec in SPECS for item in items(spec)})
    assert list(sections) == [f"PostgreSQL {server}" for server in servers]
    for older, newer in pairwise(servers):
        found = [each for spec in SPECS for each in differences(spec, in_release(older), in_release(newer))]
        rows = _rows(sections[f"PostgreSQL {newer}"])
        assert len(rows) == len(found) > 0
        for row, each in zip(rows, found, strict=True):
            assert markdown(each.item.owner) in row or f"`{each.item.owner}`" in row
            assert not each.item.path or f"`{each.item.path}`" in row
            assert markdown(each.item.description) in row
    assert "[Begin](reference.md#begin)" in sections["PostgreSQL 10"]


def test_links_lead_to_headings() -> None:
    """Each link is to a heading of a page of the reference."""
    page = (SPEC / "reference-changes.md").read_text("utf-8")
    links = re.findall(r"\]\(([\w-]+\.md)(?:#([\w-]+))?\)", page)
    headings = {
        name: {slug(line.lstrip("# ")) for line in (SPEC / name).read_text("utf-8").splitlines() if line[:1] == "#"}
        for name in PAGES.values()
    }
    assert len(links) > 50 and all(not anchor or anchor in headings[name] for name, anchor in links)
    for name in PAGES.values():
        assert "(reference-changes.md)" in (SPEC / name).read_text("utf-8")


def test_what_ended_and_what_changed_is_shown() -> None:
    """An ended variant, a new bit, and a field that has another condition than before."""
    section = _sections(_page(load_text(GROWN, "grown.yaml")))["Protocol version 3"]
    first = "[First](page.md#first)"
    assert f"| ended | field | {first} `xid` | `Int32` |" in section
    assert f"| new | field | {first} `xid` | `Int64` |" in section
    assert f"| new | bit | {first} `flags` | `2: more` |" in section
    assert f"| changed | field | {first} `size` | `Int16` |" in section


@pytest.mark.parametrize("name", PAGES)
def test_a_specification_alone_has_a_page(name: str) -> None:
    """One without versions has releases only."""
    spec = load(SPEC / name)
    page = _page(spec)
    assert ("## Protocol versions" in page) == (len(spec.versions) > 1)
    assert "## Releases of PostgreSQL" in page
