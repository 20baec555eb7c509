"""pg_recvlogical as a client: PostgreSQL's own program, whose file is what it has stored; our parser reads that."""

import json
import shutil
import signal
import subprocess
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

import pgoutput_construct as pgo
from pgoutput_construct.conformance.conformance_client import ClientTask, ConformanceClient, RunningClient
from pgoutput_construct.errors import DecodeError
from pgoutput_construct.wire import parse_prefix
from pgoutput_construct.wire.reference import IncompleteError
from tools.conformance.committed import TransactionAssembler

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PROGRAM", "RecvlogicalClient"]

PROGRAM: Final = "pg_recvlogical"
_STOP_SECONDS: Final = 2.0


class RecvlogicalClient(ConformanceClient):
    """Writes the stream to a file, which is read here."""

    def __init__(self) -> None:
        self.name = PROGRAM
        self._assemblers: dict[Path, TransactionAssembler] = {}

    def start(self, task: ClientTask) -> RunningClient:
        """See ConformanceClient."""
        assembler = self._assemblers.setdefault(task.directory, TransactionAssembler())
        assembler.reconnected()
        return _Recvlogical(task, assembler)


class _Recvlogical(RunningClient):
    def __init__(self, task: ClientTask, assembler: TransactionAssembler) -> None:
        self._assembler, self._lock = assembler, RLock()
        self._layout: dict[str, Any] = {name: task.options[name] for name in ("proto_version", "streaming")}
        number = len(list(task.directory.glob("stream*")))
        self._file, self._errors = task.directory / f"stream{number}", task.directory / "errors.txt"
        self._offset, self._rest, self._problem = 0, b"", ""
        options = {**task.options, "publication_names": '"' + task.publication.replace('"', '""') + '"'}
        given = [
            ("-o", f"{name}={_word(value)}") for name, value in options.items() if value not in (False, "off", "any")
        ]
        command = [shutil.which(PROGRAM) or PROGRAM, "--dbname", task.dsn, "--slot", task.slot, "--start", "--no-loop"]
        command += ["--file", str(self._file), "--status-interval", "1", "--fsync-interval", "1"]
        with self._errors.open("ab") as errors:
            arguments = [*command, *(word for pair in given for word in pair)]
            self._process = subprocess.Popen(arguments, stderr=errors, stdin=subprocess.DEVNULL)

    def read(self) -> list[str]:
        """See RunningClient."""
        with self._lock:
            if self._file.exists() and not self._problem:
                with self._file.open("rb") as file:
                    file.seek(self._offset)
                    data = file.read()
                self._offset += len(data)
                self._rest += data
            lines: list[dict[str, Any]] = []
            while self._rest and not self._problem:
                try:
                    message, end = parse_prefix(
                        self._rest, **self._layout, in_stream=self._assembler.in_stream is not None
                    )
                    if end == len(self._rest):
                        break  # the line break after it has not come
                    lines += self._assembler.take(message)
                except IncompleteError:
                    break
                except (DecodeError, pgo.ProtocolError, KeyError) as error:
                    self._problem = f"its file cannot be read: {error}"
                    break
                if self._rest[end : end + 1] != b"\n":
                    self._problem = f"its file cannot be read: {self._rest[end : end + 1]!r} after a message"
                    break
                self._rest = self._rest[end + 1 :]
        return [json.dumps(line) for line in lines]

    @property
    def status(self) -> int | None:
        """See RunningClient: a file that cannot be read is noticed by whoever reads it."""
        return 1 if self._problem else self._process.poll()

    @property
    def errors(self) -> str:
        """See RunningClient."""
        return f"{self._errors.read_text('utf-8', 'replace')}{self._problem}"

    def stop(self) -> None:
        """See RunningClient."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        self._process.kill()
        self._process.wait()


def _word(value: Any) -> str:
    return "true" if value is True else str(value)
