"""The settings of the documentation: ``tools/docs`` builds it.

Its source is the whole repository, so that pages and the specification's own refer to each other by their paths, which
are links wherever the files are shown.
"""

import re
from typing import Any

from pygments.lexers.special import TextLexer
from sphinx.ext.napoleon.docstring import GoogleDocstring

from pgoutput_construct import __version__

project = "pgoutput_construct"
author = "the pgoutput_construct authors"
copyright = "the pgoutput_construct authors, Apache License 2.0"
version = release = __version__

root_doc = "docs/index"
include_patterns = ["docs/**", "spec/*.md", "spec/*/README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "tools.explorer.pages",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes = False  # options of commands begin with two hyphens

# "Whether it is so; None: it is not known." is no type and its description.
GoogleDocstring._consume_inline_attribute = lambda self: ("", self._dedent(self._consume_to_end()))
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: f"pgoutput_construct.{name}" for name in ("Frame", "PgoutputMessage")}
napoleon_numpy_docstring = False
copybutton_exclude = ".linenos, .gp"

html_theme = "furo"
html_title = f"pgoutput_construct {release}"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"


def setup(app: Any) -> None:
    """Show diagrams of the specification's pages, which some sites draw, as their text; and ``pg_`` as it is."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("autodoc-process-signature", _plain_signature)
    app.connect("sphinx-click-process-options", _escape)


def _plain_signature(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, *texts: str | None) -> Any:
    """Name the type aliases that Sphinx shows as objects of its own; a default such as <factory> is no Python."""
    plain = (text and re.sub(r"TypeAliasForwardRef\('([\w.]+)'\)", r"\1", text) for text in texts)
    return tuple(text and re.sub(r"= <.*?>(?=[,)])", "= ...", text) for text in plain)


def _escape(_app: Any, _context: Any, lines: list[str]) -> None:
    """Escape words that end with an underscore, which would be references, and asterisks of patterns."""
    lines[:] = [re.sub(r"(?<=\w)_(?=\W|$)|(?<=[\w./(])\*(?=[\s.,;:)]|$)|\*(?==)", r"\\\g<0>", line) for line in lines]
