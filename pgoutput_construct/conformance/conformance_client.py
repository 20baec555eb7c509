"""Clients under test: what one is given, and how one is started and watched."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pgoutput_construct.wire.messages import Relation
from pgoutput_construct.wire.types import Lsn

__all__ = ["ClientTask", "ConformanceClient", "RunningClient"]


@dataclass(frozen=True, kw_only=True)
class ClientTask:
    """What a client is to read, and where it writes what it finds."""

    case: str
    """The name of the case."""
    host: str
    port: int
    user: str
    password: str
    database: str
    slot: str
    """A replication slot; it is created at its first use, or by the client."""
    publication: str
    options: Mapping[str, Any]
    """The options of START_REPLICATION to ask for, without the publication. What a client cannot ask for, it leaves."""
    end_lsn: Lsn
    """Where everything ends, for clients that cannot run without an end."""
    timeout: float
    """Seconds after which a client is to take a silent connection for lost."""
    directory: Path
    """A directory of the case's own: also for what a client stores of its position."""
    tables: Sequence[Relation] = ()
    """The tables as the stream will describe them, for clients that store rows."""

    @property
    def dsn(self) -> str:
        """The connection string, as libpq reads it."""
        parts = {"host": self.host, "port": self.port, "user": self.user, "password": self.password}
        return " ".join(f"{name}='{value}'" for name, value in {**parts, "dbname": self.database}.items())

    @property
    def url(self) -> str:
        """The same as a URL."""
        login = f"{quote(self.user)}:{quote(self.password)}"
        return f"postgresql://{login}@{self.host}:{self.port}/{quote(self.database)}"

    @property
    def output(self) -> Path:
        """The file of a client that does not write to its standard output."""
        return self.directory / "output.jsonl"

    @property
    def words(self) -> dict[str, str]:
        """What can be named in a command, by name."""
        options = {name: str(value).lower() for name, value in self.options.items()}
        named = {name: str(getattr(self, name)) for name in ("host", "port", "user", "password", "database", "slot")}
        others = {"publication": self.publication, "dsn": self.dsn, "url": self.url, "output": str(self.output)}
        rest = {"end_lsn": str(self.end_lsn), "timeout": f"{self.timeout:g}", "directory": str(self.directory)}
        asked = {"options": ",".join(f"{name}={value}" for name, value in options.items()), "case": self.case}
        return {**named, **others, **rest, **asked, **options}


class RunningClient(ABC):
    """A client that was started; its methods may be called from any thread."""

    @abstractmethod
    def read(self) -> list[str]:
        """Return the complete lines that it has written since the last call, without waiting for more."""

    @property
    @abstractmethod
    def status(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""

    @property
    def errors(self) -> str:
        """What it has said of errors."""
        return ""

    @property
    def peak(self) -> int | None:
        """The most bytes of memory that it has used at a time; None if that is unknown."""
        return None

    @abstractmethod
    def stop(self) -> None:
        """End it."""


class ConformanceClient(ABC):
    """A client that can be tested."""

    name: str
    """What it is, for people."""

    @abstractmethod
    def start(self, task: ClientTask) -> RunningClient:
        """Start it; started again for the same task, it continues where it was."""
