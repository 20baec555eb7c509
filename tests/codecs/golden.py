"""Golden vectors, as the programs of the codecs in other languages receive them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tools.codecs import answers, is_alike, message_line

__all__ = ["GoldenVector", "golden_vectors", "misread", "settings_of"]

GoldenVector: TypeAlias = tuple[str, Mapping[str, Any]]
"""The line that asks for a vector, and the vector."""

_SAID = {"case", "message", "hex", "fields", "refuse"}
"""What a vector of a message has in addition to its options and the parameters that states set."""


def golden_vectors(spec: Path) -> Iterator[GoldenVector]:
    """Yield all vectors of a folder of specifications."""
    for vector in _rows(spec / "vectors.jsonl"):
        yield message_line(settings_of(vector), vector["hex"]), vector
    for name, words in (("envelope", "frame {hex}"), ("connection", "connection {sender} {state} {hex}")):
        for vector in _rows(spec / f"vectors-{name}.jsonl"):
            yield words.format(**vector), vector


def settings_of(vector: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a vector of a message, and the parameters that its state sets."""
    return {name: value for name, value in vector.items() if name not in _SAID}


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    return map(json.loads, path.read_text("utf-8").split("\n")[1:-1])


def misread(program: Sequence[str], vectors: Sequence[GoldenVector]) -> list[tuple[str, Any]]:
    """Return the first lines to which a program gives another answer than their vectors have, each with the answer."""
    rows = zip(vectors, answers(program, (line for line, _ in vectors)), strict=True)
    return [(line, found) for (line, vector), found in rows if not _is_right(found, vector)][:5]


def _is_right(found: Mapping[str, Any], vector: Mapping[str, Any]) -> bool:
    if "refuse" in vector:
        return {"reason": found.get("refuse"), "offset": found.get("offset")} == vector["refuse"]
    wanted = {"message": vector["message"], **vector["fields"]}
    return is_alike(found, wanted)
