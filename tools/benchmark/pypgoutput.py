"""The parser of pypgoutput, from the package index: its module ``decoders`` alone, since the others want psycopg2."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, Final

from tools.benchmark.batch import Batch
from tools.benchmark.errors import Unavailable
from tools.benchmark.harness import PEERS
from tools.benchmark.measure import Pass, timed
from tools.benchmark.messages import each

__all__ = ["REQUIREMENT", "decoders", "parsers", "prepare", "start"]

REQUIREMENT = "pypgoutput==0.0.3"
"""What is installed, without its dependencies, into a folder of its own."""

_FOLDER: Final = PEERS / "peers" / "pypgoutput"
_CLASSES = ("Begin", "Commit", "Relation", "Insert", "Update", "Delete", "Truncate")


def decoders() -> Path | None:
    """Return the file of the parser, None where it is not installed."""
    path = _FOLDER / "pypgoutput" / "decoders.py"
    return path if path.exists() else None


@cache
def prepare() -> Path | str:
    """Install the parser if necessary, at most once per process; return its file, or why it is not available."""
    if path := decoders():
        return path
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--target", str(_FOLDER), REQUIREMENT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return decoders() or f"pip install {REQUIREMENT} failed: {done.stderr.strip()[-600:]}"


def parsers(path: Path) -> Mapping[int, Callable[[bytes], Any]]:
    """Return its message classes by the first byte of a message."""
    spec = importlib.util.spec_from_file_location("pypgoutput_decoders", path)
    if spec is None or spec.loader is None:
        raise Unavailable(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look for their own module there
    spec.loader.exec_module(module)
    return {ord(name[0]): getattr(module, name) for name in _CLASSES}


def start(batch: Batch, _stack: ExitStack) -> Pass:
    """Make ready for a batch, installing the parser if need be."""
    if batch.case.streaming != "off":
        raise Unavailable("it does not know streamed transactions")
    if batch.case.binary:
        raise Unavailable("it does not know binary values")
    path = prepare()
    if isinstance(path, str):
        raise Unavailable(path)
    classes = parsers(path)

    def parse(payload: bytes) -> Any:
        return classes[payload[0]](payload)

    return timed(lambda: each(parse, batch.payloads), len(batch))
