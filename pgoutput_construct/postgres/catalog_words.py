"""What changed in the catalog, in words for the operator."""

from collections.abc import Mapping
from typing import Any

from pgoutput_construct.changelog.wholeness import UnpublishedColumns
from pgoutput_construct.stream.identifiers import qualified_name

__all__ = ["column_words", "publication_words", "table_words"]

Facts = Mapping[str, Any]


def table_words(before: Facts | None, after: Facts) -> str | None:
    """Say what became of a table as a whole; None for what the log alone need know."""
    if before is None:
        return None
    was, now = _title(before), _title(after)
    if after.get("gone"):
        return f"table {was} was dropped"
    if was != now:
        return f"table {was} is called {now} now"
    leaves = {oid for oid, _ in after["filenodes"]} - {oid for oid, _ in before["filenodes"]}
    gone = {oid for oid, _ in before["filenodes"]} - {oid for oid, _ in after["filenodes"]}
    changes = [f"{len(found)} {what}" for found, what in ((leaves, "attached"), (gone, "gone")) if found]
    return f"partitions of table {now}: {', '.join(changes)}" if changes else None


def column_words(before: Facts | None, after: Facts) -> str | None:
    """Say which generated columns the log will be without, when they are seen first."""
    known = {} if before is None else _unpublished(before)
    found = _unpublished(after)
    return str(UnpublishedColumns.of(after["oid"], _title(after), found)) if found.keys() - known.keys() else None


def publication_words(before: Facts | None, after: Facts) -> str | None:
    """Say what a publication publishes now that it did not, and the other way round."""
    if before is None or not after.get("captured", True):
        return None
    was, now = ({table["oid"]: table for table in facts.get("tables", ())} for facts in (before, after))
    parts = {
        "publishes also": [_title(now[oid]) for oid in now.keys() - was.keys()],
        "no longer publishes": [_title(was[oid]) for oid in was.keys() - now.keys()],
        "has another filter or list of columns for": [
            _title(now[oid]) for oid in now.keys() & was.keys() if _rules(now[oid]) != _rules(was[oid])
        ],
        "has partitions that are foreign or unlogged, of which the server sends nothing:": [
            _title(each) for each in after["unsent"] if each not in before.get("unsent", ())
        ],
        "publishes only": after["operations"] if after["operations"] != before.get("operations") else [],
    }
    changes = [f"{what} {', '.join(sorted(names))}" for what, names in parts.items() if names]
    return f"publication {after['publication']!r} was changed: {'; it '.join(changes)}" if changes else None


def _unpublished(table: Facts) -> dict[str, str]:
    columns = (column for column in table["columns"] if "generated" in column and not column.get("published"))
    return {column["name"]: column["generated"] for column in columns}


def _title(table: Facts) -> str:
    return qualified_name(table["schema"], table["name"])


def _rules(table: Facts) -> tuple[Any, ...]:
    return table.get("filter"), table.get("columns"), table.get("member")
