"""psycopg2 and the parser by hand of the benchmarks, which trusts its input: as many programs have one."""

import struct
from typing import Any

from pgoutput_construct.conformance.conformance_client import ClientTask
from tools.benchmark.psycopg2_consumer import HandwrittenParser
from tools.conformance.adapters.psycopg2_loop import TransactionParser, follow
from tools.conformance.forked import Report

__all__ = ["run"]


class _Parser(TransactionParser):
    def __init__(self) -> None:
        super().__init__()
        self._parser = HandwrittenParser(converters={})  # the texts as they are

    def take(self, data: bytes) -> int | None:
        """See TransactionParser."""
        if data[:1] == b"C":
            return int(struct.unpack_from(">Q", data, 10)[0])
        for change in self._parser.changes(data, 0):
            rows: dict[str, Any] = {"new": change.new, "old": change.old}
            self.changes.append({"table": change.table, "operation": change.op, **rows})
        return None


def run(task: ClientTask, report: Report) -> None:
    """Follow the slot."""
    follow(task, report, _Parser)
