"""A log in a directory: fsync and rename make a file durable, flock says who writes."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from pgoutput_construct.changelog.store import LogLock, LogStore
from pgoutput_construct.errors import ChangeLogError

__all__ = ["LocalStore"]


class LocalStore(LogStore):
    """The files of one directory."""

    def __init__(self, directory: str | Path, durable: bool = True) -> None:
        """Name a directory; without ``durable`` nothing is flushed to the disk (for logs that tests make)."""
        self.directory = Path(directory).absolute()
        self.durable = durable
        super().__init__(str(self.directory), str(self.directory))

    def prepare(self) -> None:
        """Make the directory and those above it so that a crash of the machine takes none of their names."""
        with self.explained("the directory of the change log cannot be made"):
            missing = [path for path in (self.directory, *self.directory.parents) if not path.exists()]
            for path in reversed(missing):
                path.mkdir(exist_ok=True)
                self._fsync_directory(path.parent)
            if not missing:
                self.directory.mkdir(exist_ok=True)  # raises where it is a file
                self._fsync_directory(self.directory.parent)  # who made it may have crashed before

    def files(self, folder: str = "") -> dict[str, int]:
        """Return names and sizes of the files that do not begin with a dot."""
        with self.explained("cannot be listed"):
            try:
                with os.scandir(self.directory / folder) as entries:
                    return {entry.name: size for entry in entries if (size := _size(entry)) is not None}
            except FileNotFoundError:
                return {}

    def has(self, name: str) -> bool:
        """Tell whether a file is there."""
        return (self.directory / name).exists()

    def modified(self, name: str) -> float:
        """Return when a file was written, in seconds since 1970."""
        with self.explained("cannot be read", name):
            return (self.directory / name).stat().st_mtime

    def open(self, name: str) -> pa.NativeFile:
        """Open a file for random reading."""
        with self.explained("cannot be read", name):
            return pa.OSFile(str(self.directory / name))

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Write beside, fsync, rename, fsync the directory."""
        path = self.directory / name
        temporary = path.with_name(f".{path.name.lstrip('.')}.tmp")
        with self.explained("cannot be written", name):
            for folder in reversed(Path(name).parents[:-1]):
                (self.directory / folder).mkdir(exist_ok=True)  # never the directory: it may be on another machine
            with self._replacing(path, temporary) as file:
                yield file

    @contextmanager
    def _replacing(self, path: Path, temporary: Path) -> Iterator[BinaryIO]:
        with temporary.open("wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)  # tells sweep() that somebody is at it
                yield file
                file.flush()
                if self.durable:
                    os.fsync(file.fileno())
                temporary.rename(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            self._fsync_directory(path.parent)

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        with self.explained("cannot be removed", name):
            (self.directory / name).unlink(missing_ok=True)

    def remove(self, folder: str) -> None:
        """Remove a folder, if it is there."""
        with self.explained("cannot be removed", folder), suppress(FileNotFoundError):
            shutil.rmtree(self.directory / folder)

    def lock(self, name: str, seconds: float | None = None) -> LogLock:
        """Lock ``.name.lock`` for as long as it is held, or its process lives; ``seconds`` are of no use here."""
        with self.explained("the directory of the change log cannot be locked"):
            # A capture's is that of earlier versions, which must keep out this one.
            return _FileLock(self, self.directory / (".lock" if name == "capture" else f".{name}.lock"), name)

    def sweep(self) -> None:
        """Remove unfinished files that no process has locked."""
        with self.explained("an unfinished file cannot be removed"):
            for temporary in self.directory.glob(".*.tmp"):
                with suppress(FileNotFoundError):  # a compaction has completed it since
                    _remove_unlocked(temporary)

    def _fsync_directory(self, directory: Path) -> None:
        if not self.durable:
            return
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _FileLock(LogLock):
    """A file that is locked, and known by its device and number, whatever stands under its name later."""

    def __init__(self, store: LocalStore, path: Path, purpose: str) -> None:
        self._store, self._path, self._purpose = store, path, purpose
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.check()
        except BlockingIOError:
            self.release()
            raise ChangeLogError(
                f"{store}: another {purpose} writes into this directory; stop it, or choose another one"
            ) from None
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Raise ChangeLogError when the directory, or the file that was locked, has been exchanged."""
        locked = os.fstat(self._descriptor)
        try:
            there = self._path.stat()
        except OSError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (locked.st_dev, locked.st_ino):
            raise ChangeLogError(
                f"{self._store}: the directory was removed or exchanged while this {self._purpose} worked in it "
                f"({self._path.name} is not the file that it locked): was a volume unmounted? Put the directory back"
            )

    def release(self) -> None:
        """Close the file, which unlocks it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _size(entry: "os.DirEntry[str]") -> int | None:
    if entry.name.startswith("."):
        return None
    try:
        return entry.stat().st_size if entry.is_file() else None
    except FileNotFoundError:  # removed since
        return None


def _remove_unlocked(temporary: Path) -> None:
    with temporary.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        temporary.unlink(missing_ok=True)
