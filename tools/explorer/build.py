"""Builds the page: its program in one script, what it knows of the specification, its text and its style."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tools.explorer.examples import examples, recordings
from tools.explorer.settings import settings
from tools.explorer.specification import described
from tools.language import load
from tools.npm import ESBUILD

__all__ = ["FETCH", "SOURCE", "BuildError", "build", "data"]

_ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = _ROOT / "docs" / "explorer"
"""The folder of the page's sources."""
FETCH: Final = "python -m tools.explorer"
"""The command that fetches what is needed, and builds the page."""
_SPECS: Final = {
    "message": ("pgoutput.yaml", "reference", "pgoutput.yaml"),
    "frame": ("replication.yaml", "reference-envelope", "pgoutput.yaml"),
    "connection": ("protocol.yaml", "reference-connection", "protocol.yaml"),
}
"""What the page calls the messages of each specification, the page of their reference, and who has its settings."""
_BUNDLE: Final = ("--bundle", "--format=iife", "--global-name=explorer", "--target=es2022", "--charset=utf8")


class BuildError(Exception):
    """The page cannot be built: esbuild is missing, or refuses the program."""


def build(target: Path, root: Path = _ROOT) -> None:
    """Write the page into a folder.

    Args:
        target: The folder; it is created.
        root: The folder of the specifications with the codec, and of the page's sources.

    Raises:
        BuildError: esbuild is missing, or refuses the program; it says what to do.
    """
    if problem := ESBUILD.missing(FETCH):
        raise BuildError(problem)
    target.mkdir(parents=True, exist_ok=True)
    source = root / SOURCE.relative_to(_ROOT)
    command = [str(ESBUILD.path), str(source / "src" / "main.ts"), *_BUNDLE, f"--outfile={target / 'explorer.js'}"]
    done = subprocess.run([*command, "--log-level=warning"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"esbuild: {done.stderr}")
    known = json.dumps(data(root / "spec"), ensure_ascii=False, separators=(",", ":"))
    (target / "data.js").write_text(f"globalThis.explorerData = {known};\n", "utf-8")
    for name in ("index.html", "explorer.css"):
        shutil.copy(source / name, target)


def data(spec_folder: Path) -> Mapping[str, Any]:
    """Return what the page knows: the specifications, the examples and the recorded streams, as JSON."""
    specs = {name: load(spec_folder / name) for name, _, _ in _SPECS.values()}
    known = {
        kind: {
            **described(specs[name], kind, f"../../spec/{page}.html"),
            "settings": [asdict(each) for each in settings(specs[owner])],
        }
        for kind, (name, page, owner) in _SPECS.items()
    }
    return {
        "specifications": known,
        "examples": [asdict(each) for each in examples(spec_folder)],
        "recordings": [asdict(each) for each in recordings()],
    }
