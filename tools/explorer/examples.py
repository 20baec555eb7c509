"""The messages that the page offers: some of each kind, from recorded streams and from the golden vectors."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from pgoutput_construct.stream.state import StreamState
from pgoutput_construct.wire import Lsn, Timestamp, build, build_frame, parse
from pgoutput_construct.wire.frames import XLogData
from pgoutput_construct.wire.messages import PgoutputMessage, Relation
from pgoutput_construct.wire.options import STATE_PARAMETERS
from pgoutput_construct.wire.trace import trace, trace_frame
from tools.generate.reference.reference_table import field_rows
from tools.language import Choice, Spec, load

__all__ = ["Example", "Recording", "examples", "recordings"]

_ROOT: Final = Path(__file__).parents[2]
_RECORDED: Final = {
    "18-v4-text": "PostgreSQL 18, version 4: streamed and prepared transactions, values as text",
    "18-v1-binary": "PostgreSQL 18, version 1: values in binary format",
}
"""The recorded streams that the page has, in tests/data/recordings."""
_MOST: Final = 5
"""Examples of one message."""
_IS_RECORDED: Final = "recorded"
"""How titles end of examples from recorded streams."""
_OF_VECTORS: Final = {"case", "message", "hex", "fields", "refuse"}
"""What vectors have besides the settings."""
_LONGEST: Final = 160
"""Bytes of a recorded message that is an example."""


@dataclass(frozen=True)
class Example:
    """One message, and how it is read."""

    id: str
    message: str
    """Its class name; the first example of a message has that as its ``id``."""
    title: str
    kind: str
    hex: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    """The Relation messages of its tables, as they are outside of a stream."""


@dataclass(frozen=True)
class Recording:
    """A recorded stream."""

    id: str
    title: str
    settings: Mapping[str, Any]
    messages: tuple[str, ...]


def recordings() -> list[Recording]:
    """Return the recorded streams."""
    return [_recording(name, title) for name, title in _RECORDED.items()]


def _recording(name: str, title: str) -> Recording:
    head, *lines = (_ROOT / f"tests/data/recordings/{name}.txt").read_text("utf-8").splitlines()
    options = json.loads(head.removeprefix("#"))
    return Recording(name, title, {word: options[word] for word in ("proto_version", "streaming")}, tuple(lines))


@cache
def examples(spec_folder: Path) -> tuple[Example, ...]:
    """Return the examples: of each message those that have something that those before have not.

    Args:
        spec_folder: The folder of the golden vectors.
    """
    recorded = [each for recording in recordings() for each in _recorded(recording)]
    golden = [*_vectors(spec_folder / "vectors.jsonl", "message")]
    frames = [*_carrying(recorded), *_vectors(spec_folder / "vectors-envelope.jsonl", "frame")]
    connection = _vectors(spec_folder / "vectors-connection.jsonl", "connection")
    names = _tag_names(load(spec_folder / "pgoutput.yaml"))
    chosen = [*_chosen([*recorded, *golden]), *_chosen(frames), *_chosen(connection)]
    return tuple(replace(each, title=_title(each, shape, names)) for each, shape in chosen)


def _tag_names(spec: Spec) -> Mapping[str, Mapping[str, str]]:
    """Return the names of the branches of each choice, by the keys of traces and the tags."""
    choices = ((row.key, row.element) for row in field_rows(spec))
    return {
        key: {each.letter: each.name for each in choice.alternatives}
        for key, choice in choices
        if isinstance(choice, Choice)
    }


def _recorded(recording: Recording) -> Iterator[Example]:
    state, relations = StreamState(), dict[int, str]()
    for line in recording.messages:
        settings = {**recording.settings, **state.parameters}
        message = parse(bytes.fromhex(line), **settings)
        if len(line) <= 2 * _LONGEST:
            named = () if isinstance(message, Relation) else tuple(_described(message, relations))
            yield Example("", type(message).__name__, _IS_RECORDED, "message", line, settings, named)
        if isinstance(message, Relation):
            relations[message.relation_oid] = build(replace(message, xid=None), 1).hex()
        state.follow(message)


def _described(message: PgoutputMessage, relations: Mapping[int, str]) -> Iterator[str]:
    """Yield the Relation messages of the tables of a message."""
    oids = getattr(message, "relation_oids", None) or [getattr(message, "relation_oid", None)]
    yield from (relations[oid] for oid in oids if oid in relations)


def _carrying(recorded: Iterable[Example]) -> Iterator[Example]:
    """Yield frames with recorded messages."""
    for each in recorded:
        if each.message in ("Update", "Insert") and not _set_by_state(each):
            lsn = Lsn(0x16B3748)
            data = build_frame(XLogData(lsn, lsn, Timestamp(0), bytes.fromhex(each.hex)))
            yield replace(each, message="XLogData", kind="frame", hex=data.hex())


def _vectors(path: Path, kind: str) -> Iterator[Example]:
    for line in path.read_text("utf-8").splitlines()[1:]:
        vector = json.loads(line)
        if "fields" in vector:
            yield Example("", vector["message"], "golden vector", kind, vector["hex"], _settings(vector))
        elif vector["refuse"]["reason"] == "truncated" and vector["refuse"]["offset"] > 8:
            title = f"golden vector, refused: {vector['case']}"
            yield Example("", vector["message"], title, kind, vector["hex"], _settings(vector))


def _settings(vector: Mapping[str, Any]) -> Mapping[str, Any]:
    return {word: value for word, value in vector.items() if word not in _OF_VECTORS}


def _chosen(candidates: Iterable[Example]) -> "Iterator[tuple[Example, _Shape]]":
    """Yield some of each message: recorded ones first, of these the ones with the most tags, and refused ones last."""
    by_message: dict[str, list[tuple[Example, _Shape]]] = {}
    for each, shape in sorted(((each, _shape(each)) for each in candidates), key=_rank):
        found = by_message.setdefault(each.message, [])
        known = frozenset[str]().union(*(seen.all for _, seen in found))
        alike = sum(seen.is_refused == shape.is_refused for _, seen in found)
        if alike < (1 if shape.is_refused else _MOST) and not shape.all <= known:
            found.append((each, shape))
    for message, found in by_message.items():
        for number, (each, shape) in enumerate(found, 1):
            yield replace(each, id=message if number == 1 else f"{message}-{number}"), shape


def _rank(pair: "tuple[Example, _Shape]") -> tuple[bool, bool, int]:
    example, shape = pair
    return shape.is_refused, example.title != _IS_RECORDED, -len(set("".join(shape.tags.values())))


@dataclass(frozen=True)
class _Shape:
    """What a message shows."""

    keys: frozenset[str] = frozenset()
    tags: Mapping[str, str] = field(default_factory=dict)
    """The tags of its choices, by their keys."""
    set: frozenset[str] = frozenset()
    """The parameters that its state sets."""
    is_refused: bool = False

    @property
    def all(self) -> frozenset[str]:
        """All of it, to be compared with what other examples show."""
        tags = (f"{name}={tag}" for name, tags in self.tags.items() for tag in tags)
        states = (f"{name} {name in self.set}" for name in STATE_PARAMETERS)
        return frozenset([*self.keys, *tags, *states, f"refused {self.is_refused}"])


def _shape(example: Example) -> _Shape:
    data, settings = bytes.fromhex(example.hex), example.settings
    if example.kind == "connection":
        return _Shape(is_refused="refused" in example.title)
    if example.kind == "frame":
        found = trace_frame(data, **{name: value for name, value in settings.items() if name not in STATE_PARAMETERS})
    else:
        found = trace(data, **settings)
    tags = dict[str, str]()
    for span in found.spans:
        if found.fields[span.key].notation == "Byte1":
            tags[span.key] = "".join(sorted({*tags.get(span.key, ""), span.value}))
    keys = frozenset(span.key for span in found.spans)
    return _Shape(keys, tags, _set_by_state(example), found.fault is not None)


def _set_by_state(example: Example) -> frozenset[str]:
    return frozenset(name for name in STATE_PARAMETERS if example.settings.get(name))


def _title(example: Example, shape: _Shape, names: Mapping[str, Mapping[str, str]]) -> str:
    """Return what tells an example from the others of its message."""
    settings, branches = example.settings, dict[str, dict[str, None]]()
    for key, tags in ({} if shape.is_refused else shape.tags).items():
        name = key.rpartition(".")[2].removesuffix("[]").removesuffix("_kind")
        branches.setdefault(name, {}).update(dict.fromkeys(names[key][tag] for tag in tags))
    words = [f"{name} {'/'.join(found)}" for name, found in branches.items()]
    words += [f"version {settings['proto_version']}"] if "proto_version" in settings else []
    words += sorted(shape.set)
    words += [f"from the {settings['sender']}"] if "sender" in settings else []
    return ", ".join([*words, example.title])
