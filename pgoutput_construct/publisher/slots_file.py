"""The file of a publisher's slots, on any file system that a change log can lie on."""

import json
import posixpath
from typing import Any

from pgoutput_construct.changelog.address import open_store
from pgoutput_construct.changelog.store import Address, LogLock, is_uri
from pgoutput_construct.errors import ChangeLogError, PgoutputError

__all__ = ["SlotsFile", "beside"]


class SlotsFile:
    """One file, which one publisher has at a time."""

    def __init__(self, address: Address) -> None:
        """Name it, as a change log's address is said; a relative path is made absolute now."""
        head, question, query = str(address).partition("?") if is_uri(address) else (str(address), "", "")
        folder, self._name = posixpath.split(head)
        self._store = open_store(folder + question + query or ".")
        self._lock: LogLock | None = None

    def __str__(self) -> str:
        return self._store.place(self._name)

    def open(self) -> Any:
        """Keep other publishers out, and return what the file has, {} where there is none; raises PgoutputError."""
        try:
            self._lock = self._store.lock(self._name)
        except ChangeLogError as error:
            raise PgoutputError(f"{self}: {error}; each publisher has a file of its own (--slots)") from error
        try:
            return json.loads(self._store.read(self._name)) if self._store.has(self._name) else {}
        except ValueError as error:
            raise PgoutputError(f"{self}: no file of slots: {error}. Name another file, or remove it") from error

    def write(self, content: Any) -> None:
        """Replace the file, durably; raises PgoutputError, also where another publisher has it now."""
        if self._lock is not None:
            self._lock.check()
        self._store.write(self._name, json.dumps(content, indent=1).encode())

    def close(self) -> None:
        """Let others have it."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def beside(address: Address) -> Address:
    """Return the address of the file that is beside a change log, or another file, by default."""
    if not is_uri(address):
        return f"{address}".rstrip("/") + ".slots.json"
    head, question, query = str(address).partition("?")
    return head.rstrip("/") + ".slots.json" + question + query
