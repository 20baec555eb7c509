"""Wishes for copies of tables: small files in a log, which the capture that writes it fulfils and then removes."""

import json
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Final

from pgoutput_construct.changelog._store.store import LogStore, MissingFileError
from pgoutput_construct.errors import ChangeLogError

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
    """Tables of which somebody wants the rows that they have now."""

    tables: tuple[TableName, ...]
    """The tables."""
    reason: str = ""
    """Why, in words; empty where a person asked."""
    workers: int | None = None
    """How many connections may copy; None: as many as the capture was told."""
    number: str = field(default_factory=lambda: uuid.uuid4().hex)
    """What tells it from others: the event COPIED_TABLE has it in ``requests``."""


def ask(store: LogStore, tables: Iterable[TableName], reason: str = "", workers: int | None = None) -> CopyRequest:
    """Ask for copies of tables; raises ChangeLogError where the log takes no files."""
    request = CopyRequest(tuple(tables), reason, workers)
    store.write(_file(request), json.dumps(asdict(request)).encode())
    return request


def requests(store: LogStore) -> list[CopyRequest]:
    """Return the requests that are not fulfilled; raises ChangeLogError for a file that is none."""
    names = sorted(name for name in store.files(_FOLDER) if name.endswith(".json"))
    return [request for name in names if (request := _read(store, f"{_FOLDER}/{name}")) is not None]


def fulfil(store: LogStore, request: CopyRequest) -> None:
    """Remove a request whose copies are durable, or that nobody can fulfil."""
    store.delete(_file(request))


def was_fulfilled(store: LogStore, request: CopyRequest) -> bool:
    """Return whether a request is there no more."""
    return not store.has(_file(request))


def _file(request: CopyRequest) -> str:
    return f"{_FOLDER}/request-{request.number}.json"


def _read(store: LogStore, file: str) -> CopyRequest | None:
    try:
        content = json.loads(store.read(file))
        tables = tuple((str(namespace), str(name)) for namespace, name in content["tables"])
        workers = None if content.get("workers") is None else int(content["workers"])
        return CopyRequest(tables, str(content.get("reason", "")), workers, str(content["number"]))
    except MissingFileError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ChangeLogError(
            f"{store.path_of(file)}: damaged: it asks for copies of tables; remove it: {error}"
        ) from error
