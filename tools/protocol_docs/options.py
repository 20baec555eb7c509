"""Compares a document's statements on versions, options and the flow of messages with the specification."""

import re
from collections.abc import Iterator

from tools.language import Message, Option, Spec
from tools.protocol_docs.differences import Difference
from tools.protocol_docs.document import Document
from tools.protocol_docs.prose import names

__all__ = ["flow", "options", "says_options"]

_SUPPORTED = re.compile(r"Currently (?:only )?versions? (?P<list>.+?) (?:is|are) supported")
_SERVER = re.compile(r"Version (?P<version>\d+) is supported only for server version (?P<server>\d+)")
_MINIMUM = re.compile(
    r"Minimum protocol version (?P<since>\d+) is required (?:for the (?P<value>\w+) value|to turn it on)"
)
_VALUES = re.compile(r"Valid values are (?P<list>.+?)\.")
_PAIR = re.compile(r"between a pair of (?P<first>[A-Z][\w ]*?) and (?P<last>[A-Z][\w ]*?) messages")
_LAST = re.compile(r"last stream of such a transaction contains an? (?P<names>.+?) message")


_CERTAIN = ("proto_version", "publication_names")


def says_options(document: Document) -> bool:
    """Return whether a document lists the options of START_REPLICATION: it has one of the indispensable ones."""
    return any(name in document.entries for name in _CERTAIN)


def options(document: Document, spec: Spec, pg: int) -> Iterator[Difference]:
    """Yield the differences in protocol versions and options."""
    if not says_options(document):
        return
    if "proto_version" in document.entries:
        yield from _versions(document.entries["proto_version"], spec, pg)
    known = {option.name: option for option in spec.options if (option.server or 0) <= pg}
    entries = list(document.entries)
    first = min(entries.index(name) for name in known if name in document.entries)
    for name in entries[first:]:
        if name not in known:
            text = f"the document has it, the specification for PostgreSQL {pg} does not"
            yield Difference("option", "", name, "extra", text)
    for name, option in known.items():
        if name not in document.entries:
            text = f"the specification has it from PostgreSQL {option.server} on, the document does not"
            yield Difference("option", "", name, "nothing", text, option.line)
        else:
            yield from _option(document.entries[name], option, pg)


def _versions(text: str, spec: Spec, pg: int) -> Iterator[Difference]:
    supported = _SUPPORTED.search(text)
    said = {int(name): 0 for name in names(supported["list"])} if supported else {}
    said |= {int(found["version"]): int(found["server"]) for found in _SERVER.finditer(text)}
    known = {version.version: version.server for version in spec.versions if version.server <= pg}
    for version in sorted(said.keys() | known.keys()):
        if version not in said or version not in known:
            has, lacks = ("document", "specification") if version in said else ("specification", "document")
            text = f"the {has} has version {version}, the {lacks} for PostgreSQL {pg} does not"
            yield Difference("protocol versions", "", "", str(version), text)
        elif said[version] not in (0, known[version]):
            text = f"the document gives version {version} to {said[version]}, the specification to {known[version]}"
            yield Difference("protocol versions", "", "", str(version), text)


def _option(text: str, option: Option, pg: int) -> Iterator[Difference]:
    minimum = {found["value"] or "": int(found["since"]) for found in _MINIMUM.finditer(text)}
    expected = {"": option.since} if option.since else {}
    expected |= {value.name: value.since for value in option.values if value.since and (value.server or 0) <= pg}
    expected = {name: since for name, since in expected.items() if not name or since != option.since}
    for name in sorted(minimum.keys() | expected.keys()):
        if minimum.get(name) != expected.get(name):
            said, wanted = minimum.get(name, "none"), expected.get(name, "none")
            text = f"the document's minimum protocol version is {said}, the specification's {wanted}"
            yield Difference("option", "", f"{option.name}{'=' if name else ''}{name}", str(said), text, option.line)
    yield from _values(text, option, pg)


def _values(text: str, option: Option, pg: int) -> Iterator[Difference]:
    listed = _VALUES.search(text)
    if listed is None or not option.values:
        return
    said = [re.sub(r" \(.*?\)", "", name) for name in names(listed["list"])]
    known = [value.name for value in option.values if (value.server or 0) <= pg]
    if said != known:
        text = f"the document has the values {', '.join(said)}, the specification {', '.join(known)}"
        yield Difference("option", "", option.name, ", ".join(said), text, option.line)


def flow(document: Document, spec: Spec) -> Iterator[Difference]:
    """Yield the differences in which messages begin, end, or are enclosed by what."""
    messages = {message.name: message for message in spec.messages}
    for paragraph in document.prose:
        for pair in _PAIR.finditer(paragraph):
            yield from _pair(messages, pair["first"], pair["last"])
        for last in _LAST.finditer(paragraph):
            for name in names(last["names"]):
                yield from _inside(messages, name)


def _pair(messages: dict[str, Message], first: str, last: str) -> Iterator[Difference]:
    opens, closes = messages.get(first), messages.get(last)
    inside = opens.enters if opens else None
    ends = closes is not None and inside in closes.within and (closes.returns or closes.enters not in (None, inside))
    if inside is None or not ends:
        line = opens.line if opens else 0
        text = f"the document says that {first} and {last} enclose others, the specification does not"
        yield Difference("flow", first, "", f"closed by {last}", text, line)


def _inside(messages: dict[str, Message], name: str) -> Iterator[Difference]:
    message, start = messages.get(name), messages.get("Stream Start")
    if message is None or start is None or start.enters not in message.within:
        states = ", ".join(message.within) if message else "nowhere"
        text = f"the document says that it comes inside a stream, the specification: {states}"
        yield Difference("flow", name, "", "inside a stream", text, message.line if message else 0)
