"""psycopg2 and the decoders of pypgoutput: its reader asks the catalog for columns, which these cases do not have."""

from typing import Any

from pgoutput_construct.conformance.conformance_client import ClientTask
from tools.benchmark.pypgoutput import decoders, parsers
from tools.conformance.adapters.psycopg2_loop import TransactionParser, follow
from tools.conformance.forked import Report

__all__ = ["run"]

_KNOWN = "BCRIUDT"


class _Parser(TransactionParser):
    def __init__(self) -> None:
        super().__init__()
        path = decoders()
        assert path is not None, "pypgoutput is not installed: python -m tools.benchmark peers"
        self._classes = parsers(path)
        self._relations: dict[int, Any] = {}
        self._begin: Any = None

    def take(self, data: bytes) -> int | None:
        """See TransactionParser."""
        tag = chr(data[0])
        if tag not in _KNOWN:
            return None  # as its reader does
        message = self._classes[data[0]](data)
        if tag == "C":
            if self._begin is None or message.lsn_commit != self._begin.lsn or message.flags:
                raise ValueError("a Commit that is not that of its Begin, or has unknown flags")
            self._begin = None
            return int(message.lsn)
        if tag == "B":
            if not message.lsn:
                raise ValueError("a Begin without an LSN")
            self._begin = message
        elif tag == "R":
            self._relations[message.relation_id] = message
        elif tag == "T":
            for oid in message.relation_ids:
                self._add("truncate", self._relations[oid], None, None)
        else:
            relation = self._relations[message.relation_id]
            new, old = getattr(message, "new_tuple", None), getattr(message, "old_tuple", None)
            kind = getattr(message, "optional_tuple_identifier", None) or getattr(message, "message_type", None)
            self._add(type(message).__name__.lower(), relation, _row(relation, new), _row(relation, old, kind == "K"))
        return None

    def _add(self, operation: str, relation: Any, new: Any, old: Any) -> None:
        table = f"{relation.namespace}.{relation.relation_name}"
        self.changes.append({"table": table, "operation": operation, "new": new, "old": old})


def _row(relation: Any, values: Any, is_key: bool = False) -> dict[str, Any] | None:
    if values is None:
        return None
    pairs = zip(relation.columns, values.column_data, strict=False)
    return {
        column.name: value.col_data
        for column, value in pairs
        if value.col_data_category != "u" and (column.part_of_pkey or not is_key)
    }


def run(task: ClientTask, report: Report) -> None:
    """Follow the slot."""
    follow(task, report, _Parser)
