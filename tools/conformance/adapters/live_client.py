"""Our live client: ``pgoutput_construct.postgres.stream``."""

from typing import Any

import pgoutput_construct as pgo
from pgoutput_construct.conformance.conformance_client import ClientTask
from pgoutput_construct.postgres import stream
from pgoutput_construct.postgres._live_batches import load_kernels
from tools.conformance.adapters.names import plain_name
from tools.conformance.forked import Report

__all__ = ["run"]

load_kernels()  # once for all processes that are forked from this one


def run(task: ClientTask, report: Report) -> None:
    """Report the changes of the slot, and confirm each transaction."""
    options: Any = {name: task.options[name] for name in ("binary", "origin")}
    with stream(
        task.dsn, task.slot, [task.publication], values="raw", status_interval=1.0, reconnect_seconds=5.0, **options
    ) as transactions:
        for transaction in transactions:
            lines = [_line(transaction.xid, change) for change in transaction]
            for line in lines:
                report(line)
            transactions.confirm(transaction)


def _line(xid: int, change: Any) -> dict[str, Any]:
    new, old = (_row(row) for row in (change.new, change.old))
    return {"transaction": xid, "table": plain_name(change.table), "operation": change.op, "new": new, "old": old}


def _row(row: Any) -> dict[str, Any] | None:
    return None if row is None else {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, pgo.Binary):
        return {"binary": value.hex()}
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
