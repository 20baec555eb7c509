"""What tshark shows of a capture through a generated dissector, as plain values."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

__all__ = ["DISSECTOR", "NEEDS_TSHARK", "ShownField", "ShownMessage", "filter_names", "packets", "shown"]

DISSECTOR = Path(__file__).parents[2] / "spec/pgoutput.lua"
NEEDS_TSHARK = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is missing: apt-get install tshark")

_LABEL = re.compile(r"[^:( ]+")
_STATE, _PREFIX, _EXPERT = "pgoutput.state", "pgoutput.", "_ws.expert"


@dataclass(frozen=True, slots=True)
class ShownField:
    """A field below a message, its place counted from the first byte of that."""

    path: str
    start: int
    size: int
    data: bytes
    value: str
    """As filters compare it."""
    text: str
    """As people see it."""


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A frame of the envelope, or the message in it."""

    name: str
    data: bytes
    text: str
    state: str
    """Where in the stream it stands, and the options; empty for a frame."""
    fields: tuple[ShownField, ...]
    experts: tuple[str, ...]
    """What is wrong with it."""

    @property
    def columns(self) -> list[str]:
        """The texts of the values of its rows."""
        return [field.text for field in self.fields if field.path.endswith("]")]


def shown(capture: Path, *arguments: str, dissector: Path = DISSECTOR) -> list[ShownMessage]:
    """Return the frames and the messages of a capture, each frame before its message; arguments are tshark's."""
    wanted = ("-T", "pdml", "-J", "pgoutput", "-o", "pgoutput.descriptions:TRUE")
    output = _tshark("-X", f"lua_script:{dissector}", "-r", str(capture), *wanted, *arguments)
    assert "Lua Error" not in output
    found = ElementTree.fromstring(output).iterfind("packet/proto[@name='pgoutput']/field")
    return [_message(element) for element in found]


def packets(capture: Path, *arguments: str) -> list[list[str]]:
    """Return protocol and info of each packet, as the list of packets shows them."""
    wanted = ("-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info")
    lines = _tshark("-X", f"lua_script:{DISSECTOR}", "-r", str(capture), *wanted, *arguments).splitlines()
    return [line.split("\t") for line in lines]


def filter_names(home: Path) -> dict[str, str]:
    """Return the names of fields in filters, and their types; the dissector is installed into an empty home."""
    plugins = home / ".local/lib/wireshark/plugins"
    plugins.mkdir(parents=True)
    shutil.copy(DISSECTOR, plugins)
    rows = (line.split("\t") for line in _tshark("-G", "fields", HOME=str(home)).splitlines())
    return {row[2]: row[3] for row in rows if row[0] == "F" and row[2].startswith(_PREFIX)}


def _tshark(*arguments: str, **environment: str) -> str:
    command = ["tshark", *arguments]
    done = subprocess.run(command, capture_output=True, check=True, env=os.environ | environment)
    assert b"lua" not in done.stderr.lower(), done.stderr
    return done.stdout.decode("utf-8", "replace")  # it cuts what stands for bytes that are no UTF-8


def _message(element: ElementTree.Element) -> ShownMessage:
    name, base = element.get("show", ""), int(element.get("pos", 0))
    states = [_text(each) for each in element if each.get("name") == _STATE]
    experts = [_text(each) for each in element.iter() if each.get("name") == _EXPERT]
    fields = tuple(_fields(element, name.replace(" ", ""), base))
    data = bytes.fromhex(element.get("value", ""))
    return ShownMessage(name, data, _text(element), "".join(states), fields, tuple(experts))


def _fields(parent: ElementTree.Element, path: str, base: int) -> Iterator[ShownField]:
    for element in parent:
        name, label = element.get("name", ""), _LABEL.match(_text(element))
        if name == _STATE or not name.startswith(_PREFIX) or label is None:
            continue
        below, data = f"{path}.{label[0]}", bytes.fromhex(element.get("value", ""))
        if data or not len(element):  # the others only hold some
            start, size = int(element.get("pos", 0)) - base, int(element.get("size", 0))
            yield ShownField(below, start, size, data, element.get("show", ""), _text(element))
        yield from _fields(element, below, base)


def _text(element: ElementTree.Element) -> str:
    return element.get("showname", "")
