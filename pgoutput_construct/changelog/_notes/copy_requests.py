"""Requests for table copies: small files in a log, which its capture fulfils and then removes."""

import json
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Final

from pgoutput_construct.changelog._store.json_notes import read_note
from pgoutput_construct.changelog._store.store import LogStore

__all__ = [
    "CopyRequest",
    "TableName",
    "ask",
    "fulfil",
    "requests",
    "was_fulfilled",
]

TableName = tuple[str, str]
"""Schema and name of a table, as the catalog has them."""

_FOLDER: Final = "requests"


@dataclass(frozen=True)
class CopyRequest:
    """A request to copy tables as they are now."""

    tables: tuple[TableName, ...]
    """The tables."""
    reason: str = ""
    """Why, in words; empty if a person requested it."""
    workers: int | None = None
    """The number of connections that copy; None: as many as the capture has by its options."""
    number: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Its id, which the event COPIED_TABLE has in ``requests``."""


def ask(store: LogStore, tables: Iterable[TableName], reason: str = "", workers: int | None = None) -> CopyRequest:
    """Request copies of tables.

    Args:
        store: The store of the log.
        tables: Schema and name of each table.
        reason: Why, in words; empty if a person requests it.
        workers: The number of connections that copy; None: as the capture's options say.

    Raises:
        ChangeLogError: The file of the request cannot be written.
    """
    request = CopyRequest(tuple(tables), reason, workers)
    store.write(_file(request), json.dumps(asdict(request)).encode())
    return request


def requests(store: LogStore) -> list[CopyRequest]:
    """Return the requests that are not fulfilled yet; raises ChangeLogError for a damaged one."""
    names = sorted(name for name in store.files(_FOLDER) if name.endswith(".json"))
    return [request for name in names if (request := _read(store, f"{_FOLDER}/{name}")) is not None]


def fulfil(store: LogStore, request: CopyRequest) -> None:
    """Remove a request whose copies are durable, or that cannot be fulfilled."""
    store.delete(_file(request))


def was_fulfilled(store: LogStore, request: CopyRequest) -> bool:
    """Return whether a request was fulfilled, or withdrawn."""
    return not store.has(_file(request))


def _file(request: CopyRequest) -> str:
    return f"{_FOLDER}/request-{request.number}.json"


def _read(store: LogStore, file: str) -> CopyRequest | None:
    return read_note(store, file, CopyRequest, remedy="it should request copies of tables; remove it")
