"""The seeds' YAML format: parsing and writing."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from tools.protocol_docs.document import Block, Document, DocumentError, Row, Structure

__all__ = ["from_yaml", "to_data"]

_FENCE = re.compile(r"```\s*yaml(.*?)(?:```|\Z)", re.S)
_LABEL = re.compile(r"(?:(\d+)_(\d+)_)?(.+)")


def to_data(document: Document) -> dict[str, Any]:
    """Return a document in the seeds' format; further keys are present only if needed."""
    data: dict[str, Any] = {"url": document.url, "messages": [_structure(s) for s in document.messages]}
    if document.parts:
        data["parts"] = [_structure(s) for s in document.parts]
    if document.missing:
        data["missing"] = list(document.missing)
    return data


def _structure(structure: Structure) -> dict[str, Any]:
    known = {"sender": structure.sender, "since": structure.since}
    extras = {key: value for key, value in known.items() if value is not None}
    return {"name": structure.name, **extras, "blocks": [_block(block) for block in structure.blocks]}


def _block(block: Block) -> dict[str, Any]:
    if block.alternatives is None:
        until = {"until": "Int8(0)"} if block.ended else {}
        return {"type": block.kind, **until, "fields": [_field(row) for row in block.rows]}
    choice = {"type": "choice_1", "alternatives": [_alternative(rows) for rows in block.alternatives]}
    return {"type": block.kind, "blocks": [choice]}


def _alternative(rows: list[Row]) -> dict[str, Any]:
    then = {"then": [_field(row) for row in rows[1:]]} if len(rows) > 1 else {}
    return {**_field(rows[0]), **then}


def _field(row: Row) -> dict[str, str]:
    return {"field": row.label, "description": row.description}


def from_yaml(text: str) -> Document:
    """Parse the format; the block may be in a Markdown fence, with or without a newline after it."""
    fence = _FENCE.search(text)
    try:
        data = yaml.safe_load(fence[1] if fence else text)
        document = Document("yaml", url=data.get("url"), missing=list(data.get("missing", ())))
        for row in (*data["messages"], *data.get("parts", ())):
            blocks = [_read_block(block) for block in row["blocks"]]
            document.structures.append(Structure(row["name"], blocks, row.get("sender"), row.get("since")))
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise DocumentError(f"the YAML is not in the form that 'extract' prints: {error!r}") from None
    document.partial = any(not text.startswith("url:") for text in document.missing)
    return document


def _read_block(data: Mapping[str, Any]) -> Block:
    if "fields" in data:
        return Block(data["type"], _read_rows(data["fields"]), ended="until" in data)
    alternatives = data["blocks"][0]["alternatives"]
    return Block(data["type"], alternatives=[_read_rows([a, *a.get("then", ())]) for a in alternatives])


def _read_rows(fields: Iterable[Mapping[str, Any]]) -> list[Row]:
    rows = []
    for field in fields:
        match = _LABEL.fullmatch(field["field"])
        if match is None:
            raise DocumentError(f"{field['field']!r} is no field")
        position = (int(match[1]), int(match[2])) if match[1] else None
        rows.append(Row(match[3], field.get("description") or "", position=position))
    return rows
