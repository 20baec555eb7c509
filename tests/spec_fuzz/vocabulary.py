"""Which words of the language invented specifications use: each key of the schema, where it can stand."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.spec_fuzz.tables_agreement import PAGE_WORDS, TABLE_WORDS
from tools.language import SPEC

__all__ = ["LEFT_OUT", "asserted_by", "vocabulary", "words_of"]

LEFT_OUT = frozenset(
    {"documents", "documented", "title", "source", "protocol", "brings", "group", "ignored", "carries", "plain_copy"}
)
"""Words that no layout depends on."""

_HOLDERS = {
    "messages": "message", "parts": "part", "versions": "version", "states": "state", "options": "option",
    "fields": "field", "then": "field", "alternatives": "alternative", "blocks": "block",
}  # fmt: skip
"""What each list holds."""


def vocabulary() -> set[str]:
    """Return the words of the schema: ``field.until``, ``repeat.when`` and so on."""
    definitions = json.loads((SPEC / "language.schema.json").read_text("utf-8"))["$defs"]
    kinds = {
        "message": "message", "part": "part", "state": "state", "option": "option", "option_value": "value",
        "field": "field", "alternative": "alternative", "repeat_block": "repeat", "choice_block": "choice",
        "meaning": "meaning",
    }  # fmt: skip
    found = {f"{name}.{key}" for each, name in kinds.items() for key in definitions[each]["properties"]}
    found |= {f"when.{key}" for each in definitions["when"]["oneOf"] for key in each.get("properties", ())}
    return {word for word in found if word.partition(".")[2] not in LEFT_OUT}


def asserted_by() -> Mapping[str, set[str]]:
    """Return what is held against each word that is used: tables, the reference page, or the layouts of messages."""
    words = vocabulary()
    return {
        "tables": words & TABLE_WORDS,
        "reference page": words & PAGE_WORDS,
        "layouts, by engines, kernels, vectors and Kaitai Struct": words - TABLE_WORDS - PAGE_WORDS,
    }


def words_of(data: Mapping[str, Any]) -> Counter[str]:
    """Return the words that a specification uses, and how often."""
    return Counter(_words(data, "specification"))


def _words(data: Any, kind: str) -> Iterator[str]:
    if isinstance(data, list):
        for each in data:
            yield from _words(each, kind)
        return
    if not isinstance(data, Mapping):
        return
    if kind == "block":
        kind = str(data["type"]).partition("_")[0]
    for key, value in data.items():
        yield f"{kind}.{key}"
        if key in ("when", "not", "all", "any"):
            yield from _words(value, "when")
        elif key in ("values", "bits") and kind == "field":
            yield from _words(list(value.values()), "meaning")
        elif key == "values":
            yield from _words(value, "value")
        elif key in _HOLDERS:
            yield from _words(value, _HOLDERS[key])
