"""Where a change log lies, by address: a directory, or an object store through pyarrow's file systems or fsspec.

A store holds files by name, each of them complete or not there. It knows nothing of what is in them.
"""

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
"""A directory, or a URI such as ``s3://bucket/folder`` (then a string: Path would make one slash of two)."""

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_FOLDED_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class MissingFileError(ChangeLogError):
    """A file that is not, or no longer, in the log: compaction and prune remove files; damage is something else."""


class LogLock(ABC):
    """What is held by the one who writes; a context manager that releases it."""

    @abstractmethod
    def check(self) -> None:
        """Raise ChangeLogError when what was locked is no longer what stands at the log's address."""

    @abstractmethod
    def release(self) -> None:
        """Let others have it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class LogStore(ABC):
    """The files of one log. A process that is sent one (by pickle) opens the same address for itself."""

    keeps_out: bool = True
    """Whether a lock without a time keeps others out; else who comes last has it."""
    reads_at_once: int = 1
    """How many reads are worth being under way at a time: more where each one waits for a network."""

    def __init__(self, address: str, shown: str, secrets: tuple[str, ...] = ()) -> None:
        self.address = address
        """As it was given, a relative path made absolute; it may hold credentials."""
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

    def place(self, name: str) -> str:
        """Return how messages name a file."""
        return f"{self.shown.rstrip('/')}/{name}"

    @abstractmethod
    def prepare(self) -> None:
        """Make the directory, durably, where the store has directories."""

    @abstractmethod
    def files(self, folder: str = "") -> dict[str, int]:
        """Return names and sizes in bytes of the files in the log or a folder of it; none where there is no such.

        What begins with a dot is left out: locks, notes and unfinished files.
        """

    @abstractmethod
    def has(self, name: str) -> bool:
        """Return whether a file is there."""

    @abstractmethod
    def modified(self, name: str) -> float:
        """Return when a file was written, in seconds since 1970 by the store's clock; raises as ``open``."""

    @abstractmethod
    def open(self, name: str) -> pa.NativeFile:
        """Open a file for random reading; raises MissingFileError, or ChangeLogError with a remedy."""

    @abstractmethod
    def writing(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Return a context whose file is durable under its name once the block has ended, and not there before.

        A file of that name is replaced, at once. When the block raises, nothing has changed.
        """

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""

    @abstractmethod
    def remove(self, folder: str) -> None:
        """Remove a folder with all that is in it; one that is not there is no error."""

    @abstractmethod
    def lock(self, name: str, seconds: float | None = None) -> LogLock:
        """Lock the log for one purpose, such as ``capture``; raises ChangeLogError when another has it.

        In a directory the lock ends with its process. An object store has no locks: without ``seconds`` who comes
        last has it (for a capture the slot decides, which has one reader), and the one before fails its ``check``;
        with ``seconds`` it is refused while another has renewed its own (by ``check``) within that time.
        """

    def set_file_mode(self, mode: int) -> None:
        """Give all files of the log this mode, and those that any process writes into it later.

        Args:
            mode: As chmod() takes it, such as 0o640 for a group that may read; the owner must read and write.

        Raises ChangeLogError for another mode, where it cannot be set, and for a store that has none.
        """
        raise ChangeLogError(f"{self.shown}: files of an object store have no mode ({mode:04o}): set rights there")

    @abstractmethod
    def sweep(self) -> None:
        """Remove what writers that were killed left unfinished."""

    def read(self, name: str, last: int | None = None) -> bytes:
        """Return a file, or only its ``last`` bytes; raises as ``open``."""
        with self.explained("cannot be read", name), self.open(name) as file:
            if last is not None:
                file.seek(max(0, file.size() - last))
            content: bytes = file.read()
            return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole: durable when this returns, and replaced at once where there was one."""
        with self.writing(name) as file:
            file.write(content)

    @contextmanager
    def explained(self, what: str, name: str = "") -> Iterator[None]:
        """Turn errors of the system or the store into ChangeLogError that names a file (or the log) and a remedy.

        Their text shows no credentials, and they are not kept as its cause: they may hold the address.
        """
        place = self.place(name) if name else self.shown
        try:
            yield
        except FileNotFoundError as error:
            raise MissingFileError(f"{place}: {what}: {self._reason(error, place)}") from None
        except (OSError, pa.ArrowException) as error:
            raise ChangeLogError(f"{place}: {what}: {self._reason(error, place)}; {_remedy(error)}") from None

    def _reason(self, error: BaseException, place: str) -> str:
        text = getattr(error, "strerror", None) or " ".join(str(error).split())
        filename = getattr(error, "filename", None)
        text += f" ({filename})" if isinstance(filename, str | Path) and str(filename) != place else ""
        for secret in self._secrets:
            text = text.replace(secret, "...")
        return text


def is_uri(address: Address) -> bool:
    """Tell a URI from a path; raise ChangeLogError for a URI that went through Path."""
    if _URI.match(str(address)):
        return True
    if isinstance(address, Path) and _FOLDED_URI.match(str(address)):
        raise ChangeLogError(f"{address}: a Path cannot hold a URI (it makes one slash of two); give it as a string")
    return False


def _remedy(error: BaseException) -> str:
    if isinstance(error, PermissionError):
        return "make this possible for the user of this process, or give another address"
    return "make this possible (space, network, credentials, permissions), or give another address"
