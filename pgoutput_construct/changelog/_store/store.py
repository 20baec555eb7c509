"""The interface of a store: files by name, each complete or absent, and a lock for each purpose."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, Self

import pyarrow as pa

from pgoutput_construct.errors import ChangeLogError

__all__ = [
    "Address",
    "LogLock",
    "LogStore",
    "MissingFileError",
    "is_uri",
]

Address = str | Path
"""A directory, or a URL such as ``s3://bucket/folder`` (as a string: Path would collapse the two slashes)."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_FOLDED_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class MissingFileError(ChangeLogError):
    """A file is not in the log, or not any more: compaction and prune remove files. Not raised for a damaged file."""


class LogLock(ABC):
    """A lock on a log, held by its writer; a context manager that releases it."""

    @abstractmethod
    def check(self) -> None:
        """Raise ChangeLogError when the lock was lost: the directory was exchanged, or another writer took over."""

    @abstractmethod
    def release(self) -> None:
        """Release the lock."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class LogStore(ABC):
    """The files of one log. Unpickled in another process, it opens the same address again."""

    keeps_out: bool = True
    """Whether ``lock`` without ``seconds`` excludes other writers; where not, the last one to lock takes over."""
    reads_at_once: int = 1
    """How many reads to issue concurrently: more for a store where each one waits for the network."""

    def __init__(self, address: str, shown: str, secrets: tuple[str, ...] = ()) -> None:
        """Take the address.

        Args:
            address: The absolute path or URL, with credentials if it has any.
            shown: The same without credentials.
            secrets: The credentials, which are removed from error messages.
        """
        self.address = address
        """The path (absolute) or URL; it may contain credentials."""
        self.shown = shown
        """The same without credentials, for messages and metadata."""
        self._secrets = secrets

    def __str__(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shown!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogStore) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def path_of(self, name: str) -> str:
        """Return the path or URL of a file, without credentials, for messages."""
        return f"{self.shown.rstrip('/')}/{name}"

    @abstractmethod
    def prepare(self) -> None:
        """Create the directory durably, if the store has directories."""

    @abstractmethod
    def files(self, folder: str = "") -> dict[str, int]:
        """Return names and sizes (bytes) of the files in the log, or in a folder of it; empty if that does not exist.

        Names that begin with a dot are skipped: locks, notes and unfinished files.
        """

    @abstractmethod
    def folders(self, folder: str = "") -> set[str]:
        """Return the names of the folders in the log, or in a folder of it, except those that begin with a dot."""

    @abstractmethod
    def has(self, name: str) -> bool:
        """Return whether a file exists."""

    @abstractmethod
    def modified(self, name: str) -> float:
        """Return when a file was last written: seconds since 1970 by the store's clock. Raises like ``open``.

        Of a file system of fsspec that does not report it, every file was written now: none has expired.
        """

    @abstractmethod
    def open(self, name: str) -> pa.NativeFile:
        """Open a file for random access.

        Raises MissingFileError, or ChangeLogError with a remedy, also for what is no regular file: reading a pipe would
        wait for a writer, a device has no end.
        """

    @abstractmethod
    def writing(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Return a context manager that yields a file to write; when the block ends, the file is durable.

        It becomes visible only then, and atomically replaces a file of that name. If the block raises, nothing changes.
        """

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file; it is no error if it does not exist."""

    @abstractmethod
    def remove(self, folder: str) -> None:
        """Remove a folder with its content; it is no error if it does not exist."""

    @abstractmethod
    def lock(self, name: str, seconds: float | None = None) -> LogLock:
        """Lock the log for one purpose.

        In a directory the lock ends with its process. An object store has no locks: without ``seconds`` the last one to
        lock takes over, and the previous holder fails its next ``check`` (for a capture the slot decides, which has one
        reader); with ``seconds`` it is a lease.

        Args:
            name: The purpose, such as ``capture``.
            seconds: In an object store: refuse the lock while another holder renewed its lease (by ``check``)
                within this time. Ignored in a directory.

        Raises:
            ChangeLogError: Somebody else holds the lock.
        """

    def set_file_mode(self, mode: int) -> None:
        """Set the mode of all files of the log, and of those that any process writes into it later.

        Args:
            mode: As for chmod(), such as 0o640 for a group that may read; the owner must be able to read and write.

        Raises:
            ChangeLogError: The mode is not one for files, it cannot be set, or the store has no modes.
        """
        raise ChangeLogError(
            f"{self.shown}: objects have no file mode ({mode:04o}): set permissions in the object store"
        )

    @abstractmethod
    def sweep(self) -> None:
        """Remove unfinished files of writers that were killed."""

    def read(self, name: str, last: int | None = None, most: int | None = None) -> bytes:
        """Return the content of a file, or only its ``last`` bytes.

        Raises like ``open``, and ChangeLogError for a file of more than ``most`` bytes.
        """
        with self.explained("cannot be read", name), self.open(name) as file:
            size = file.size()
            if most is not None and size > most:
                raise ChangeLogError(f"{self.path_of(name)}: has {size} bytes; at most {most} are read")
            if last is not None:
                file.seek(max(0, size - last))
            content: bytes = file.read()
            return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file: when this returns, it is durable. A file of that name is replaced atomically."""
        with self.writing(name) as file:
            file.write(content)

    @contextmanager
    def explained(self, what: str, name: str = "") -> Iterator[None]:
        """Turn OSError and Arrow's errors into ChangeLogError with the file (or the log) and a remedy.

        The text shows no credentials. The original error is not chained, since it may contain the URL with them.

        Args:
            what: What failed, such as ``cannot be read``.
            name: The file; empty for the log.
        """
        path = self.path_of(name) if name else self.shown
        try:
            yield
        except FileNotFoundError as error:
            raise MissingFileError(f"{path}: {what}: {self._reason(error, path)}") from None
        except (OSError, pa.ArrowException) as error:
            raise ChangeLogError(f"{path}: {what}: {self._reason(error, path)}; {_remedy(error)}") from None

    def _reason(self, error: BaseException, path: str) -> str:
        text = getattr(error, "strerror", None) or " ".join(str(error).split())
        filename = getattr(error, "filename", None)
        text += f" ({filename})" if isinstance(filename, str | Path) and str(filename) != path else ""
        for secret in self._secrets:
            text = text.replace(secret, "...")
        return text


def is_uri(address: Address) -> bool:
    """Return whether an address is a URL; raise ChangeLogError for a URL that went through Path."""
    if _URI.match(str(address)):
        return True
    if isinstance(address, Path) and _FOLDED_URI.match(str(address)):
        raise ChangeLogError(f"{address}: a Path cannot hold a URL (it collapses // to /); pass it as a string")
    return False


def _remedy(error: BaseException) -> str:
    if isinstance(error, PermissionError):
        return "grant this process permission, or give another address"
    return "check space, network, credentials and permissions, or give another address"
