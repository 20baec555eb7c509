"""What tshark shows of a capture, through the generated dissector."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

__all__ = ["DISSECTOR", "ShownField", "ShownMessage", "columns", "fields_of", "installed", "shown"]

DISSECTOR = Path(__file__).parents[2] / "spec/pgoutput.lua"
LABEL = re.compile(r"[^:( ]+")


@dataclass(frozen=True)
class ShownField:
    """A field as it stands below its message."""

    path: str
    name: str
    """Its name in filters."""
    start: int
    size: int
    value: bytes
    show: str
    text: str


@dataclass(frozen=True)
class ShownMessage:
    """A frame of the envelope, or the message in it."""

    name: str
    data: bytes
    state: str = ""
    fields: tuple[ShownField, ...] = ()
    experts: tuple[str, ...] = field(default=())


def installed() -> bool:
    """Tell whether tshark is here."""
    return shutil.which("tshark") is not None


def shown(capture: Path, *arguments: str) -> list[ShownMessage]:
    """Return all frames and messages in a capture, in order; more arguments are tshark's."""
    output = _tshark(capture, "-T", "pdml", "-J", "pgoutput", *arguments)
    tree = ElementTree.fromstring(output)
    return [_message(element) for element in tree.iterfind("packet/proto[@name='pgoutput']/field")]


def columns(capture: Path, *arguments: str) -> list[str]:
    """Return the lines of the list of packets: protocol and info."""
    return _tshark(capture, "-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info", *arguments).splitlines()


def fields_of(dissector: Path = DISSECTOR) -> list[list[str]]:
    """Return the fields that a dissector registers, as tshark -G lists them."""
    rows = (line.split("\t") for line in _run(dissector, "-G", "fields").splitlines())
    return [row for row in rows if row[0] == "F" and row[2].startswith("pgoutput.")]


def _tshark(capture: Path, *arguments: str) -> str:
    return _run(DISSECTOR, "-r", str(capture), *arguments)


def _run(dissector: Path, *arguments: str) -> str:
    command = ["tshark", "-X", f"lua_script:{dissector}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "lua" not in done.stderr.lower(), done.stderr
    return done.stdout


def _message(element: ElementTree.Element) -> ShownMessage:
    name, base = element.get("show", ""), int(element.get("pos", 0))
    states = [each.get("show", "") for each in element if each.get("name") == "pgoutput.state"]
    experts = [each.get("showname", "") for each in element.iter() if each.get("name") == "_ws.expert"]
    fields = tuple(_fields(element, name.replace(" ", ""), base))
    return ShownMessage(name, bytes.fromhex(element.get("value", "")), *states[:1] or [""], fields, tuple(experts))


def _fields(parent: ElementTree.Element, path: str, base: int) -> Iterator[ShownField]:
    for element in parent:
        name, text = element.get("name", ""), element.get("showname", "")
        label = LABEL.match(text)
        if name == "pgoutput.state" or not name.startswith("pgoutput.") or label is None:
            continue
        below = f"{path}.{label[0]}"
        value = bytes.fromhex(element.get("value", ""))
        if value or not len(element):
            start, size = int(element.get("pos", 0)) - base, int(element.get("size", 0))
            yield ShownField(below, name, start, size, value, element.get("show", ""), text)
        yield from _fields(element, below, base)
