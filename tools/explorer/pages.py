"""An extension of Sphinx: builds the explorer into the documentation, and links the messages of the reference to it."""

from pathlib import Path
from typing import Any, Final

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from tools.explorer.build import BuildError, build
from tools.explorer.examples import examples

_ROOT: Final = Path(__file__).parents[2]
_FOLDER: Final = "docs/explorer"
"""Where it is in the documentation."""
_REFERENCES: Final = ("spec/reference", "spec/reference-envelope", "spec/reference-connection")
_MISSING: Final = """<!doctype html>
<meta charset="utf-8">
<title>Explorer</title>
<p>The explorer was not built: {problem}. Then build the documentation again: <code>tools/docs</code>.</p>
<p><a href="../index.html">Documentation</a></p>
"""

_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what it does."""
    app.connect("doctree-resolved", _link_messages)
    app.connect("build-finished", _build)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _link_messages(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Add a link to each message of the reference: it opens an example in the explorer."""
    if docname not in _REFERENCES or app.builder.format != "html":
        return
    known = {each.message for each in examples(_ROOT / "spec")}
    address = app.builder.get_relative_uri(docname, "docs/index").removesuffix("index.html") + "explorer/index.html"
    for section in doctree.findall(nodes.section):
        name = section[0].astext().replace(" ", "")
        if name in known and (facts := next(section.findall(nodes.bullet_list), None)) is not None:
            link = nodes.reference("", "its bytes in the explorer", refuri=f"{address}#example={name}", internal=False)
            facts += nodes.list_item("", nodes.paragraph("", "", nodes.Text("Example: "), link))


def _build(app: Sphinx, error: Exception | None) -> None:
    """Build the page; where that is impossible, a page says so, and what to do."""
    if error is not None or app.builder.format != "html":
        return
    target = Path(app.outdir) / _FOLDER
    try:
        build(target)
    except BuildError as problem:
        target.mkdir(parents=True, exist_ok=True)
        (target / "index.html").write_text(_MISSING.format(problem=problem), "utf-8")
        _log.info("the explorer was not built: %s", problem)
