"""The documentation: each message of the reference has a link to its example, and a page says what is missing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.explorer.build import BuildError, build
from tools.explorer.examples import examples
from tools.language import load
from tools.npm import NpmProgram

_ROOT = Path(__file__).parents[2]
_PAGES = {
    "reference": "pgoutput.yaml",
    "reference-envelope": "replication.yaml",
    "reference-connection": "protocol.yaml",
}


@pytest.mark.slow
def test_links_of_the_reference(tmp_path: Path) -> None:
    """Each message has one, to an example that the page has."""
    pytest.importorskip("sphinx")
    settings = ("root_doc=spec/reference", f"include_patterns={','.join(f'spec/{page}.md' for page in _PAGES)}")
    options = [word for setting in settings for word in ("-D", setting)]
    command = [sys.executable, "-m", "sphinx", "--quiet", "-c", str(_ROOT / "docs"), "-d", str(tmp_path / "doctrees")]
    subprocess.run([*command, *options, str(_ROOT), str(tmp_path / "html")], check=True, cwd=_ROOT, capture_output=True)
    known = {each.id for each in examples(_ROOT / "spec")}
    for page, spec in _PAGES.items():
        text = (tmp_path / "html" / "spec" / f"{page}.html").read_text("utf-8")
        links = re.findall(r'href="\.\./docs/explorer/index\.html#example=(\w+)"', text)
        assert links == [message.class_name for message in load(_ROOT / "spec" / spec).messages]
        assert known.issuperset(links)
    assert (tmp_path / "html" / "docs" / "explorer" / "index.html").exists()


def test_missing_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without esbuild the error says what to run."""
    missing = NpmProgram("no-such-package", "0", "none", "esbuild, which bundles the explorer,")
    monkeypatch.setattr("tools.explorer.build.ESBUILD", missing)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(BuildError, match="was not fetched: run python -m tools"):
        build(tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(BuildError, match="needs node, npm on the PATH"):
        build(tmp_path)
