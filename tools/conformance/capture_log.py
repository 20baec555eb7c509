"""Our capture as a client: what its change log holds is what it has stored, and is read as ``pgoutput tail`` does."""

import json
from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from typing import Any, Final

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogEvent
from pgoutput_construct.changelog.reader import EmptyLogError
from pgoutput_construct.cli._values import Values
from pgoutput_construct.cli.commands._tail_output import Header, TailSelection, _Printer
from pgoutput_construct.cli.commands.tail_command import _Reader
from pgoutput_construct.conformance.conformance_client import ClientTask, ConformanceClient, RunningClient
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.stream.rows import RowChange
from pgoutput_construct.wire import Lsn
from pgoutput_construct.wire.messages import Message
from tools.conformance.adapters.capture_client import LOG
from tools.conformance.forked import ForkedClient

__all__ = ["CaptureClient"]

_MODULE: Final = "tools.conformance.adapters.capture_client"


class CaptureClient(ConformanceClient):
    """Captures in a process of its own; the log is read here, so that nothing is confirmed that is not in it."""

    def __init__(self) -> None:
        self.name = "pgoutput capture"
        self._capture = ForkedClient(self.name, _MODULE)
        self._read: dict[Path, int] = {}
        """The seq up to which each log was read."""

    def start(self, task: ClientTask) -> RunningClient:
        """See ConformanceClient."""
        return _Capture(self._capture.start(task), task.directory / LOG, self._read)


class _Capture(RunningClient):
    def __init__(self, process: RunningClient, log: Path, read: dict[Path, int]) -> None:
        self._process, self._log, self._read = process, log, read
        self._seen: set[str] = set()
        self._problem = ""
        """Why the log cannot be read from a message on: the capture keeps bytes as they came."""
        self._lock = RLock()

    def read(self) -> list[str]:
        """See RunningClient."""
        with self._lock:
            found = {path.name for path in self._log.glob("*.parquet")}
            if found == self._seen or self._problem:
                return []
            self._seen = found
            lines = _Lines(Values())
            try:
                reader = _Reader(ChangeLog(self._log), TailSelection(lines))
                self._read[self._log] = reader.show(self._read.get(self._log, -1), Lsn(0))
                lines.end()
            except EmptyLogError:
                pass
            except PgoutputError as error:
                self._problem = f"the log cannot be read: {error}"
            return lines.found

    @property
    def status(self) -> int | None:
        """See RunningClient."""
        return 1 if self._problem else self._process.status

    @property
    def errors(self) -> str:
        """See RunningClient."""
        return f"{self._process.errors}{self._problem}"

    @property
    def peak(self) -> int | None:
        """See RunningClient."""
        return self._process.peak

    def stop(self) -> None:
        """See RunningClient."""
        self._process.stop()


class _Lines(_Printer):
    """Gathers what ``tail`` would print, as the suite has it."""

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self.found: list[str] = []
        """Those of whole transactions."""
        self._open: list[str] = []
        self._header: Header | None = None

    def change(self, header: Header, seq: int, change: RowChange) -> None:
        """See _Printer."""
        relation = change.relation
        rows = {"new": _row(change.new), "old": _row(change.old)}
        table = f"{relation.namespace or 'pg_catalog'}.{relation.name}"
        self._add(header, {"transaction": str(header.commit_lsn), "table": table, "operation": change.op, **rows})

    def message(self, header: Header | None, seq: int, message: Message) -> None:
        """See _Printer."""
        try:
            content = message.content.decode("utf-8")
        except UnicodeDecodeError:
            content = f"\\x{message.content.hex()}"
        transaction = None if header is None else str(header.commit_lsn)
        said = {"prefix": message.prefix, "content": content}
        self._add(header, {"transaction": transaction, "operation": "message", **said})

    def event(self, event: LogEvent) -> None:
        """See _Printer."""

    def end(self) -> None:
        """Note that the last transaction is complete."""
        self.found += self._open
        self._open = []

    def _add(self, header: Header | None, line: dict[str, Any]) -> None:
        if header is None or header != self._header:
            self.end()
        self._header = header
        self._open.append(json.dumps(line))


def _row(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if row is None else {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, pgo.Binary):
        return {"binary": value.hex()}
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
