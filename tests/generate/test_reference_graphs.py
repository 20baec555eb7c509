"""Mermaid's own parser accepts every graph of the reference pages."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.generate.test_reference import ODD, PAGES
from tools.cache import FOLDER
from tools.generate.reference.reference_page import emit_reference
from tools.language import SPEC, load_text

pytestmark = pytest.mark.slow

CACHE = FOLDER / "mermaid"
"""Where the parser is installed, once."""
PACKAGES = ("mermaid@11", "jsdom@26")

PARSE = """
import { JSDOM } from "jsdom";
const { window } = new JSDOM("");
globalThis.window = window;
globalThis.document = window.document;
const { default: mermaid } = await import("mermaid");
let input = "";
for await (const chunk of process.stdin) input += chunk;
const problems = [];
for (const graph of JSON.parse(input)) {
  problems.push(await mermaid.parse(graph).then((found) => found.diagramType, (error) => `error: ${error.message}`));
}
console.log(JSON.stringify(problems));
"""


@pytest.fixture(scope="module")
def parser() -> Path:
    """Install Mermaid in the cache and return the script that parses with it."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are needed to check the graphs with Mermaid's own parser")
    script, stamp = CACHE / "parse.mjs", CACHE / "installed"
    if not stamp.exists() or stamp.read_text("utf-8") != " ".join(PACKAGES):
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / "package.json").write_text('{"private": true}', "utf-8")
        quiet = ["--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(["npm", "install", *quiet, *PACKAGES], cwd=CACHE, check=True, capture_output=True, timeout=600)
        stamp.write_text(" ".join(PACKAGES), "utf-8")
    script.write_text(PARSE, "utf-8")
    return script


def _parse(script: Path, graphs: list[str]) -> list[str]:
    """Return for each graph its kind, or the parser's error."""
    done = subprocess.run(
        ["node", str(script)], input=json.dumps(graphs), capture_output=True, text=True, check=True, timeout=120
    )
    found: list[str] = json.loads(done.stdout)
    return found


def _graphs(text: str) -> list[str]:
    return re.findall(r"^```mermaid\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_graphs_are_mermaid(parser: Path, page: str) -> None:
    """Each graph is a flowchart, and the order of messages a state diagram."""
    text = (SPEC / page).read_text("utf-8")
    kinds = _parse(parser, _graphs(text))
    assert set(kinds) <= {"flowchart-v2", "stateDiagram"}, kinds
    assert kinds.count("stateDiagram") == text.count("\n## Order of messages\n")


def test_graphs_of_an_odd_specification_are_mermaid(parser: Path) -> None:
    """Neither Mermaid's own words as names nor any words in descriptions break a graph."""
    kinds = _parse(parser, _graphs(emit_reference(load_text(ODD, "odd.yaml"))))
    assert kinds == ["stateDiagram", "flowchart-v2"]


def test_parser_refuses_what_is_no_graph(parser: Path) -> None:
    """The check would notice."""
    found = _parse(parser, ['graph TD\n  a["x"y"]', "graph TD\n  subgraph s", "stateDiagram-v2\n  --> x y"])
    assert all(problem.startswith("error: ") for problem in found)
