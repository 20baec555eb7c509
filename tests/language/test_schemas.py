"""The schemas serve editors: each file names its own, and every key is described."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tools.language import SPEC

SCHEMAS = {
    "pgoutput": "language",
    "replication": "language",
    "protocol": "language",
    "types": "types",
    "builtin_types": "builtin_types",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_first_line_names_the_schema(name: str) -> None:
    """An editor finds it by the comment that the language server of YAML knows."""
    first = (SPEC / f"{name}.yaml").read_text("utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema={SCHEMAS[name]}.schema.json"
    assert (SPEC / f"{SCHEMAS[name]}.schema.json").is_file()


def keys(schema: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every key, and its description."""
    if isinstance(schema, dict):
        for name, each in schema.get("properties", {}).items() if isinstance(schema.get("properties"), dict) else ():
            yield f"{path}/{name}", each.get("description", "")
        for name, each in schema.items():
            yield from keys(each, f"{path}/{name}")
    elif isinstance(schema, list):
        for number, each in enumerate(schema):
            yield from keys(each, f"{path}/{number}")


@pytest.mark.parametrize("name", sorted(set(SCHEMAS.values())))
def test_every_key_is_described(name: str) -> None:
    """What an editor shows for a key."""
    schema = json.loads((SPEC / f"{name}.schema.json").read_text("utf-8"))
    conditions = ("/if/", "/oneOf/1/")  # which form it is, not what the key means
    found = [(path, about) for path, about in keys(schema) if not any(each in path for each in conditions)]
    assert len(found) > 5
    assert [path for path, about in found if not about] == []
